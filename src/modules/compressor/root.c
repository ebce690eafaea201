/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* root.c - rank 0: requests in groups, each stored before anything of it is told
 *
 * A group is all requests that came while the one before it was stored.  It is done in three steps: each request does
 * to the documents what it asks for (begin); what changed is committed; then events are published, and when the broker
 * has taken them, requests are answered (finish).  So an answer never comes before its event, and between two groups
 * documents are as they are stored.
 *
 * While a commit fails it is tried again each SERVICE_PAUSE_MS; its requests have been told why, and so is who comes
 * meanwhile.  Whoever repeats a range afterwards finds it ordered.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <syslog.h>
#include <unistd.h>

#include "libutil/errprintf.h"
#include "modules/compressor/service.h"
#include "modules/compressor/store.h"

#define GROUP_MAX 1024 /* requests */

struct root_document {
    int64_t id;
    char name[WIRE_NAME_MAX + 1];
    char uuid[IDCOMP_UUID_TEXT];
    struct orderer *orderer;
    int64_t form_seq; /* of the stored form; -1: none is stored */
};

/* A request of the group.  finish () answers it. */
struct task {
    const idt_msg_t *msg;
    void (*finish) (struct root *root, struct task *task);
    struct root_document *doc;
    int64_t from;
    json_t *results;
};

struct root {
    struct service *service;
    struct orderer_limits limits;
    struct root_document **docs;
    uint32_t ndocs;

    struct store *store;
    idt_watcher_t *store_watcher;

    struct fifo waiting; /* requests for the next group */
    struct task tasks[GROUP_MAX];
    size_t ntasks;
    struct store_change *changes;
    struct root_document **changed; /* the document of each change */
    size_t nchanges;
    bool committing;
    size_t publishing; /* events that the broker has not taken yet */
    int failing;       /* errno of the last commit; 0: it was good */
    idt_error_t why;

    uint64_t groups, ranges, repeated, refused, events, failures;
};

static void root_turn (struct root *root);

/* --- documents ------------------------------------------------------------------------------------------- */

static struct root_document *find (struct root *root, const char *name)
{
    for (uint32_t i = 0; i < root->ndocs; i++)
        if (strcmp (root->docs[i]->name, name) == 0)
            return root->docs[i];
    return NULL;
}

static void document_free (struct root_document *doc)
{
    if (doc)
        orderer_destroy (doc->orderer);
    free (doc);
}

/* Add a document.  Returns NULL with errno set. */
static struct root_document *add_document (struct root *root, const struct store_document *d)
{
    struct root_document *doc = calloc (1, sizeof (*doc));
    struct root_document **docs = realloc (root->docs, (root->ndocs + 1) * sizeof (docs[0]));

    if (docs)
        root->docs = docs;
    if (!doc || !docs || !(doc->orderer = orderer_create (&root->limits, d->form, d->form_size, d->seq))) {
        document_free (doc);
        return NULL;
    }
    doc->id = d->id;
    snprintf (doc->name, sizeof (doc->name), "%s", d->name);
    snprintf (doc->uuid, sizeof (doc->uuid), "%s", d->uuid);
    doc->form_seq = d->seq;
    return root->docs[root->ndocs++] = doc;
}

/* Make a document, from a stored form or empty (NULL).  Returns NULL with errno set and 'errp' filled. */
static struct root_document *new_document (struct root *root, const char *name, const void *form, size_t size,
                                      idt_error_t *errp)
{
    int64_t last = root->ndocs > 0 ? root->docs[root->ndocs - 1]->id : 0;
    struct store_document d = { .id = last + 1, .name = name, .form = form, .form_size = size };
    char text[IDCOMP_UUID_TEXT];
    unsigned char random[16];
    struct root_document *doc;

    if (wire_check_name (name, errp) < 0)
        return NULL;
    if (root->ndocs >= root->service->options.max_documents) {
        errno = EDQUOT;
        errprintf (errp, "there are compressor.max-documents documents: no more can be made");
        return NULL;
    }
    if (getrandom (random, sizeof (random), 0) != sizeof (random)) {
        errprintf (errp, "no random numbers: %s", strerror (errno));
        return NULL;
    }
    struct idcomp_uuid uuid = idcomp_uuid_random (random);
    idcomp_uuid_format (&uuid, text);
    d.uuid = text;
    if (!(doc = add_document (root, &d))) {
        errprintf (errp, "%s: %s", name, idcomp_strerror (errno));
        errno = idcomp_errno (errno);
        return NULL;
    }
    doc->form_seq = -1;
    return doc;
}

