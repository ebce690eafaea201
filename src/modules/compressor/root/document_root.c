/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document_root.c - rank 0: handles requests in groups, and stores each group before its results are visible
 *
 * A group has all requests that arrived while the group before was stored. It has three steps. First each request
 * changes documents in memory (tasks.c). Then the changes are committed. Then events are published, and when the broker
 * has confirmed these events, the requests are answered. So an answer never arrives before its event, and between two
 * groups all documents are stored.
 *
 * A commit that fails is repeated every SERVICE_PAUSE_MS. At the first failure the requests of the group get the
 * reason. Requests that arrive before a commit succeeds get the reason, too. The ranges of the failed group stay
 * ordered in memory. If a client sends one of them again later, it counts as ordered before. Documents that the group
 * would have created are not created. A commit that takes longer than half of compressor.timeout counts as failing
 * until it ends.
 *
 * A store in a folder is open when the module has started. A store in PostgreSQL is opened while the broker starts;
 * until then requests wait, as for a commit. If it cannot be opened now, that is tried again each OPEN_PAUSE_MS. If a
 * store cannot be used at all, there are no documents, and requests get the reason. The broker is not affected.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "libsqlite/database.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "modules/compressor/root/private.h"

#define OPEN_PAUSE_MS 1000

static void document_root_turn (struct document_root *root);

/* --- a group: storing ----------------------------------------------------------------------------------------- */

static bool has_changed (const struct document_root *root, const struct stored_document *doc)
{
    return doc == root->edit.doc || doc->form_seq < 0 || orderer_seq (doc->orderer) > orderer_stored_seq (doc->orderer);
}

/* Whether to write the stored form again. The work for a form grows with the number of clusters, so documents with many
 * clusters get a new form more rarely.
 */
static bool form_is_due (struct document_root *root, const struct stored_document *doc)
{
    int64_t since = orderer_seq (doc->orderer) - doc->form_seq;

    return doc->form_seq < 0
           || (since >= root->service->options.compact
               && since >= idcomp_stats (orderer_ids (doc->orderer)).clusters / 8);
}

/* '*forms' are the bytes of the group's forms. */
static int make_change (struct document_root *root, struct stored_document *doc, struct document_store_change *change,
                        size_t *forms)
{
    int64_t first = orderer_stored_seq (doc->orderer) + 1, n = orderer_seq (doc->orderer) + 1 - first;

    *change = (struct document_store_change){
        .document = { .id = doc->id, .name = doc->name, .uuid = doc->uuid, .owner = doc->owner },
        .first = first,
        .arg = doc,
    };
    if (doc == root->edit.doc) {
        change->deleted = !*root->edit.name;
        change->new_name = change->deleted ? NULL : root->edit.name;
    }
    if (form_is_due (root, doc) && (doc->form_seq < 0 || *forms < GROUP_BYTES)) {
        change->document.seq = orderer_seq (doc->orderer);
        if (!(change->document.form = orderer_save (doc->orderer, &change->document.form_size)) && doc->form_seq < 0)
            return -1;
        *forms += change->document.form_size;
    }
    if (n > 0 && !(change->ranges = calloc ((size_t)n, sizeof (change->ranges[0]))))
        return -1;
    change->nranges = (size_t)n;
    for (size_t i = 0; i < change->nranges; i++)
        change->ranges[i] = orderer_range (doc->orderer, first + (int64_t)i);
    return 0;
}

static void drop_changes (struct document_root *root)
{
    for (size_t i = 0; i < root->nchanges; i++) {
        free ((void *)root->changes[i].document.form);
        free (root->changes[i].ranges);
    }
    root->nchanges = 0;
}

/* Collect the changes to store. Returns 0, or -1 with errno ENOMEM. */
static int collect_changes (struct document_root *root)
{
    size_t n = 0, forms = 0;

    for (uint32_t i = 0; i < root->ndocs; i++)
        n += has_changed (root, root->docs[i]);
    struct document_store_change *changes = realloc (root->changes, (n + 1) * sizeof (*changes));
    if (!changes)
        return -1;
    root->changes = changes;
    for (uint32_t i = 0; i < root->ndocs; i++)
        if (has_changed (root, root->docs[i])
            && make_change (root, root->docs[i], &changes[root->nchanges++], &forms) < 0)
            return -1;
    return 0;
}

