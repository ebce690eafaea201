/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reads.c - rank 0: answers from stored documents
 *
 * A read does not wait for a commit. Answers contain ranges and forms (orderer_save_stored ()) up to the last stored
 * range. So reads are answered also while later ranges are being stored, and while the disk fails or hangs.
 *
 * Documents take turns, measured in the bytes of their answers. After TURN_BYTES the reactor handles other events. A
 * form that is too large for one answer is made once, and kept while its pieces are requested. Each requester has one
 * piece under way.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libidtree/json.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "modules/compressor/root/private.h"

#define TURN_BYTES ((size_t)1 << 20)
#define QUANTUM 65536
#define KEPT_MAX ((size_t)128 << 20) /* the most bytes of kept forms */
#define KEPT_IDLE_MS 2000            /* a form that was not requested for this long is dropped if others need space */
#define SMALL_COST 256
#define LIST_KEY 0 /* the key of lists in the turns; documents use their ids, from 1 on */

static void read_destroy (struct document_root_task *read)
{
    idt_msg_unref (read->msg);
    stored_document_unref (read->doc);
    free (read);
}

/* --- list ---------------------------------------------------------------------------------------------- */

static json_t *describe (const struct stored_document *doc)
{
    struct idcomp_stats s = orderer_stored_stats (doc->orderer);
    json_t *o = json_pack ("{s:s s:s s:I s:I s:I s:I}", "document", doc->name, "uuid", doc->uuid, "seq",
                           (json_int_t)orderer_stored_seq (doc->orderer), "finals", (json_int_t)s.allocated_finals,
                           "sessions", (json_int_t)s.sessions - 1, "clusters", (json_int_t)s.clusters);

    if (doc->owner != IDT_USERID_UNKNOWN)
        json_put_new (&o, "owner", json_integer (doc->owner));
    if (o && *doc->refused.text)
        json_object_set_new (o, "refused", json_string (doc->refused.text));
    return o;
}

static void answer_list (struct document_root *root, const struct document_root_task *read)
{
    json_t *list = json_array ();

    for (uint32_t i = 0; list && i < root->ndocs; i++)
        if (root->docs[i]->form_seq >= 0)
            json_add_new (&list, describe (root->docs[i]));
    module_respond_object (root->service->h, read->msg, json_pack ("{s:o}", "documents", list));
}

/* --- forms --------------------------------------------------------------------------------------------- */

void document_root_reads_forget (struct document_root *root, struct stored_document *doc)
{
    assert (!doc->kept.bytes || doc->kept.size <= root->kept_bytes);
    root->kept_bytes -= doc->kept.bytes ? doc->kept.size : 0;
    free (doc->kept.bytes);
    doc->kept = (struct kept_form){ 0 };
}

static void drop_idle (struct document_root *root, uint64_t before_ms)
{
    for (uint32_t i = 0; root->kept_bytes > 0 && i < root->ndocs; i++)
        if (root->docs[i]->kept.bytes && root->docs[i]->kept.used_ms <= before_ms)
            document_root_reads_forget (root, root->docs[i]);
}

void document_root_reads_tick (struct document_root *root)
{
    if (root->kept_bytes == 0)
        return;
    drop_idle (root, clock_ms (CLOCK_MONOTONIC) - root->service->options.timeout_ms);
    service_arm (root->service);
}

/* Whether the kept form can be sent. It can if it has the newest stored range. It also can if 'behind' is set and the
 * requester can fetch all later ranges.
 */
static bool kept_will_do (const struct stored_document *doc, bool behind)
{
    int64_t seq = doc->kept.seq;

    return doc->kept.bytes
           && (seq == orderer_stored_seq (doc->orderer) || (behind && orderer_range (doc->orderer, seq + 1)));
}

/* Keep a large form, which is taken over. Returns 0, or -1 with errno EAGAIN if kept forms would exceed KEPT_MAX. */
static int keep (struct document_root *root, struct stored_document *doc, void *form, size_t size)
{
    uint64_t now_ms = clock_ms (CLOCK_MONOTONIC);

    document_root_reads_forget (root, doc);
    if (root->kept_bytes + size > KEPT_MAX)
        drop_idle (root, now_ms - KEPT_IDLE_MS);
    if (root->kept_bytes > 0 && root->kept_bytes + size > KEPT_MAX) {
        free (form);
        return errset (EAGAIN);
    }
    doc->kept = (struct kept_form){ form, size, orderer_stored_seq (doc->orderer), now_ms };
    root->kept_bytes += size;
    service_arm (root->service);
    return 0;
}