/* --- the group: answers ------------------------------------------------------------------------------------ */

static char *pack_state (const struct root_document *doc)
{
    size_t size;
    void *form = orderer_save (doc->orderer, &size);
    char *s = form ? wire_state (doc->name, doc->uuid, orderer_seq (doc->orderer), form, size) : NULL;

    free (form);
    return s;
}

static const char *text_cb (void *arg, int64_t seq)
{
    return orderer_range (arg, seq);
}

/* How many ranges from 'first' on go into one message: one, or as many as fit. */
static size_t count_ranges (const struct orderer *o, int64_t first)
{
    size_t n = 0, bytes = 0;

    while (n < RELAY_BATCH_RANGES && first + (int64_t)n <= orderer_seq (o)) {
        bytes += strlen (orderer_range (o, first + (int64_t)n)) + 1;
        if (n > 0 && bytes > RELAY_BATCH_BYTES)
            break;
        n++;
    }
    return n;
}

static void finish_order (struct root *root, struct task *task)
{
    service_respond_object (root->service, task->msg, json_pack ("{s:O}", "results", task->results));
}

static void finish_join (struct root *root, struct task *task)
{
    service_respond_new (root->service, task->msg, pack_state (task->doc));
}

static void finish_create (struct root *root, struct task *task)
{
    service_respond_object (root->service, task->msg,
                            json_pack ("{s:s s:s s:i}", "document", task->doc->name, "uuid", task->doc->uuid, "seq", 0));
}

static void finish_fetch (struct root *root, struct task *task)
{
    const struct root_document *doc = task->doc;
    int64_t newest = orderer_seq (doc->orderer);

    if (task->from <= newest && !orderer_range (doc->orderer, task->from))
        service_respond_new (root->service, task->msg, pack_state (doc));
    else
        service_respond_new (root->service, task->msg,
                             wire_ranges (doc->name, doc->uuid, newest, task->from,
                                          count_ranges (doc->orderer, task->from), text_cb, doc->orderer));
}

static json_t *describe (const struct root_document *doc)
{
    struct idcomp_stats s = idcomp_stats (orderer_ids (doc->orderer));

    return json_pack ("{s:s s:s s:I s:I s:I s:I}", "document", doc->name, "uuid", doc->uuid, "seq",
                      (json_int_t)orderer_seq (doc->orderer), "finals", (json_int_t)s.allocated_finals, "sessions",
                      (json_int_t)s.sessions - 1, "clusters", (json_int_t)s.clusters);
}

static void finish_list (struct root *root, struct task *task)
{
    json_t *list = json_array ();

    for (uint32_t i = 0; list && i < root->ndocs; i++)
        json_array_append_new (list, describe (root->docs[i]));
    service_respond_object (root->service, task->msg, json_pack ("{s:o}", "documents", list));
}

static void task_end (struct task *task)
{
    idt_msg_unref (task->msg);
    json_decref (task->results);
}

static void finish_group (struct root *root)
{
    for (size_t i = 0; i < root->ntasks; i++) {
        root->tasks[i].finish (root, &root->tasks[i]);
        task_end (&root->tasks[i]);
    }
    root->ntasks = 0;
}

static void fail_group (struct root *root, int errnum, const char *text)
{
    for (size_t i = 0; i < root->ntasks; i++) {
        service_respond_error (root->service, root->tasks[i].msg, errnum, text);
        task_end (&root->tasks[i]);
    }
    root->ntasks = 0;
}

/* --- the group: what cannot be stored ------------------------------------------------------------------------ */

/* The same answer for each element of an order; NULL where there are none. */
static json_t *fail_elements (const json_t *batch, int errnum, const char *text)
{
    json_t *results = json_is_array (batch) ? json_array () : NULL;

    for (size_t i = 0; results && i < json_array_size (batch); i++)
        json_array_append_new (results, json_pack ("{s:i s:s}", "errnum", errnum, "text", text));
    return results;
}