/* --- a group: publishing ---------------------------------------------------------------------------------------- */

static void end_group (struct document_root *root)
{
    document_root_tasks_finish (root);
    document_root_turn (root);
}

/* The broker has confirmed an event, or has failed to publish it. If it failed, ranks notice the gap in the numbers and
 * fetch the ranges.
 */
static void published_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    struct compressor *sv = up->owner;
    struct document_root *root = sv->root;

    if (idt_future_errnum (f))
        idt_log (sv->h, LOG_ERR, "cannot publish ranges: %s", idt_future_error (f));
    upcall_destroy (up);
    if (--root->publishing == 0)
        end_group (root);
}

/* Publish an event of a document. 'text' is taken over; NULL means that memory was short. The requests of the group are
 * answered after the broker has confirmed the event.
 */
static void publish_new (struct document_root *root, const char *name, char *text)
{
    char topic[sizeof (DOCWIRE_EVENT_PREFIX) + DOCWIRE_NAME_MAX];

    sprintf (topic, DOCWIRE_EVENT_PREFIX "%s", name);
    if (text
        && service_upcall (root->service, idt_event_publish (root->service->h, topic, IDT_MSGFLAG_PRIVATE, text),
                           published_cb, NULL)
               == 0)
        root->publishing++;
    else
        idt_log (root->service->h, LOG_ERR, "cannot publish the change of document %s: %s", name, strerror (errno));
    root->events++;
    free (text);
}

static void publish (struct document_root *root, const struct stored_document *doc, int64_t first, size_t n)
{
    uint64_t digest = 0;
    bool known = orderer_digest (doc->orderer, first - 1, &digest) == 0;

    publish_new (root, doc->name,
                 docwire_ranges (doc->name, doc->uuid, known ? &digest : NULL, -1, first, n, document_root_range_text,
                                 doc->orderer));
}

/* Publish the ranges of a change, and then mark them as stored. The order matters, because orderer_stored () drops old
 * ranges, which may be among the published ones.
 */
static void publish_change (struct document_root *root, const struct document_store_change *change)
{
    struct stored_document *doc = change->arg;
    int64_t first = change->first;
    size_t n, bytes;

    if (change->deleted)
        return;
    while ((n = document_root_count_ranges (doc->orderer, first, orderer_seq (doc->orderer), &bytes)) > 0) {
        publish (root, doc, first, n);
        first += (int64_t)n;
    }
    orderer_stored (doc->orderer);
    if (change->document.form)
        doc->form_seq = change->document.seq;
}

/* Publish and apply the deletion or renaming of the group. A session that receives the event asks rank 0, and only the
 * answer of rank 0 has an effect.
 */
static void finish_edit (struct document_root *root)
{
    struct stored_document *doc = root->edit.doc;

    if (!doc)
        return;
    publish_new (root, doc->name, docwire_edit (doc->name, doc->uuid, root->edit.name));
    if (*root->edit.name)
        strcpy (doc->name, root->edit.name);
    else
        stored_document_remove (root, doc);
    root->edit.doc = NULL;
}

static void take_stored (struct document_root *root)
{
    if (root->told)
        idt_log (root->service->h, LOG_NOTICE, "documents are stored again: ranges are ordered");
    root->told = false;
    root->failing = 0;
    root->groups++;
    for (size_t i = 0; i < root->nchanges; i++)
        publish_change (root, &root->changes[i]);
    drop_changes (root);
    finish_edit (root);
    if (root->publishing == 0)
        end_group (root);
}

/* The errno of a failure in answers. Some values would tell sessions that their document does not exist. */
static int answered_errnum (int errnum)
{
    return errnum == 0 || docsession_is_final (errnum) ? EIO : errnum;
}

