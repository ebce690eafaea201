/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* notify.c - rank 0: requests of consumers and other clients, and the answers to them
 *
 * The first answer to a consumer has the consumer's number and no jobs. In a shared store it waits for a read, too: a
 * rank 0 that was replaced, and does not know it, knows an older visible id (J_FIRST). Jobspecs are copied into answers
 * as text. They need no check here, because the rank where a job was submitted has checked that its jobspec is JSON.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libidtree/json.h"
#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "modules/ingest/root/private.h"

#define LIST_MAX 1000
#define LIST_DEFAULT 100
#define LIST_BYTES (1u << 20)
#define NOT_SHOWN "id: is above what any consumer was shown"
#define STOPPING "job-ingest of rank 0 is stopping"

struct consumer {
    const idt_msg_t *msg;
    bool specs;
    bool waits; /* for the first answer */
};

/* A client's read that waits: ingest.get (with read.one), ingest.list, or an ingest.ack that is refused after it. */
struct notify_ask {
    const idt_msg_t *msg;
    struct job_store_read read;
    bool refuses;
};

/* --- reading requests ----------------------------------------------------------------------------------------- */

/* Read an id: a string in any text form, or an integer. If it is missing, '*id' is unchanged. */
static int get_id (const json_t *o, const char *name, uint64_t *id, idt_error_t *errp)
{
    const json_t *v = json_object_get (o, name);
    fluid_t found;

    if (!v)
        return 0;
    if (json_is_integer (v) && json_integer_value (v) >= 0) {
        *id = (uint64_t)json_integer_value (v);
        return 0;
    }
    if (!json_is_string (v) || fluid_parse (json_string_value (v), json_string_length (v), &found, NULL) < 0)
        return errsetf (errp, EINVAL, "%s: must be an id", name);
    *id = found;
    return 0;
}

static int get_number (const json_t *o, const char *name, uint32_t max, uint32_t *value, idt_error_t *errp)
{
    const json_t *v = json_object_get (o, name);

    if (!v)
        return 0;
    if (!json_is_integer (v) || json_integer_value (v) < 1 || json_integer_value (v) > max)
        return errsetf (errp, EINVAL, "%s: must be an integer from 1 to %" PRIu32, name, max);
    *value = (uint32_t)json_integer_value (v);
    return 0;
}

/* Read a boolean. If it is missing, '*value' is unchanged. */
static int get_switch (const json_t *o, const char *name, bool *value, idt_error_t *errp)
{
    const json_t *v = json_object_get (o, name);

    if (v && !json_is_boolean (v))
        return errsetf (errp, EINVAL, "%s: must be true or false", name);
    *value = v ? json_is_true (v) : *value;
    return 0;
}

static int check_store (const struct job_root *root, idt_error_t *errp)
{
    return root->store ? 0 : errsetf (errp, EIO, "%s", root->why.text);
}

/* Handle a request: 'f' reads the payload and takes the request in. If 'f' returns -1, the request is answered with
 * errno and the text in 'errp'.
 */
static void take (struct job_root *root, const idt_msg_t *msg,
                  int (*f) (struct job_root *root, const idt_msg_t *msg, const json_t *o, idt_error_t *errp))
{
    idt_error_t error = { "" };
    json_t *o = idt_msg_json (msg, &error);

    if (!o || f (root, msg, o, &error) < 0)
        module_respond_error (root->service->h, msg, errno, error.text);
    json_decref (o);
    job_root_turn (root);
}

/* --- jobs as JSON ----------------------------------------------------------------------------------------------- */

/* Write the key of a job. A key that begins with a NUL was made from a nonce. It is not text, so it is left out. */
static void put_key (FILE *f, const struct job *job)
{
    json_t *s = job->key_size > 0 && *(const char *)job->key ? json_stringn (job->key, job->key_size) : NULL;
    char *text = s ? json_dumps (s, JSON_ENCODE_ANY) : NULL;

    if (text)
        fprintf (f, ",\"key\":%s", text);
    free (text);
    json_decref (s);
}

static void put_job (FILE *f, const struct job *job)
{
    char id[FLUID_TEXT_MAX];

    fluid_format (job->id, FLUID_F58, id, sizeof (id));
    fprintf (f, "\"id\":\"%s\",\"userid\":%" PRIu32 ",\"urgency\":%u,\"flags\":%" PRIu32, id, job->userid, job->urgency,
             job->flags);
    put_key (f, job);
    if (job->spec_size > 0)
        fprintf (f, ",\"jobspec\":%.*s", (int)job->spec_size, job->spec);
}