/* Tell why nothing is stored.  An order succeeds as a whole and its elements fail: so the reason comes to those who made
 * them, instead of their trying as if rank 0 were not reached.
 */
static void refuse (struct root *root, const idt_msg_t *msg)
{
    json_t *o = idt_msg_json (msg, NULL), *results = fail_elements (json_object_get (o, "batch"), root->failing, root->why.text);

    if (results)
        service_respond_object (root->service, msg, json_pack ("{s:o}", "results", results));
    else
        service_respond_error (root->service, msg, root->failing, root->why.text);
    json_decref (o);
}

static void refuse_all (struct root *root)
{
    const idt_msg_t *msg;

    for (size_t i = 0; i < root->ntasks; i++) {
        refuse (root, root->tasks[i].msg);
        task_end (&root->tasks[i]);
    }
    root->ntasks = 0;
    while ((msg = fifo_pop (&root->waiting))) {
        refuse (root, msg);
        idt_msg_unref (msg);
    }
}

/* --- the group: what is asked for --------------------------------------------------------------------------- */

/* Order the ranges of an element.  Returns 0, or -1 with errno set and 'errp' filled; those before the one that is
 * refused are ordered then.
 */
static int order_element (struct root *root, const json_t *element, struct root_document **doc, idt_error_t *errp)
{
    const char *name = json_string_value (json_object_get (element, "document"));
    const char *uuid = json_string_value (json_object_get (element, "uuid"));
    struct idcomp_range range;
    size_t i;
    json_t *o;

    errno = ENOENT;
    if (!name || !(*doc = find (root, name)))
        return errprintf (errp, "there is no document '%.100s'", name ? name : "");
    errno = ESTALE;
    if (!uuid || strcmp (uuid, (*doc)->uuid) != 0)
        return errprintf (errp, "document '%s' has another UUID than the one that was joined", name);
    json_array_foreach (json_object_get (element, "ranges"), i, o) {
        if (wire_get_range (o, &range, errp) < 0)
            return -1;
        int rc = orderer_add ((*doc)->orderer, &range, errp);
        idcomp_range_fini (&range);
        if (rc < 0)
            return -1;
        *(rc ? &root->ranges : &root->repeated) += 1;
    }
    return 0;
}

static json_t *pack_result (struct root *root, const json_t *element)
{
    struct root_document *doc = NULL;
    idt_error_t error = { "" };

    if (order_element (root, element, &doc, &error) == 0)
        return json_pack ("{s:I}", "seq", (json_int_t)orderer_seq (doc->orderer));
    root->refused++;
    return json_pack ("{s:i s:s}", "errnum", errno, "text", error.text);
}

static int begin_order (struct root *root, struct task *task, const json_t *o, idt_error_t *errp)
{
    json_t *batch = json_object_get (o, "batch"), *element;
    size_t i;

    if (!json_is_array (batch) || !(task->results = json_array ())) {
        errno = EPROTO;
        return errprintf (errp, "batch must be an array of elements");
    }
    json_array_foreach (batch, i, element)
        json_array_append_new (task->results, pack_result (root, element));
    task->finish = finish_order;
    return 0;
}

/* The name in a request; NULL with errno set and 'errp' filled. */
static const char *get_name (const json_t *o, idt_error_t *errp)
{
    const char *name = json_string_value (json_object_get (o, "document"));

    if (!name) {
        errno = EPROTO;
        errprintf (errp, "document must be a string");
    }
    return name;
}

static int begin_join (struct root *root, struct task *task, const json_t *o, idt_error_t *errp)
{
    const char *name = get_name (o, errp);

    if (!name || (!(task->doc = find (root, name)) && !(task->doc = new_document (root, name, NULL, 0, errp))))
        return -1;
    task->finish = finish_join;
    return 0;
}

static int begin_create (struct root *root, struct task *task, const json_t *o, idt_error_t *errp)
{
    const char *name = get_name (o, errp), *state = json_string_value (json_object_get (o, "state"));
    size_t size = 0;
    void *form = NULL;

    if (!name)
        return -1;
    if (find (root, name)) {
        errno = EEXIST;
        return errprintf (errp, "there is a document '%s' already", name);
    }
    if (state && !(form = wire_get_form (state, &size))) {
        errprintf (errp, "state: %s", idcomp_strerror (errno));
        errno = idcomp_errno (errno);
        return -1;
    }
    task->doc = new_document (root, name, form, size, errp);
    int saved = errno;
    free (form);
    errno = saved;
    task->finish = finish_create;
    return task->doc ? 0 : -1;
}