/* Report that the group cannot be stored now, and answer its requests and all waiting ones with the reason. */
static void fail (struct document_root *root, int errnum, const idt_error_t *why)
{
    if (!root->told || strcmp (root->why.text, why->text) != 0) /* log each reason once */
        idt_log (root->service->h, LOG_CRIT, "%s: no ranges are ordered until they can be stored", why->text);
    root->told = true;
    root->failing = answered_errnum (errnum);
    root->why = *why;
    root->failures++;
    document_root_refuse_all (root);
    service_arm (root->service);
}

/* The number of stored documents. Documents that the failed group would have created are at the end of the list. */
static uint32_t count_stored (const struct document_root *root)
{
    uint32_t n = root->ndocs;

    while (n > 0 && root->docs[n - 1]->form_seq < 0)
        n--;
    return n;
}

static void take_failed (struct document_root *root, int errnum, const idt_error_t *why)
{
    fail (root, errnum, why);
    drop_changes (root);
    root->edit.doc = NULL;
    document_root_documents_cut (root, count_stored (root));
    if (collect_changes (root) < 0)
        drop_changes (root); /* document_root_tick () tries again */
    else if (root->nchanges == 0)
        root->failing = 0; /* nothing is left to store, so the next request tries again */
}

/* The disk does not answer in time, so the result of the commit will be known later. Other ranks wait twice as long for
 * rank 0, so they get this reason before their timeout.
 */
static void take_late (struct document_root *root)
{
    idt_error_t why;

    document_store_late (root->store, root->service->options.timeout_ms / 2, &why);
    fail (root, ETIMEDOUT, &why);
}

/* --- opening the store ------------------------------------------------------------------------------------------ */

static void begin_work (struct document_root *root)
{
    assert (!root->committing && root->publishing == 0);
    root->committing = true;
    root->commit_us = clock_us (CLOCK_MONOTONIC);
    service_arm (root->service);
}

static void begin_opening (struct document_root *root)
{
    begin_work (root);
    document_root_documents_cut (root, 0);
    /* Read the documents without limits, because the limits may be lower now than when the documents were stored. */
    root->limits = (struct orderer_limits){ .sessions = UINT32_MAX,
                                            .clusters = UINT32_MAX,
                                            .window = root->service->options.limits.window };
    document_store_open (root->store);
}

static void tell_copied (const struct document_root *root)
{
    time_t at = document_store_copied (root->store);
    char date[32];
    struct tm tm;

    if (at > 0 && gmtime_r (&at, &tm) && strftime (date, sizeof (date), "%FT%TZ", &tm) > 0)
        idt_log (
            root->service->h, LOG_WARNING,
            "documents are a copy of %s: each has a new UUID now, and sessions of the original documents are refused",
            date);
}

/* Whether opening the store again would fail again. A store in a folder is opened once. */
static bool cannot_be_opened (const struct document_root *root, int errnum)
{
    return !root->service->options.place.store || errnum == EBADMSG || errnum == STATE_REFUSED || errnum == ENOSYS
           || errnum == EINVAL || errnum == EAGAIN;
}

/* A store that cannot be used is handled like a disk that always fails. */
static void give_up (struct document_root *root, int errnum, const idt_error_t *why)
{
    root->why = *why;
    root->failing = answered_errnum (errnum);
    root->told = true;
    idt_watcher_destroy (root->store_watcher);
    root->store_watcher = NULL;
    document_store_close (root->store);
    root->store = NULL;
    document_root_documents_cut (root, 0);
    idt_log (root->service->h, LOG_CRIT, "%s: there are no documents until the compressor of rank 0 is reloaded",
             why->text);
    document_root_refuse_all (root);
}

/* The store is open: answer the requests that came before. */
static void take_opened (struct document_root *root)
{
    struct fifo early = root->waiting;
    const idt_msg_t *msg;

    root->open = true;
    root->failing = 0;
    root->limits = root->service->options.limits;
    tell_copied (root);
    if (root->told)
        idt_log (root->service->h, LOG_NOTICE, "documents are stored again: ranges are ordered");
    root->told = false;
    root->waiting = (struct fifo){ 0 };
    while ((msg = fifo_pop (&early))) {
        document_root_request (root, msg);
        idt_msg_unref (msg);
    }
    fifo_fini (&early);
}