static void put_jobs (FILE *f, struct jobwire_reader *r)
{
    struct job job;

    fputs ("\"jobs\":[", f);
    for (bool first = true; jobwire_next_job (r, &job); first = false) {
        fputs (first ? "{" : ",{", f);
        put_job (f, &job);
        fputc ('}', f);
    }
    fputc (']', f);
}

static void put_id (FILE *f, const char *name, uint64_t id)
{
    char text[FLUID_TEXT_MAX];

    fluid_format (id, FLUID_F58, text, sizeof (text));
    fprintf (f, ",\"%s\":\"%s\"", name, text);
}

static struct jobwire_reader found (const struct job_store_read *read)
{
    struct jobwire_reader r;

    jobwire_buf_reader (&read->found, &r);
    return r;
}

/* The id up to which all stored jobs are visible. This stays true in the next life, because the line of the next life
 * begins at the newest stored id.
 */
static uint64_t shown (const struct job_root *root)
{
    return min_u64 (root->line.shown, root->counts.newest);
}

/* --- consumers ---------------------------------------------------------------------------------------------------- */

static void send_jobs (struct job_root *root, const struct watcher *w, struct jobwire_reader jobs)
{
    const struct consumer *c = watcher_owner (w);
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream (&text, &size);

    if (f) {
        fprintf (f, "{\"watch\":%" PRIu64 ",", watcher_number (w));
        put_jobs (f, &jobs);
        put_id (f, "shown", shown (root));
        fputc ('}', f);
    }
    if (!f || fclose (f) != 0)
        idt_respond_error (root->service->h, c->msg, ENOMEM, NULL);
    else
        idt_respond (root->service->h, c->msg, text);
    free (text);
}

static void consumer_destroy (struct job_root *root, struct watcher *w)
{
    struct consumer *c = watcher_owner (w);

    job_watch_remove (root->watch, w);
    root->nconsumers--;
    idt_msg_unref (c->msg);
    free (c);
}

static int add_consumer (struct job_root *root, const idt_msg_t *msg, const json_t *o, idt_error_t *errp)
{
    uint64_t after = root->counts.acked;
    uint32_t window = 0;
    bool specs = true;
    struct consumer *c;
    struct watcher *w;

    if (!idt_msg_has_flag (msg, IDT_MSGFLAG_STREAMING))
        return errsetf (errp, EPROTO, "ingest.watch has many answers: send it as a streaming request");
    if (get_id (o, "after", &after, errp) < 0 || get_number (o, "window", JOB_WATCH_WINDOW_MAX, &window, errp) < 0
        || get_switch (o, "jobspec", &specs, errp) < 0 || check_store (root, errp) < 0)
        return -1;
    if (!(c = calloc (1, sizeof (*c))))
        return errsetf (errp, ENOMEM, "out of memory");
    if (!(w = job_watch_add (root->watch, after, window, c))) {
        free (c);
        return errprintf (errp, "there are already %d consumers, which is the limit", JOB_WATCH_MAX);
    }
    c->msg = idt_msg_ref (msg);
    c->specs = specs;
    root->nconsumers++;
    c->waits = root->service->options.place.store != NULL;
    if (c->waits)
        job_watch_ask (w);
    else
        send_jobs (root, w, (struct jobwire_reader){ 0 });
    return 0;
}

void job_root_watch_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    take (arg, msg, add_consumer);
    job_root_look (arg);
}

/* Send the jobs of a read to a consumer. If the read failed, all later reads may fail, too. So the consumer gets the
 * error, which ends its stream.
 */
static void end_watch (struct job_root *root, struct watcher *w, const struct job_store_read *read)
{
    struct consumer *c = watcher_owner (w);
    struct jobwire_reader jobs = found (read);

    if (read->errnum) {
        module_respond_error (root->service->h, c->msg, read->errnum, read->error.text);
        consumer_destroy (root, w);
        return;
    }
    if (c->waits)
        send_jobs (root, w, (struct jobwire_reader){ 0 });
    c->waits = false;
    if (jobs.count > 0)
        send_jobs (root, w, jobs);
    job_watch_sent (root->watch, w, read->upto, &jobs);
}

/* --- reads of clients -------------------------------------------------------------------------------------------- */

static void ask_destroy (struct job_root *root, struct notify_ask *a)
{
    quota_give (&root->reads_quota, idt_msg_cred (a->msg));
    idt_msg_unref (a->msg);
    free (a);
}

