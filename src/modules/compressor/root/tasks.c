/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* tasks.c - rank 0: the changes that a request makes, and its answer */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "libidtree/json.h"
#include "libutil/errprintf.h"
#include "modules/compressor/root/private.h"

/* --- documents ------------------------------------------------------------------------------------------- */

struct stored_document *stored_document_ref (struct stored_document *doc)
{
    if (doc)
        doc->refs++;
    return doc;
}

void stored_document_unref (struct stored_document *doc)
{
    assert (!doc || doc->refs > 0);
    if (!doc || --doc->refs > 0)
        return;
    orderer_destroy (doc->orderer);
    free (doc);
}

void document_root_documents_cut (struct document_root *root, uint32_t n)
{
    while (root->ndocs > n)
        stored_document_unref (root->docs[--root->ndocs]);
}

void stored_document_remove (struct document_root *root, struct stored_document *doc)
{
    uint32_t i = 0;

    assert (!doc->gone);
    while (root->docs[i] != doc)
        i++;
    root->ndocs--;
    memmove (&root->docs[i], &root->docs[i + 1], (root->ndocs - i) * sizeof (root->docs[0]));
    document_root_reads_forget (root, doc);
    doc->gone = true;
    stored_document_unref (doc);
}

struct stored_document *stored_document_add (struct document_root *root, const struct document_store_document *d)
{
    struct stored_document *doc = calloc (1, sizeof (*doc));
    struct stored_document **docs = realloc (root->docs, (root->ndocs + 1) * sizeof (docs[0]));

    if (docs)
        root->docs = docs;
    if (!doc || !docs || !(doc->orderer = orderer_create (&root->limits, d->form, d->form_size, d->seq))) {
        free (doc);
        return NULL;
    }
    doc->refs = 1;
    doc->id = root->last_id = d->id;
    doc->owner = d->owner;
    snprintf (doc->name, sizeof (doc->name), "%s", d->name);
    snprintf (doc->uuid, sizeof (doc->uuid), "%s", d->uuid);
    doc->form_seq = d->seq;
    return root->docs[root->ndocs++] = doc;
}

/* Create a document that belongs to the sender of 'msg'. Its content is the stored form 'form'; NULL: the document is
 * empty. Returns NULL with errno set and 'errp' filled.
 */
static struct stored_document *new_document (struct document_root *root, const idt_msg_t *msg, const char *name,
                                             const void *form, size_t size, idt_error_t *errp)
{
    struct document_store_document d = {
        .id = root->last_id + 1, .name = name, .form = form, .form_size = size, .owner = idt_msg_cred (msg).userid
    };
    char text[IDCOMP_UUID_TEXT_MAX];
    struct stored_document *doc;

    if (docwire_check_name (name, errp) < 0)
        return NULL;
    if (root->ndocs >= root->service->options.max_documents) {
        errsetf (errp, EDQUOT, "there are already compressor.max-documents documents, which is the limit");
        return NULL;
    }
    if (docwire_random_uuid (text) < 0) {
        errprintf (errp, "no random numbers: %s", strerror (errno));
        return NULL;
    }
    d.uuid = text;
    if (!(doc = stored_document_add (root, &d))) {
        errsetf (errp, idcomp_errno (errno), "%s: %s", name, idcomp_strerror (errno));
        return NULL;
    }
    doc->form_seq = -1;
    return doc;
}

/* --- answers ------------------------------------------------------------------------------------ */

const char *document_root_range_text (void *arg, int64_t seq)
{
    return orderer_range (arg, seq);
}

size_t document_root_count_ranges (const struct orderer *o, int64_t first, int64_t last, size_t *bytes)
{
    const char *text;
    size_t n = 0;

    *bytes = 0;
    while (n < RANGE_RELAY_BATCH_RANGES && first + (int64_t)n <= last
           && (text = orderer_range (o, first + (int64_t)n))) {
        size_t size = strlen (text) + 1;

        if (n > 0 && *bytes + size > RANGE_RELAY_BATCH_BYTES)
            break;
        *bytes += size;
        n++;
    }
    return n;
}

static void answer_order (struct document_root *root, const struct document_root_task *task)
{
    module_respond_object (root->service->h, task->msg, json_pack ("{s:O}", "results", task->results));
}

static void answer_create (struct document_root *root, const struct document_root_task *task)
{
    module_respond_object (root->service->h, task->msg,
                           json_pack ("{s:s s:s s:i}", "document", task->doc->name, "uuid", task->doc->uuid, "seq", 0));
}

static void task_end (struct document_root_task *task)
{
    idt_msg_unref (task->msg);
    stored_document_unref (task->doc);
    json_decref (task->results);
}