static void end_opening (struct document_root *root, int rc, int errnum, const idt_error_t *why)
{
    root->committing = false;
    if (rc > 0)
        take_opened (root);
    else if (cannot_be_opened (root, errnum))
        give_up (root, errnum, why);
    else
        fail (root, errnum, why);
}

/* --- one commit after another ------------------------------------------------------------------------------------ */

static void store_done_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct document_root *root = arg;
    idt_error_t why;
    int rc = document_store_result (root->store, &why);

    if (rc == 0)
        return;
    if (!root->open) {
        end_opening (root, rc, errno, &why);
        return;
    }
    root->committing = false;
    uint64_t took_us = clock_us (CLOCK_MONOTONIC) - root->commit_us;
    if (rc > 0) {
        metrics_time (&root->commits, took_us);
        take_stored (root);
    }
    else
        take_failed (root, errno, &why);
}

static void commit (struct document_root *root)
{
    begin_work (root);
    document_store_commit (root->store, root->changes, root->nchanges);
}

/* --- one group after another -------------------------------------------------------------------------------------- */

static void start_group (struct document_root *root)
{
    const idt_msg_t *msg;
    size_t bytes = 0, size;

    root->confirm = false;
    while (root->ntasks < GROUP_MAX && bytes < GROUP_BYTES && !root->edit.doc && (msg = fifo_pop (&root->waiting))) {
        bytes += idt_msg_payload (msg, NULL, &size) == 0 ? size : 0;
        document_root_task_begin (root, msg);
    }
    if (collect_changes (root) < 0)
        take_failed (root, ENOMEM, &(idt_error_t){ "out of memory" });
    else if (root->nchanges > 0 || root->confirm)
        commit (root);
    else
        document_root_tasks_finish (root);
}

static void document_root_turn (struct document_root *root)
{
    while (!root->committing && root->publishing == 0 && !root->failing && root->waiting.count > 0)
        start_group (root);
}

void document_root_request (struct document_root *root, const idt_msg_t *msg)
{
    if (root->open && document_root_read (root, msg))
        return;
    if (root->failing)
        document_root_refuse (root, msg);
    else if (service_queue (root->service, &root->waiting, msg) == 0)
        document_root_turn (root);
}

/* Drop the waiting requests of a client. The orders of child brokers stay, because they contain ranges of several
 * clients.
 */
void document_root_forget (struct document_root *root, const idt_msg_t *disconnect)
{
    compressor_forget (&root->waiting, disconnect);
}

/* Try again to store the changes. If memory was too short to collect them before, collect them first. */
static void retry (struct document_root *root)
{
    if (!root->open) {
        if (clock_us (CLOCK_MONOTONIC) - root->commit_us >= OPEN_PAUSE_MS * 1000)
            begin_opening (root);
        service_arm (root->service);
        return;
    }
    if (root->nchanges == 0 && collect_changes (root) < 0) {
        drop_changes (root);
        service_arm (root->service);
        return;
    }
    commit (root);
}

void document_root_tick (struct document_root *root)
{
    if (!root->store)
        return;
    document_root_reads_tick (root);
    if (root->failing && !root->committing)
        retry (root);
    else if (root->committing) {
        if (!root->failing
            && clock_us (CLOCK_MONOTONIC) / 1000 - root->commit_us / 1000 >= root->service->options.timeout_ms / 2)
            take_late (root);
        service_arm (root->service);
    }
}

/* While the store is opened, its thread adds the documents. */
static uint32_t count_documents (const struct document_root *root)
{
    return root->open ? root->ndocs : 0;
}

json_t *document_root_stats (const struct document_root *root)
{
    return json_pack ("{s:I s:I s:I s:I s:I s:I s:I s:I s:s}", "documents", (json_int_t)count_documents (root),
                      "groups", (json_int_t)root->groups, "ranges", (json_int_t)root->ranges, "repeated",
                      (json_int_t)root->repeated, "refused", (json_int_t)root->refused, "events",
                      (json_int_t)root->events, "failures", (json_int_t)root->failures, "forms",
                      (json_int_t)root->forms, "store",
                      root->told   ? root->why.text
                      : root->open ? "good"
                                   : "being opened");
}