/* The key by which users take turns. All requests of a user have the same key, on all its connections. The owner and
 * brokers share one key.
 */
static uint64_t user_key (const idt_msg_t *msg)
{
    struct idt_cred user = idt_msg_cred (msg);

    return user.rolemask & (IDT_ROLE_OWNER | IDT_ROLE_BROKER) ? UINT64_MAX : user.userid;
}

static int add_ask (struct job_root *root, const idt_msg_t *msg, const struct job_store_read *read, bool refuses,
                    idt_error_t *errp)
{
    struct notify_ask *a;

    if (check_store (root, errp) < 0)
        return -1;
    if (quota_take (&root->reads_quota, idt_msg_cred (msg), errp) < 0)
        return -1;
    if (!(a = calloc (1, sizeof (*a))) || drr_queue_put (root->asks, user_key (msg), a, 1) < 0) {
        free (a);
        quota_give (&root->reads_quota, idt_msg_cred (msg));
        return errsetf (errp, ENOMEM, "out of memory");
    }
    a->msg = idt_msg_ref (msg);
    a->read = *read;
    a->refuses = refuses;
    return 0;
}

/* --- acknowledgements -------------------------------------------------------------------------------------------- */

/* Confirm jobs for a consumer. The consumer must belong to the client that sends the request, because numbers start
 * from 1 in each life: a number of an earlier life may now name the consumer of another client. Number 0 names no
 * consumer, and confirms nothing.
 */
static int confirm (struct job_root *root, const idt_msg_t *msg, const json_t *number, uint64_t id, idt_error_t *errp)
{
    json_int_t n = json_integer_value (number);
    struct watcher *w = job_watch_find (root->watch, (uint64_t)n);

    if (!json_is_integer (number) || n < 0)
        return errsetf (errp, EINVAL, "watch: must be the number of a consumer");
    if (n == 0)
        return 0;
    if (!w || !module_same_client (((struct consumer *)watcher_owner (w))->msg, msg))
        return errsetf (errp, ENOENT, "watch: %" JSON_INTEGER_FORMAT " is not a consumer of this client", n);
    if (job_watch_confirm (root->watch, w, id) < 0)
        return errsetf (errp, EINVAL, "id: consumer %" JSON_INTEGER_FORMAT " was not sent jobs up to this id", n);
    return 0;
}

/* Refuse the acknowledgement of a job that no consumer was shown. In a shared store another rank 0 may have shown it.
 * So a read must find first that this one was not replaced.
 */
static int refuse_ack (struct job_root *root, const idt_msg_t *msg, uint64_t id, idt_error_t *errp)
{
    struct job_store_read read = { .one = true, .upto = id, .max_jobs = 1, .max_bytes = 1 };

    if (!root->service->options.place.store)
        return errsetf (errp, EINVAL, NOT_SHOWN);
    return add_ask (root, msg, &read, true, errp);
}

static int take_ack (struct job_root *root, const idt_msg_t *msg, const json_t *o, idt_error_t *errp)
{
    const json_t *number = json_object_get (o, "watch");
    uint64_t id = 0;
    bool keep = false;

    if (get_id (o, "id", &id, errp) < 0 || get_switch (o, "keep", &keep, errp) < 0 || check_store (root, errp) < 0)
        return -1;
    if (id == 0)
        return errsetf (errp, EINVAL, "id: is missing");
    if (id > shown (root))
        return refuse_ack (root, msg, id, errp);
    if (number && confirm (root, msg, number, id, errp) < 0)
        return -1;
    if (keep || id <= root->counts.acked) {
        module_respond (root->service->h, msg, NULL);
        return 0;
    }
    if (root->acks.count >= JOB_ROOT_MAX_ASKS)
        return errsetf (errp, EAGAIN, "%d acknowledgements wait already: try again later", JOB_ROOT_MAX_ASKS);
    if (fifo_push (&root->acks, msg) < 0)
        return errsetf (errp, ENOMEM, "out of memory");
    idt_msg_ref (msg);
    root->ack = max_u64 (root->ack, id);
    return 0;
}

void job_root_ack_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    take (arg, msg, take_ack);
}

static void answer_acks (struct job_root *root, struct fifo *q, int errnum, const char *text)
{
    const idt_msg_t *msg;

    while ((msg = fifo_pop (q))) {
        if (errnum)
            module_respond_error (root->service->h, msg, errnum, text);
        else
            module_respond (root->service->h, msg, NULL);
        idt_msg_unref (msg);
    }
}