void document_root_answer (struct document_root *root, const struct document_root_task *task)
{
    char text[DOCWIRE_NAME_MAX + 40];

    if (!task->doc || !task->doc->gone) {
        task->answer (root, task);
        return;
    }
    snprintf (text, sizeof (text), "document '%s' was deleted", task->doc->name);
    service_respond_error (root->service, task->msg, ENOENT, text);
}

/* Answer all tasks with 'answer', and end them. If 'answer' is NULL, each task is answered by its own function. */
static void end_tasks (struct document_root *root,
                       void (*answer) (struct document_root *root, const struct document_root_task *task))
{
    for (size_t i = 0; i < root->ntasks; i++) {
        struct document_root_task *task = &root->tasks[i];

        (answer ? answer : document_root_answer) (root, task);
        task_end (task);
    }
    root->ntasks = 0;
}

void document_root_tasks_finish (struct document_root *root)
{
    end_tasks (root, NULL);
}

static void answer_stopping (struct document_root *root, const struct document_root_task *task)
{
    service_respond_error (root->service, task->msg, EHOSTUNREACH, SERVICE_STOPPING);
}

void document_root_tasks_stop (struct document_root *root)
{
    end_tasks (root, answer_stopping);
}

/* --- answers while documents cannot be stored ------------------------------------------------------- */

/* Results for an order, with the same error for each element. Returns NULL if the request is not an order. */
static json_t *fail_elements (const json_t *batch, int errnum, const char *text)
{
    json_t *results = json_is_array (batch) ? json_array () : NULL;

    for (size_t i = 0; results && i < json_array_size (batch); i++)
        json_add_new (&results, json_pack ("{s:i s:s}", "errnum", errnum, "text", text));
    return results;
}

/* Answer a request with the reason. An order gets a successful response, in which each element has the error. So the
 * reason reaches the senders of the elements. If the order itself failed, the child would send its elements again, as
 * if rank 0 was not reached.
 */
void document_root_refuse (struct document_root *root, const idt_msg_t *msg)
{
    json_t *o = idt_msg_json (msg, NULL),
           *results = fail_elements (json_object_get (o, "batch"), root->failing, root->why.text);

    if (results)
        module_respond_object (root->service->h, msg, json_pack ("{s:o}", "results", results));
    else
        service_respond_error (root->service, msg, root->failing, root->why.text);
    json_decref (o);
}

static void answer_refused (struct document_root *root, const struct document_root_task *task)
{
    document_root_refuse (root, task->msg);
}

void document_root_refuse_all (struct document_root *root)
{
    const idt_msg_t *msg;

    end_tasks (root, answer_refused);
    while ((msg = fifo_pop (&root->waiting))) {
        document_root_refuse (root, msg);
        idt_msg_unref (msg);
    }
}

/* --- requests ------------------------------------------------------------------------------------- */

static struct stored_document *find_name (struct document_root *root, const char *name)
{
    for (uint32_t i = 0; name && i < root->ndocs; i++)
        if (strcmp (root->docs[i]->name, name) == 0)
            return root->docs[i];
    return NULL;
}

static struct stored_document *find_uuid (struct document_root *root, const char *uuid)
{
    for (uint32_t i = 0; uuid && i < root->ndocs; i++)
        if (strcmp (root->docs[i]->uuid, uuid) == 0)
            return root->docs[i];
    return NULL;
}

struct stored_document *document_root_find (struct document_root *root, const json_t *o, idt_error_t *errp)
{
    const char *name = json_string_value (json_object_get (o, "document"));
    struct stored_document *doc = find_name (root, name);

    if (doc)
        return doc;
    if (name)
        errsetf (errp, ENOENT, "there is no document '%.100s'", name);
    else
        errsetf (errp, EPROTO, "document must be a string");
    return NULL;
}

/* Where the documents are, in messages. */
static const char *place_name (const struct document_root *root)
{
    return root->service->options.place.store ? "root.store" : "statedir";
}

/* Refuse the document from now on, because a session has a different history than rank 0. Rank 0 cannot decide which
 * history is right.
 */
static void refuse_document (struct document_root *root, struct stored_document *doc, int64_t seq)
{
    int64_t ours = orderer_stored_seq (doc->orderer);

    if (seq > ours)
        errprintf (&doc->refused,
                   "%s: rank 0 has it up to range %lld, a session up to range %lld: an older copy is in %s. "
                   "Restore the newer copy, or close it on ranks that are ahead and reload the compressor of rank 0",
                   doc->name, (long long)ours, (long long)seq, place_name (root));
    else
        errprintf (
            &doc->refused,
            "%s: rank 0 and a session have different histories up to range %lld: an older copy was in "
            "%s. Restore the newer copy, or close it on ranks that are ahead and reload the compressor of rank 0",
            doc->name, (long long)seq, place_name (root));
    idt_log (root->service->h, LOG_CRIT, "%s", doc->refused.text);
}