static void answer_piece (struct document_root *root, const idt_msg_t *msg, struct stored_document *doc, size_t offset)
{
    doc->kept.used_ms = clock_ms (CLOCK_MONOTONIC);
    module_respond_new (root->service->h, msg,
                        docwire_state (doc->name, doc->uuid, orderer_stored_seq (doc->orderer), doc->kept.seq,
                                       doc->kept.bytes, doc->kept.size, offset));
}

/* Answer with the stored form. A form that fits into one answer is not kept, but made again for each request. */
static void answer_form (struct document_root *root, const idt_msg_t *msg, struct stored_document *doc, bool behind)
{
    int64_t seq = orderer_stored_seq (doc->orderer);
    size_t size = 0;

    if (kept_will_do (doc, behind)) {
        answer_piece (root, msg, doc, 0);
        return;
    }
    void *form = orderer_save_stored (doc->orderer, &size);
    root->forms += form != NULL;
    if (!form)
        service_respond_error (root->service, msg, ENOMEM, NULL);
    else if (size <= DOCWIRE_PIECE) {
        module_respond_new (root->service->h, msg, docwire_state (doc->name, doc->uuid, seq, seq, form, size, 0));
        free (form);
    }
    else if (keep (root, doc, form, size) < 0)
        service_respond_error (root->service, msg, errno,
                               "too many large documents are read at the same time: try again later");
    else
        answer_piece (root, msg, doc, 0);
}

void document_root_answer_join (struct document_root *root, const struct document_root_task *read)
{
    if (*read->doc->refused.text)
        service_respond_error (root->service, read->msg, ENOTRECOVERABLE, read->doc->refused.text);
    else
        answer_form (root, read->msg, read->doc, read->behind);
}

static void answer_state (struct document_root *root, const struct document_root_task *read)
{
    struct stored_document *doc = read->doc;

    if (!doc->kept.bytes || doc->kept.seq != read->seq)
        service_respond_error (root->service, read->msg, EAGAIN,
                               "this form is no longer kept: begin again with the newest");
    else if (read->offset >= doc->kept.size)
        service_respond_error (root->service, read->msg, EINVAL, "offset is beyond the end of the form");
    else
        answer_piece (root, read->msg, doc, read->offset);
}

/* --- ranges -------------------------------------------------------------------------------------------- */

static void answer_fetch (struct document_root *root, const struct document_root_task *read)
{
    struct stored_document *doc = read->doc;
    int64_t newest = orderer_stored_seq (doc->orderer);
    size_t bytes;

    if (read->seq <= newest && !orderer_range (doc->orderer, read->seq))
        answer_form (root, read->msg, doc, true);
    else
        module_respond_new (root->service->h, read->msg,
                            docwire_ranges (doc->name, doc->uuid, NULL, newest, read->seq,
                                            document_root_count_ranges (doc->orderer, read->seq, newest, &bytes),
                                            document_root_range_text, doc->orderer));
}

/* --- beginning a read ----------------------------------------------------------------------------------- */

static int begin_list (struct document_root *root, struct document_root_task *read, const json_t *o, idt_error_t *errp)
{
    read->answer = answer_list;
    read->cost = SMALL_COST * (root->ndocs + 1);
    return 0;
}

static size_t form_cost (const struct stored_document *doc)
{
    size_t clusters = (size_t)orderer_stored_stats (doc->orderer).clusters;

    return SMALL_COST + (clusters * 32 < DOCWIRE_PIECE ? clusters * 32 : DOCWIRE_PIECE);
}

static int begin_join (struct document_root *root, struct document_root_task *read, const json_t *o, idt_error_t *errp)
{
    if (!(read->doc = document_root_find (root, o, errp)))
        return -1;
    read->answer = document_root_answer_join;
    read->behind = json_is_true (json_object_get (o, "behind"));
    read->cost = form_cost (read->doc);
    return 0;
}

static int begin_fetch (struct document_root *root, struct document_root_task *read, const json_t *o, idt_error_t *errp)
{
    size_t bytes = 0;

    read->seq = json_integer_value (json_object_get (o, "from"));
    if (!(read->doc = document_root_find_joined (root, o, read->seq - 1, errp)))
        return -1;
    if (read->seq < 1)
        return errsetf (errp, EINVAL, "from must be the number of a range, from 1 on");
    document_root_count_ranges (read->doc->orderer, read->seq, orderer_stored_seq (read->doc->orderer), &bytes);
    read->answer = answer_fetch;
    read->cost = SMALL_COST + bytes;
    return 0;
}