void document_root_report (const struct document_root *root, struct metrics *m)
{
    metrics_put_count (m, "compressor_documents", count_documents (root));
    metrics_put_count (m, "compressor_ranges", root->ranges);
    metrics_put_count (m, "compressor_ranges_repeated", root->repeated);
    metrics_put_count (m, "compressor_ranges_refused", root->refused);
    metrics_put_count (m, "compressor_queue", root->waiting.count);
    metrics_put_times (m, "compressor_store_seconds", "compressor_longest_store_seconds", &root->commits);
    metrics_put_count (m, "compressor_store_failures", root->failures);
    metrics_put_new (m, METRICS_MAX, "compressor_store_failing", json_integer (root->failing || !root->store));
}

/* --- start and end ------------------------------------------------------------------------------------------------ */

static int read_document_cb (void *arg, const struct document_store_document *d, idt_error_t *errp)
{
    if (stored_document_add (arg, d))
        return 0;
    return errsetf (errp, EBADMSG, "document %s: %s", d->name, idcomp_strerror (errno));
}

static int read_range_cb (void *arg, int64_t seq, const char *text, idt_error_t *errp)
{
    struct document_root *root = arg;
    struct stored_document *doc = root->docs[root->ndocs - 1];
    struct idcomp_range range;

    if (idcomp_range_parse (text, strlen (text), &range, NULL) < 0)
        return errprintf (errp, "document %s, range %lld: %s", doc->name, (long long)seq, idcomp_strerror (errno));
    int rc = orderer_add (doc->orderer, &range, errp);
    idcomp_range_fini (&range);
    orderer_stored (doc->orderer);
    if (rc == 1)
        return 0;
    errno = EBADMSG;
    return rc < 0 ? -1 : errprintf (errp, "document %s, range %lld: it is stored twice", doc->name, (long long)seq);
}

static int open_store (struct document_root *root, idt_error_t *errp)
{
    static const struct document_store_reader reader = { read_document_cb, read_range_cb };
    const struct module_place *place = &root->service->options.place;
    char holder[DATABASE_HOLDER_MAX];

    database_holder (holder, NULL);
    if (!(root->store = document_store_create (place, holder, &reader, root, errp)))
        return -1;
    begin_opening (root);
    if (!place->store) {
        int rc = document_store_wait (root->store, errp);
        end_opening (root, rc, errno, errp);
    }
    return 0;
}

void document_root_destroy (struct document_root *root)
{
    if (!root)
        return;
    int saved = errno;
    idt_watcher_destroy (root->store_watcher);
    if (!root->open) { /* its thread may be adding documents */
        document_store_close (root->store);
        root->store = NULL;
    }
    document_root_reads_fini (root);
    document_root_tasks_stop (root);
    service_respond_all (root->service, &root->waiting, EHOSTUNREACH, SERVICE_STOPPING);
    fifo_fini (&root->waiting);
    document_store_close (root->store);
    drop_changes (root);
    document_root_documents_cut (root, 0);
    free (root->docs);
    free (root->changes);
    free (root);
    errno = saved;
}

struct document_root *document_root_create (struct compressor *sv, idt_error_t *errp)
{
    struct document_root *root = calloc (1, sizeof (*root));
    idt_error_t why = { "" };

    if (!root) {
        errprintf (errp, "out of memory");
        return NULL;
    }
    root->service = sv;
    if (open_store (root, &why) < 0) {
        *errp = why;
        document_root_destroy (root);
        return NULL;
    }
    if (!root->store)
        return root;
    root->store_watcher = idt_fd_watcher_create (idt_get_reactor (sv->h), document_store_fd (root->store), IDT_POLLIN,
                                                 store_done_cb, root);
    if (!root->store_watcher || document_root_reads_init (root) < 0) {
        errprintf (errp, "cannot start: %s", strerror (errno));
        document_root_destroy (root);
        return NULL;
    }
    idt_watcher_start (root->store_watcher);
    return root;
}
