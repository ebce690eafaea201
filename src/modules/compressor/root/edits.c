/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* edits.c - rank 0: deletes and renames documents
 *
 * Such a request is the last of its group. Its document stays unchanged until the group is stored; later requests find
 * it deleted or renamed. If the group cannot be stored, the document stays as it was.
 *
 * A document is identified by its UUID: a session continues after a rename, and finds no document under the UUID of a
 * deleted one, even if another document has its name now.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libidtree/json_build.h"
#include "libutil/errprintf.h"
#include "modules/compressor/root/private.h"

static void answer_edit (struct document_root *root, const struct document_root_task *task)
{
    module_respond_object (root->service->h, task->msg, json_incref (task->results));
}

/* Only the owner of the document and the instance owner may change it. */
static int check_user (const struct stored_document *doc, const idt_msg_t *msg, idt_error_t *errp)
{
    struct idt_cred user = idt_msg_cred (msg);

    if ((user.rolemask & IDT_ROLE_OWNER) || (doc->owner != IDT_USERID_UNKNOWN && user.userid == doc->owner))
        return 0;
    return errsetf (errp, EPERM,
                    "document '%s' does not belong to user %" PRIu32
                    ": only its creator and the instance owner may delete or rename it",
                    doc->name, user.userid);
}

/* The document of a request, if the requester may change it; the task gets its answer. Returns NULL with errno set. */
static struct stored_document *find_own (struct document_root *root, struct document_root_task *task, const json_t *o,
                                         idt_error_t *errp)
{
    struct stored_document *doc = document_root_find (root, o, errp);

    if (!doc || check_user (doc, task->msg, errp) < 0)
        return NULL;
    task->answer = answer_edit;
    if ((task->results = json_pack ("{s:s s:s}", "document", doc->name, "uuid", doc->uuid)))
        return doc;
    errsetf (errp, ENOMEM, "out of memory");
    return NULL;
}

int document_root_begin_delete (struct document_root *root, struct document_root_task *task, const json_t *o,
                                idt_error_t *errp)
{
    struct stored_document *doc = find_own (root, task, o, errp);

    if (!doc)
        return -1;
    root->edit = (struct document_root_edit){ .doc = doc };
    return 0;
}

static int check_new_name (struct document_root *root, const char *name, idt_error_t *errp)
{
    if (!name)
        return errsetf (errp, EPROTO, "name must be a string: the new name of the document");
    if (docwire_check_name (name, errp) < 0)
        return -1;
    for (uint32_t i = 0; i < root->ndocs; i++)
        if (strcmp (root->docs[i]->name, name) == 0)
            return errsetf (errp, EEXIST, "there is a document '%s' already", name);
    return 0;
}

int document_root_begin_rename (struct document_root *root, struct document_root_task *task, const json_t *o,
                                idt_error_t *errp)
{
    const char *name = json_string_value (json_object_get (o, "name"));
    struct stored_document *doc = find_own (root, task, o, errp);

    if (!doc || check_new_name (root, name, errp) < 0)
        return -1;
    json_put_new (&task->results, "name", json_string (name));
    root->edit = (struct document_root_edit){ .doc = doc };
    strcpy (root->edit.name, name);
    return 0;
}

void document_root_edit_store (const struct document_root *root, struct document_store_change *change)
{
    if (*root->edit.name)
        change->new_name = root->edit.name;
    else
        change->deleted = true;
}

/* Publish the change. Sessions that receive the event ask rank 0, whose answer counts. */
void document_root_edit_done (struct document_root *root)
{
    struct stored_document *doc = root->edit.doc;

    if (!doc)
        return;
    document_root_publish_new (root, doc->name, docwire_edit (doc->name, doc->uuid, root->edit.name));
    if (*root->edit.name)
        strcpy (doc->name, root->edit.name);
    else
        stored_document_remove (root, doc);
    root->edit.doc = NULL;
}

void document_root_edit_drop (struct document_root *root)
{
    root->edit.doc = NULL;
}