void notify_acked (struct job_root *root, int errnum, const char *text)
{
    answer_acks (root, &root->acking, errnum, text);
}

/* --- looking at jobs --------------------------------------------------------------------------------------------- */

static int take_get (struct job_root *root, const idt_msg_t *msg, const json_t *o, idt_error_t *errp)
{
    struct job_store_read read = { .one = true, .specs = true, .max_jobs = 1, .max_bytes = 1 };

    if (get_id (o, "id", &read.upto, errp) < 0)
        return -1;
    if (read.upto == 0)
        return errsetf (errp, EINVAL, "id: is missing");
    return add_ask (root, msg, &read, false, errp);
}

void job_root_get_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    take (arg, msg, take_get);
}

static int take_list (struct job_root *root, const idt_msg_t *msg, const json_t *o, idt_error_t *errp)
{
    struct job_store_read read = { .upto = UINT64_MAX >> 1, .max_jobs = LIST_DEFAULT, .max_bytes = LIST_BYTES };

    if (get_id (o, "after", &read.after, errp) < 0 || get_number (o, "count", LIST_MAX, &read.max_jobs, errp) < 0)
        return -1;
    return add_ask (root, msg, &read, false, errp);
}

void job_root_list_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    take (arg, msg, take_list);
}

static void answer_text (struct job_root *root, const idt_msg_t *msg, FILE *f, char **text)
{
    if (!f || fclose (f) != 0)
        module_respond_error (root->service->h, msg, ENOMEM, NULL);
    else
        module_respond (root->service->h, msg, *text);
    free (*text);
}

static void answer_get (struct job_root *root, const struct notify_ask *a, const struct job_store_read *read)
{
    struct jobwire_reader jobs = found (read);
    struct idt_cred cred = idt_msg_cred (a->msg);
    struct job job;
    char *text = NULL;
    size_t size;

    if (!jobwire_next_job (&jobs, &job)) {
        module_respond_error (root->service->h, a->msg, ENOENT, "there is no such job, or it was forgotten");
        return;
    }
    if (!(cred.rolemask & IDT_ROLE_OWNER) && cred.userid != job.userid) {
        module_respond_error (root->service->h, a->msg, EPERM, "the job belongs to another user");
        return;
    }
    FILE *f = open_memstream (&text, &size);
    if (f) {
        fputc ('{', f);
        put_job (f, &job);
        fprintf (f, ",\"state\":\"%s\"}", read->acked ? "acknowledged" : "stored");
    }
    answer_text (root, a->msg, f, &text);
}

static void answer_list (struct job_root *root, const struct notify_ask *a, const struct job_store_read *read)
{
    struct jobwire_reader jobs = found (read);
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream (&text, &size);

    if (f) {
        fputc ('{', f);
        put_jobs (f, &jobs);
        fprintf (f, ",\"more\":%s", read->more ? "true" : "false");
        put_id (f, "shown", shown (root));
        fputc ('}', f);
    }
    answer_text (root, a->msg, f, &text);
}

static void end_ask (struct job_root *root, struct notify_ask *a, const struct job_store_read *read)
{
    if (read->errnum)
        module_respond_error (root->service->h, a->msg, read->errnum, read->error.text);
    else if (a->refuses)
        module_respond_error (root->service->h, a->msg, EINVAL, NOT_SHOWN);
    else if (read->one)
        answer_get (root, a, read);
    else
        answer_list (root, a, read);
    ask_destroy (root, a);
}

static json_t *pack_limits (const struct ingest_options *o)
{
    return json_pack ("{s:I s:I s:I s:I s:I}", "max-jobs", (json_int_t)o->max_jobs, "max-mib",
                      (json_int_t)(o->max_bytes >> 20), "max-waiting", (json_int_t)o->max_waiting, "max-waiting-bytes",
                      (json_int_t)o->max_waiting_bytes, "max-jobspec", (json_int_t)o->max_jobspec);
}

void job_root_stats_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct job_root *root = arg;
    const struct job_store_counts *n = &root->counts;
    char acked[FLUID_TEXT_MAX], told[FLUID_TEXT_MAX];

    fluid_format (n->acked, FLUID_F58, acked, sizeof (acked));
    fluid_format (shown (root), FLUID_F58, told, sizeof (told));
    json_t *o = json_pack ("{s:I s:I s:I s:s s:s s:I s:I s:I s:I s:I s:I s:I s:o s:o}", "jobs", (json_int_t)n->jobs,
                           "bytes", (json_int_t)n->bytes, "remembered", (json_int_t)n->remembered, "acked", acked,
                           "shown", told, "groups", (json_int_t)root->groups, "stored", (json_int_t)root->stored,
                           "same", (json_int_t)root->same, "late", (json_int_t)root->late, "forgotten",
                           (json_int_t)root->forgotten, "refused", (json_int_t)root->refused, "consumers",
                           (json_int_t)root->nconsumers, "limits", pack_limits (&root->service->options), "failing",
                           job_root_trouble (root) ? json_string (job_root_trouble (root)) : json_null ());
    module_respond_object (h, msg, o);
}