/* Compare the histories of a session and of rank 0. If rank 0 no longer keeps the digest for 'seq', nothing is
 * compared, because the session will notice a difference itself (compressor_rebase ()).
 */
static void compare_history (struct document_root *root, struct stored_document *doc, int64_t seq, const char *digest)
{
    char ours[REPLICA_DIGEST_TEXT];
    uint64_t d;

    if (seq > orderer_stored_seq (doc->orderer))
        refuse_document (root, doc, seq);
    else if (orderer_digest (doc->orderer, seq, &d) == 0) {
        snprintf (ours, sizeof (ours), REPLICA_DIGEST, d);
        if (strcmp (ours, digest) != 0)
            refuse_document (root, doc, seq);
    }
}

/* Report that a document that a session has joined does not exist any longer. The text names two possible reasons,
 * because UUIDs of deleted documents are not kept.
 */
static void tell_gone (struct document_root *root, const char *name, idt_error_t *errp)
{
    if (find_name (root, name))
        errsetf (errp, ESTALE,
                 "document '%.100s' is a different one now: the joined one was deleted, or is missing in the copy in "
                 "%s",
                 name, place_name (root));
    else
        errsetf (errp, ENOENT, "document '%.100s' was deleted, or is missing in the copy in %s", name,
                 place_name (root));
}

struct stored_document *document_root_find_joined (struct document_root *root, const json_t *o, int64_t seq,
                                                   idt_error_t *errp)
{
    const char *name = json_string_value (json_object_get (o, "document")),
               *digest = json_string_value (json_object_get (o, "digest"));
    struct stored_document *doc = find_uuid (root, json_string_value (json_object_get (o, "uuid")));

    if (!name)
        return document_root_find (root, o, errp);
    if (!doc) {
        tell_gone (root, name, errp);
        return NULL;
    }
    if (digest && !*doc->refused.text)
        compare_history (root, doc, seq, digest);
    if (*doc->refused.text) {
        errno = ENOTRECOVERABLE;
        *errp = doc->refused;
        return NULL;
    }
    return doc;
}

/* Order the ranges of an element. Returns 0, or -1 with errno set and 'errp' filled. If a range is refused, the ranges
 * before it stay ordered.
 */
static int order_element (struct document_root *root, const json_t *element, struct stored_document **doc,
                          idt_error_t *errp)
{
    struct idcomp_range range;
    size_t i;
    json_t *o;

    if (!(*doc = document_root_find_joined (root, element, json_integer_value (json_object_get (element, "seq")),
                                            errp)))
        return -1;
    json_array_foreach (json_object_get (element, "ranges"), i, o) {
        if (docwire_get_range (o, &range, errp) < 0)
            return -1;
        int rc = orderer_add ((*doc)->orderer, &range, errp);
        idcomp_range_fini (&range);
        if (rc < 0)
            return -1;
        *(rc ? &root->ranges : &root->repeated) += 1;
    }
    return 0;
}

static json_t *pack_result (struct document_root *root, const json_t *element)
{
    struct stored_document *doc = NULL;
    idt_error_t error = { "" };

    if (order_element (root, element, &doc, &error) == 0)
        return json_pack ("{s:I}", "seq", (json_int_t)orderer_seq (doc->orderer));
    root->refused++;
    root->confirm |= document_root_must_confirm (root, errno);
    return json_pack ("{s:i s:s}", "errnum", errno, "text", error.text);
}

static int begin_order (struct document_root *root, struct document_root_task *task, const json_t *o, idt_error_t *errp)
{
    json_t *batch = json_object_get (o, "batch"), *element;
    size_t i;

    if (!json_is_array (batch) || !(task->results = json_array ()))
        return errsetf (errp, EPROTO, "batch must be an array of elements");
    json_array_foreach (batch, i, element)
        json_add_new (&task->results, pack_result (root, element));
    task->answer = answer_order;
    return 0;
}

/* The name in a request. document_root_find () must have been called for the request before. */
static const char *get_name (const json_t *o)
{
    return json_string_value (json_object_get (o, "document"));
}

static int begin_join (struct document_root *root, struct document_root_task *task, const json_t *o, idt_error_t *errp)
{
    task->answer = document_root_answer_join;
    task->doc = document_root_find (root, o, errp);
    if (!task->doc && errno == ENOENT)
        task->doc = new_document (root, task->msg, get_name (o), NULL, 0, errp);
    return task->doc ? 0 : -1;
}