static int begin_fetch (struct root *root, struct task *task, const json_t *o, idt_error_t *errp)
{
    const char *name = get_name (o, errp), *uuid = json_string_value (json_object_get (o, "uuid"));

    if (!name)
        return -1;
    errno = ENOENT;
    if (!(task->doc = find (root, name)))
        return errprintf (errp, "there is no document '%.100s'", name);
    errno = ESTALE;
    if (!uuid || strcmp (uuid, task->doc->uuid) != 0)
        return errprintf (errp, "document '%s' has another UUID than the one that was joined", name);
    task->from = json_integer_value (json_object_get (o, "from"));
    errno = EINVAL;
    if (task->from < 1)
        return errprintf (errp, "from must be the number of a range, from 1 on");
    task->finish = finish_fetch;
    return 0;
}

static int begin_list (struct root *root, struct task *task, const json_t *o, idt_error_t *errp)
{
    task->finish = finish_list;
    return 0;
}

static const struct {
    const char *topic;
    int (*begin) (struct root *root, struct task *task, const json_t *o, idt_error_t *errp);
} methods[] = {
    { "compressor.order", begin_order }, { "compressor.join", begin_join },   { "compressor.fetch", begin_fetch },
    { "compressor.list", begin_list },   { "compressor.create", begin_create },
};

static int begin (struct root *root, struct task *task, idt_error_t *errp)
{
    json_t *o = idt_msg_json (task->msg, errp);
    int rc = -1;

    for (size_t i = 0; o && i < sizeof (methods) / sizeof (methods[0]); i++)
        if (strcmp (idt_msg_topic (task->msg), methods[i].topic) == 0)
            rc = methods[i].begin (root, task, o, errp);
    int saved = errno;
    json_decref (o);
    errno = saved;
    return rc;
}

static void begin_task (struct root *root, const idt_msg_t *msg)
{
    struct task *task = &root->tasks[root->ntasks];
    idt_error_t error = { "" };

    *task = (struct task){ .msg = msg };
    if (begin (root, task, &error) == 0) {
        root->ntasks++;
        return;
    }
    service_respond_error (root->service, msg, errno, error.text);
    task_end (task);
}

/* --- the group: what is stored -------------------------------------------------------------------------------- */

static bool has_changed (const struct root_document *doc)
{
    return doc->form_seq < 0 || orderer_seq (doc->orderer) > orderer_stored_seq (doc->orderer);
}

/* Whether it is time to write the stored form anew.  That costs as much as there are clusters. */
static bool form_is_due (struct root *root, const struct root_document *doc)
{
    int64_t since = orderer_seq (doc->orderer) - doc->form_seq;

    return doc->form_seq < 0
           || (since >= root->service->options.compact && since >= idcomp_stats (orderer_ids (doc->orderer)).clusters / 8);
}

static int make_change (struct root *root, struct root_document *doc, struct store_change *change)
{
    int64_t first = orderer_stored_seq (doc->orderer) + 1, n = orderer_seq (doc->orderer) + 1 - first;

    *change = (struct store_change){ .document = { .id = doc->id, .name = doc->name, .uuid = doc->uuid }, .first = first };
    if (form_is_due (root, doc)) {
        change->document.seq = orderer_seq (doc->orderer);
        if (!(change->document.form = orderer_save (doc->orderer, &change->document.form_size)) && doc->form_seq < 0)
            return -1;
    }
    if (n > 0 && !(change->ranges = calloc ((size_t)n, sizeof (change->ranges[0]))))
        return -1;
    change->nranges = (size_t)n;
    for (size_t i = 0; i < change->nranges; i++)
        change->ranges[i] = orderer_range (doc->orderer, first + (int64_t)i);
    return 0;
}

static void drop_changes (struct root *root)
{
    for (size_t i = 0; i < root->nchanges; i++) {
        free ((void *)root->changes[i].document.form);
        free (root->changes[i].ranges);
    }
    root->nchanges = 0;
}