/* --- reads for the store ----------------------------------------------------------------------------------------- */

size_t notify_collect (struct job_root *root, struct job_store_read *reads, size_t max)
{
    struct watcher *w;
    struct notify_ask *a;
    size_t n = 0;

    while (n < max / 2 && (a = drr_queue_next (root->asks))) {
        reads[n] = a->read;
        root->wants[n++] = (struct job_root_want){ .ask = a };
    }
    while (n < max) {
        struct job_store_read read = { 0 };

        if (!(w = job_watch_next (root->watch, root->line.shown, &read.after, &read.max_jobs, &read.max_bytes)))
            break;
        read.upto = root->line.shown;
        read.specs = ((struct consumer *)watcher_owner (w))->specs;
        reads[n] = read;
        root->wants[n++] = (struct job_root_want){ .watcher = w };
    }
    return n;
}

void notify_read (struct job_root *root, size_t i)
{
    struct job_root_want want = root->wants[i];

    root->wants[i] = (struct job_root_want){ 0 };
    if (want.ask)
        end_ask (root, want.ask, &root->reads[i]);
    else if (want.watcher)
        end_watch (root, want.watcher, &root->reads[i]);
}

bool notify_wants_line (const struct job_root *root)
{
    return root->nconsumers > 0 && root->line.shown < root->counts.newest;
}

/* --- clients that have gone -------------------------------------------------------------------------------------- */

static void forget_asks (struct job_root *root, const idt_msg_t *disconnect)
{
    struct fifo kept = { 0 };
    struct notify_ask *a;

    while ((a = drr_queue_next (root->asks)))
        if (module_same_client (a->msg, disconnect) || fifo_push (&kept, a) < 0)
            ask_destroy (root, a);
    while ((a = (struct notify_ask *)fifo_pop (&kept)))
        if (drr_queue_put (root->asks, user_key (a->msg), a, 1) < 0)
            ask_destroy (root, a);
    fifo_fini (&kept);
}

/* Arguments of leave (), which removes the consumers of the client that 'disconnect' names, or all consumers if
 * 'disconnect' is NULL.
 */
struct leaving {
    struct job_root *root;
    const idt_msg_t *disconnect;
};

static void leave (void *arg, struct watcher *w)
{
    struct leaving *l = arg;
    struct job_root *root = l->root;
    const struct consumer *c = watcher_owner (w);

    if (!l->disconnect)
        module_respond_error (root->service->h, c->msg, EHOSTUNREACH, STOPPING);
    else if (!module_same_client (c->msg, l->disconnect))
        return;
    for (size_t i = 0; i < root->nreads; i++)
        if (root->wants[i].watcher == w)
            root->wants[i].watcher = NULL;
    consumer_destroy (root, w);
}

void job_root_forget (struct job_root *root, const idt_msg_t *disconnect)
{
    job_watch_each (root->watch, leave, &(struct leaving){ root, disconnect });
    forget_asks (root, disconnect);
}

void notify_stop (struct job_root *root)
{
    const char *text = STOPPING;
    struct notify_ask *a;

    for (size_t i = 0; i < root->nreads; i++)
        if (root->wants[i].ask) {
            module_respond_error (root->service->h, root->wants[i].ask->msg, EHOSTUNREACH, text);
            ask_destroy (root, root->wants[i].ask);
        }
    if (root->watch)
        job_watch_each (root->watch, leave, &(struct leaving){ root, NULL });
    answer_acks (root, &root->acking, EHOSTUNREACH, text);
    answer_acks (root, &root->acks, EHOSTUNREACH, text);
    while (root->asks && (a = drr_queue_next (root->asks))) {
        module_respond_error (root->service->h, a->msg, EHOSTUNREACH, text);
        ask_destroy (root, a);
    }
    drr_queue_destroy (root->asks);
    quota_fini (&root->reads_quota);
    fifo_fini (&root->acks);
    fifo_fini (&root->acking);
}