static int begin_create (struct document_root *root, struct document_root_task *task, const json_t *o,
                         idt_error_t *errp)
{
    const char *state = json_string_value (json_object_get (o, "state"));
    size_t size = 0;
    void *form = NULL;

    if (document_root_find (root, o, errp))
        return errsetf (errp, EEXIST, "there is a document '%s' already", get_name (o));
    if (errno != ENOENT)
        return -1;
    if (state && !(form = docwire_get_form (state, &size)))
        return errsetf (errp, idcomp_errno (errno), "state: %s", idcomp_strerror (errno));
    task->answer = answer_create;
    task->doc = new_document (root, task->msg, get_name (o), form, size, errp);
    int saved = errno;
    free (form);
    errno = saved;
    return task->doc ? 0 : -1;
}

/* --- deleting and renaming ------------------------------------------------------------------------
 *
 * A request to delete or rename a document is the last request of its group. The document stays unchanged until the
 * group is stored. Later requests find it deleted or renamed. If the group cannot be stored, the document stays as it
 * was.
 *
 * A document is identified by its UUID. So a session continues after its document was renamed. The session of a deleted
 * document finds no document under its UUID, even if another document has the name now.
 */

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

/* Find the document of a request, if the requester may change the document, and prepare the answer of the task. Returns
 * NULL with errno set.
 */
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

static int begin_delete (struct document_root *root, struct document_root_task *task, const json_t *o,
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
    return find_name (root, name) ? errsetf (errp, EEXIST, "there is a document '%s' already", name) : 0;
}

static int begin_rename (struct document_root *root, struct document_root_task *task, const json_t *o,
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

/* --- refused reads -------------------------------------------------------------------------------- */

bool document_root_must_confirm (const struct document_root *root, int errnum)
{
    return root->service->options.place.store && (docsession_is_final (errnum) || errnum == ENOTRECOVERABLE);
}

static void answer_refused_read (struct document_root *root, const struct document_root_task *task)
{
    service_respond_error (root->service, task->msg,
                           (int)json_integer_value (json_object_get (task->results, "errnum")),
                           json_string_value (json_object_get (task->results, "text")));
}

/* A fetch or a request for a form that was refused: see whether it still would be. */
static int begin_refused_read (struct document_root *root, struct document_root_task *task, const json_t *o,
                               idt_error_t *errp)
{
    int64_t seq = json_integer_value (json_object_get (o, "from")) - 1;
    idt_error_t why = { "" };

    if (document_root_find_joined (root, o, seq < 0 ? 0 : seq, &why))
        return errsetf (errp, EAGAIN, "the document was changed meanwhile: try again");
    root->confirm |= document_root_must_confirm (root, errno);
    task->answer = answer_refused_read;
    task->results = json_pack ("{s:i s:s}", "errnum", errno, "text", why.text);
    return task->results ? 0 : errsetf (errp, ENOMEM, "out of memory");
}

static const struct document_root_method methods[] = {
    { "compressor.order", begin_order },        { "compressor.join", begin_join },
    { "compressor.create", begin_create },      { "compressor.delete", begin_delete },
    { "compressor.rename", begin_rename },      { "compressor.fetch", begin_refused_read },
    { "compressor.state", begin_refused_read }, { NULL, NULL },
};

const struct document_root_method *document_root_find_method (const struct document_root_method *list,
                                                              const idt_msg_t *msg)
{
    while (list->topic && strcmp (idt_msg_topic (msg), list->topic) != 0)
        list++;
    return list->topic ? list : NULL;
}

int document_root_begin (struct document_root *root, const struct document_root_method *method,
                         struct document_root_task *task, const idt_msg_t *msg, idt_error_t *errp)
{
    json_t *o = idt_msg_json (msg, errp);

    *task = (struct document_root_task){ .msg = msg };
    int rc = o ? method->begin (root, task, o, errp) : -1, saved = errno;
    json_decref (o);
    errno = saved;
    return rc;
}

void document_root_task_begin (struct document_root *root, const idt_msg_t *msg)
{
    struct document_root_task *task = &root->tasks[root->ntasks];
    idt_error_t error = { "" };

    assert (root->ntasks < GROUP_MAX);
    int rc = document_root_begin (root, document_root_find_method (methods, msg), task, msg, &error), errnum = errno;
    stored_document_ref (task->doc);
    if (rc == 0) {
        root->ntasks++;
        return;
    }
    service_respond_error (root->service, msg, errnum, error.text);
    task_end (task);
}