/* 'offset' counts characters of base64 text. Four characters are three bytes of the form. */
static int begin_state (struct document_root *root, struct document_root_task *read, const json_t *o, idt_error_t *errp)
{
    json_int_t offset = json_integer_value (json_object_get (o, "offset"));

    if (!(read->doc = document_root_find_joined (root, o, 0, errp)))
        return -1;
    if (offset < 0 || offset % 4 != 0)
        return errsetf (errp, EINVAL, "offset=%lld: must be a multiple of 4, from 0 on", (long long)offset);
    read->seq = json_integer_value (json_object_get (o, "seq"));
    read->offset = (size_t)offset / 4 * 3;
    read->answer = answer_state;
    read->cost = form_cost (read->doc);
    return 0;
}

static const struct document_root_method methods[] = {
    { "compressor.list", begin_list },
    { "compressor.join", begin_join },
    { "compressor.fetch", begin_fetch },
    { "compressor.state", begin_state },
    { NULL, NULL },
};

static int put (struct document_root *root, const struct document_root_task *read)
{
    struct document_root_task *copy = malloc (sizeof (*copy));

    if (!copy)
        return -1;
    *copy = *read;
    idt_msg_ref (copy->msg);
    stored_document_ref (copy->doc);
    if (drr_queue_put (root->reads, read->doc ? (uint64_t)read->doc->id : LIST_KEY, copy, (uint32_t)read->cost) < 0) {
        int saved = errno == EXFULL ? EAGAIN : errno;
        read_destroy (copy);
        return errset (saved);
    }
    idt_watcher_start (root->reads_prepare);
    idt_watcher_start (root->reads_idle);
    return 0;
}

/* Whether a join creates its document, because the document does not exist or is not stored yet. */
static bool makes_document (const struct document_root_method *method, const struct document_root_task *read,
                            int errnum)
{
    return method->begin == begin_join && (read->doc ? read->doc->form_seq < 0 : errnum == ENOENT);
}

bool document_root_read (struct document_root *root, const idt_msg_t *msg)
{
    const struct document_root_method *method = document_root_find_method (methods, msg);
    idt_error_t error = { "" };
    struct document_root_task read;

    if (!method)
        return false;
    int rc = document_root_begin (root, method, &read, msg, &error), errnum = errno;
    if (makes_document (method, &read, errnum) || (rc < 0 && document_root_must_confirm (root, errnum)))
        return false;
    if (rc < 0)
        service_respond_error (root->service, msg, errnum, error.text);
    else if (read.doc && read.doc->form_seq < 0)
        service_respond_error (root->service, msg, EAGAIN, "the document is being created: try again");
    else if (put (root, &read) < 0)
        service_respond_error (root->service, msg, errno,
                               "too many requests wait for rank 0 (compressor.max-waiting): try again later");
    return true;
}

/* --- turns --------------------------------------------------------------------------------------------- */

/* Runs before the reactor would sleep. The idle watcher keeps the reactor from sleeping while reads wait. */
static void prepare_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct document_root *root = arg;
    struct document_root_task *read;
    size_t bytes = 0;

    while (bytes < TURN_BYTES && (read = drr_queue_next (root->reads))) {
        bytes += read->cost;
        document_root_answer (root, read);
        read_destroy (read);
    }
    if (drr_queue_count (root->reads) == 0) {
        idt_watcher_stop (root->reads_prepare);
        idt_watcher_stop (root->reads_idle);
    }
}

static void idle_cb (idt_watcher_t *w, int revents, void *arg)
{
}

int document_root_reads_init (struct document_root *root)
{
    idt_reactor_t *r = idt_get_reactor (root->service->h);

    if (!(root->reads = drr_queue_create (QUANTUM, root->service->options.max_waiting, 0))
        || !(root->reads_prepare = idt_prepare_watcher_create (r, prepare_cb, root))
        || !(root->reads_idle = idt_idle_watcher_create (r, idle_cb, root)))
        return -1;
    return 0;
}

static void stop_read (void *item, void *arg)
{
    struct document_root_task *read = item;

    service_respond_error (arg, read->msg, EHOSTUNREACH, SERVICE_STOPPING);
    read_destroy (read);
}

void document_root_reads_fini (struct document_root *root)
{
    if (root->reads)
        drr_queue_drain (root->reads, stop_read, root->service);
    drr_queue_destroy (root->reads);
    idt_watcher_destroy (root->reads_prepare);
    idt_watcher_destroy (root->reads_idle);
    for (uint32_t i = 0; i < root->ndocs; i++)
        document_root_reads_forget (root, root->docs[i]);
}