/* Note what has to be stored.  Returns 0, or -1 with errno ENOMEM. */
static int collect_changes (struct root *root)
{
    size_t n = 0;

    for (uint32_t i = 0; i < root->ndocs; i++)
        n += has_changed (root->docs[i]);
    struct store_change *changes = realloc (root->changes, (n + 1) * sizeof (*changes));
    if (changes)
        root->changes = changes;
    struct root_document **changed = realloc (root->changed, (n + 1) * sizeof (changed[0]));
    if (changed)
        root->changed = changed;
    if (!changes || !changed)
        return -1;
    for (uint32_t i = 0; i < root->ndocs; i++) {
        if (!has_changed (root->docs[i]))
            continue;
        root->changed[root->nchanges] = root->docs[i];
        if (make_change (root, root->docs[i], &root->changes[root->nchanges++]) < 0)
            return -1;
    }
    return 0;
}

/* --- the group: what is published ------------------------------------------------------------------------------- */

static void end_group (struct root *root)
{
    finish_group (root);
    root_turn (root);
}

/* An event that could not be published leaves a gap, which is seen and filled. */
static void published_cb (idt_future_t *f, void *arg)
{
    struct up *up = arg;
    struct root *root = up->service->root;

    if (idt_future_errnum (f))
        idt_log (up->service->h, LOG_ERR, "cannot publish ranges: %s", idt_future_error (f));
    up_destroy (up);
    if (--root->publishing == 0)
        end_group (root);
}

static void publish (struct root *root, const struct root_document *doc, int64_t first, size_t n)
{
    char topic[sizeof (WIRE_EVENT_PREFIX) + WIRE_NAME_MAX];
    char *s = wire_ranges (doc->name, doc->uuid, -1, first, n, text_cb, doc->orderer);

    sprintf (topic, WIRE_EVENT_PREFIX "%s", doc->name);
    if (s && up_create (root->service, idt_event_publish (root->service->h, topic, IDT_MSGFLAG_PRIVATE, s), published_cb,
                        NULL) == 0)
        root->publishing++;
    else
        idt_log (root->service->h, LOG_ERR, "cannot publish ranges of %s: %s", doc->name, strerror (errno));
    root->events++;
    free (s);
}

/* The window is trimmed by orderer_stored (): what is to be published is taken before. */
static void publish_change (struct root *root, const struct store_change *change, struct root_document *doc)
{
    int64_t first = change->first;
    size_t n;

    while ((n = count_ranges (doc->orderer, first)) > 0) {
        publish (root, doc, first, n);
        first += (int64_t)n;
    }
    orderer_stored (doc->orderer);
    if (change->document.form)
        doc->form_seq = change->document.seq;
}

static void take_stored (struct root *root)
{
    if (root->failing)
        idt_log (root->service->h, LOG_NOTICE, "documents are stored again: ranges are ordered");
    root->failing = 0;
    root->groups++;
    for (size_t i = 0; i < root->nchanges; i++)
        publish_change (root, &root->changes[i], root->changed[i]);
    drop_changes (root);
    if (root->publishing == 0)
        end_group (root);
}

static void take_failed (struct root *root, int errnum, const idt_error_t *why)
{
    if (!root->failing || strcmp (root->why.text, why->text) != 0) /* not at each try */
        idt_log (root->service->h, LOG_CRIT, "%s: no ranges are ordered until they can be stored", why->text);
    root->failing = errnum;
    root->why = *why;
    root->failures++;
    refuse_all (root);
    service_arm (root->service);
}

static void store_done_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct root *root = arg;
    idt_error_t why;
    int rc = store_result (root->store, &why);

    if (rc == 0)
        return;
    root->committing = false;
    if (rc > 0)
        take_stored (root);
    else
        take_failed (root, errno, &why);
}

static void commit (struct root *root)
{
    root->committing = true;
    store_commit (root->store, root->changes, root->nchanges);
}

/* --- from group to group ------------------------------------------------------------------------------------------ */

static void start_group (struct root *root)
{
    const idt_msg_t *msg;

    while (root->ntasks < GROUP_MAX && (msg = fifo_pop (&root->waiting)))
        begin_task (root, msg);
    if (collect_changes (root) < 0) {
        drop_changes (root);
        take_failed (root, ENOMEM, &(idt_error_t){ "out of memory" });
    }
    else if (root->nchanges > 0)
        commit (root);
    else
        finish_group (root);
}

static void root_turn (struct root *root)
{
    while (!root->committing && root->publishing == 0 && !root->failing && root->waiting.count > 0)
        start_group (root);
}

void root_request (struct root *root, const idt_msg_t *msg)
{
    if (root->failing)
        refuse (root, msg);
    else if (service_queue (root->service, &root->waiting, msg) == 0)
        root_turn (root);
}

/* Try again what could not be stored, or not even be noted. */
void root_tick (struct root *root)
{
    if (!root->failing || root->committing)
        return;
    if (root->nchanges == 0 && collect_changes (root) < 0) {
        drop_changes (root);
        service_arm (root->service);
        return;
    }
    commit (root);
}

json_t *root_stats (const struct root *root)
{
    return json_pack ("{s:I s:I s:I s:I s:I s:I s:I s:s}", "documents", (json_int_t)root->ndocs, "groups",
                      (json_int_t)root->groups, "ranges", (json_int_t)root->ranges, "repeated", (json_int_t)root->repeated,
                      "refused", (json_int_t)root->refused, "events", (json_int_t)root->events, "failures",
                      (json_int_t)root->failures, "store", root->failing ? root->why.text : "good");
}

/* --- life ------------------------------------------------------------------------------------------------------------ */

static int read_document_cb (void *arg, const struct store_document *d, idt_error_t *errp)
{
    if (add_document (arg, d))
        return 0;
    errprintf (errp, "document %s: %s", d->name, idcomp_strerror (errno));
    errno = EBADMSG;
    return -1;
}

static int read_range_cb (void *arg, int64_t seq, const char *text, idt_error_t *errp)
{
    struct root *root = arg;
    struct root_document *doc = root->docs[root->ndocs - 1];
    struct idcomp_range range;

    if (idcomp_range_decode (text, strlen (text), &range) < 0)
        return errprintf (errp, "document %s, range %lld: %s", doc->name, (long long)seq, idcomp_strerror (errno));
    int rc = orderer_add (doc->orderer, &range, errp);
    idcomp_range_fini (&range);
    orderer_stored (doc->orderer);
    if (rc == 1)
        return 0;
    errno = EBADMSG;
    return rc < 0 ? -1 : errprintf (errp, "document %s, range %lld: it is there twice", doc->name, (long long)seq);
}

static int open_store (struct root *root, idt_error_t *errp)
{
    static const struct store_reader reader = { read_document_cb, read_range_cb };
    const struct options *o = &root->service->options;
    char host[64] = "?", holder[128];

    gethostname (host, sizeof (host) - 1);
    snprintf (holder, sizeof (holder), "process %d on %s", (int)getpid (), host);
    /* What is stored may be more than is allowed now. */
    root->limits = (struct orderer_limits){ .sessions = UINT32_MAX, .clusters = UINT32_MAX, .window = o->limits.window };
    root->store = store_open (o->statedir, holder, &reader, root, errp);
    root->limits = o->limits;
    return root->store ? 0 : -1;
}

void root_destroy (struct root *root)
{
    if (!root)
        return;
    int saved = errno;
    idt_watcher_destroy (root->store_watcher);
    fail_group (root, EHOSTUNREACH, SERVICE_STOPPING);
    service_respond_all (root->service, &root->waiting, EHOSTUNREACH, SERVICE_STOPPING);
    fifo_fini (&root->waiting);
    store_close (root->store);
    drop_changes (root);
    for (uint32_t i = 0; i < root->ndocs; i++)
        document_free (root->docs[i]);
    free (root->docs);
    free (root->changes);
    free (root->changed);
    free (root);
    errno = saved;
}

struct root *root_create (struct service *sv, idt_error_t *errp)
{
    struct root *root = calloc (1, sizeof (*root));

    if (!root) {
        errprintf (errp, "out of memory");
        return NULL;
    }
    root->service = sv;
    if (open_store (root, errp) < 0)
        goto error;
    root->store_watcher = idt_fd_watcher_create (idt_get_reactor (sv->h), store_fd (root->store), IDT_POLLIN, store_done_cb, root);
    if (!root->store_watcher) {
        errprintf (errp, "cannot start: %s", strerror (errno));
        goto error;
    }
    idt_watcher_start (root->store_watcher);
    return root;
error:
    root_destroy (root);
    return NULL;
}
