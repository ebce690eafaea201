/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* submit.c - submissions: reads them, checks their jobs, and answers them
 *
 * A short job is checked in the module's thread, because passing it to another thread would take longer. Long jobs are
 * checked by a few other threads, which are started when the first long job arrives.
 */
#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libjob/sign.h"
#include "libmsg/access.h"
#include "libutil/errprintf.h"
#include "libutil/worker.h"
#include "modules/ingest/job/jobspec.h"
#include "modules/ingest/ingest.h"

#define URGENCY_MAX 31
#define URGENCY_DEFAULT 16
#define NONCE_HASH 32 /* bytes of the hash in a key that is made from a nonce */

/* Limits of depth and of the number of values for a whole request, because it may contain a jobspec as an object. */
#define REQUEST_DEPTH_MAX (JOBSPEC_DEPTH_MAX + 256)
#define REQUEST_VALUES_MAX (JOBSPEC_VALUES_MAX + 1000)

/* A request may have REQUEST_FACTOR times ingest.max-jobspec bytes, and REQUEST_BESIDE more for other members. */
#define REQUEST_FACTOR 4
#define REQUEST_BESIDE 65536

#define SHORT 16384 /* the most bytes of a job that is checked immediately, which takes some 25 microseconds */
#define THREADS 2

/* A submission that is being checked. */
struct job_check {
    STAILQ_ENTRY (job_check) link;
    const idt_msg_t *msg; /* the request, without its payload */
    const char *j;        /* the wrapped job (J), in the payload or in 'kept'; NULL: 'spec' is the jobspec */
    size_t j_size;
    char *kept;      /* malloced: J without escapes, or a copy of J while it waits for a thread */
    uint32_t userid; /* the submitter */
    uint32_t max;    /* the most bytes of a jobspec */
    uint32_t flags;
    uint8_t urgency;
    char key[JOBWIRE_KEY_MAX];
    uint8_t key_size;
    char *spec; /* malloced */
    size_t spec_size;
    /* in which the submission holds a place; NULL: it holds none, or the entry took the place over */
    struct quota *quota;
};

struct checker {
    struct submit_checks *checks;
    struct jv_reader reader;
    struct worker *worker; /* NULL: not started yet */
    idt_watcher_t *watcher;
    struct job_check *check; /* the job being checked; NULL: none */
};

struct submit_checks {
    struct ingest *service;
    struct jv_reader reader; /* for jobs that are checked immediately */
    struct checker checker[THREADS];
    STAILQ_HEAD (check_queue, job_check) waiting;
    uint32_t nwaiting;
    size_t bytes;
};

static void refuse (struct ingest *sv, const idt_msg_t *msg, int errnum, const char *text)
{
    sv->refused++;
    module_respond_error (sv->h, msg, errnum, text);
}

/* --- checking a job --------------------------------------------------------------------------------------------- */

static void job_check_destroy (struct job_check *c)
{
    int saved = errno;

    if (c->quota)
        quota_give (c->quota, idt_msg_cred (c->msg));
    idt_msg_unref (c->msg);
    free (c->kept);
    free (c->spec);
    free (c);
    errno = saved;
}

static int unwrap (struct job_check *c, idt_error_t *errp)
{
    uint32_t userid;

    if (!c->j)
        return c->spec_size <= c->max
                   ? 0
                   : errsetf (errp, EMSGSIZE, "jobspec: has %zu bytes, more than ingest.max-jobspec=%" PRIu32,
                              c->spec_size, c->max);
    if (job_sign_unwrap (c->j, c->j_size, c->max, &c->spec, &c->spec_size, &userid, errp) < 0)
        return -1;
    if (userid != c->userid)
        return errsetf (errp, EPERM, "J: header: userid: is %" PRIu32 ", but user %" PRIu32 " submits it", userid,
                        c->userid);
    return 0;
}

/* Check a job. Runs in the thread of a checker, or in the module's. */
static int job_check_job (struct job_check *c, struct jv_reader *reader, idt_error_t *errp)
{
    return unwrap (c, errp) < 0 ? -1 : jobspec_check (reader, c->spec, c->spec_size, errp);
}

static void refuse_check (struct ingest *sv, struct job_check *c, int errnum, const char *text)
{
    refuse (sv, c->msg, errnum, text);
    job_check_destroy (c);
}

/* Continue with a submission that was checked. 'errnum' is 0 if the job is valid. Frees 'c'. */
static void checked (struct ingest *sv, struct job_check *c, int errnum, const idt_error_t *error)
{
    struct job job = { .userid = c->userid,
                       .flags = c->flags,
                       .urgency = c->urgency,
                       .key = c->key,
                       .key_size = c->key_size,
                       .spec_size = (uint32_t)c->spec_size };
    char *spec = c->spec;
    idt_error_t full = { "" };

    if (errnum) {
        refuse_check (sv, c, errnum, error->text);
        return;
    }
    c->spec = NULL;
    if (entry_add (sv->entry, ingest_now_ms (), &job, spec, (void *)c->msg, &full) < 0)
        refuse (sv, c->msg, errno, full.text);
    else {
        idt_msg_ref (c->msg); /* the entry's cookie; the entry also takes over the place in the quota */
        c->quota = NULL;
    }
    job_check_destroy (c);
    ingest_wake (sv);
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

static int work (void *arg, idt_error_t *errp)
{
    struct checker *w = arg;

    return job_check_job (w->check, &w->reader, errp);
}

static size_t job_check_size (const struct job_check *c)
{
    return c->j ? c->j_size : c->spec_size;
}

static void next (struct checker *w)
{
    struct submit_checks *k = w->checks;
    struct job_check *c = STAILQ_FIRST (&k->waiting);

    if (!c || w->check)
        return;
    STAILQ_REMOVE_HEAD (&k->waiting, link);
    k->nwaiting--;
    w->check = c;
    worker_begin (w->worker);
}

static void done_cb (idt_watcher_t *watcher, int revents, void *arg)
{
    struct checker *w = arg;
    idt_error_t error = { "" };
    int rc = worker_result (w->worker, &error), errnum = errno;
    struct job_check *c = w->check;

    if (rc == 0)
        return;
    w->check = NULL;
    w->checks->bytes -= job_check_size (c);
    checked (w->checks->service, c, rc > 0 ? 0 : errnum, &error);
    next (w);
}

static int start (struct checker *w)
{
    if (w->worker)
        return 0;
    if (!(w->worker = worker_create (work, w)))
        return -1;
    w->watcher = idt_fd_watcher_create (idt_get_reactor (w->checks->service->h), worker_fd (w->worker), IDT_POLLIN,
                                        done_cb, w);
    if (w->watcher) {
        idt_watcher_start (w->watcher);
        return 0;
    }
    worker_destroy (w->worker);
    w->worker = NULL;
    return -1;
}

/* Copy J, unless it was copied before, so that 'c' no longer needs the request's payload. While a job waits, it may
 * hold only memory that counts against ingest.max-waiting-bytes.
 */
static int drop_request (struct job_check *c)
{
    if (!c->j || c->kept)
        return 0;
    if (!(c->kept = malloc (c->j_size)))
        return -1;
    c->j = memcpy (c->kept, c->j, c->j_size);
    return 0;
}

static void add_long (struct submit_checks *k, struct job_check *c)
{
    const struct ingest_options *o = &k->service->options;

    for (int i = 0; i < THREADS; i++)
        if (start (&k->checker[i]) < 0) {
            refuse_check (k->service, c, errno, "cannot start a thread to check the job");
            return;
        }
    if (k->nwaiting >= o->max_waiting || (k->bytes > 0 && k->bytes + job_check_size (c) > o->max_waiting_bytes)) {
        refuse_check (k->service, c, EAGAIN,
                      "more submissions wait to be checked than ingest.max-waiting or ingest.max-waiting-bytes allow: "
                      "submit the job again later");
        return;
    }
    if (drop_request (c) < 0) {
        refuse_check (k->service, c, ENOMEM, "out of memory");
        return;
    }
    STAILQ_INSERT_TAIL (&k->waiting, c, link);
    k->nwaiting++;
    k->bytes += job_check_size (c);
    for (int i = 0; i < THREADS; i++)
        next (&k->checker[i]);
}

/* Check a submission: a short job immediately, a long job in a thread. 'c' is taken over. */
static void add_check (struct submit_checks *k, struct job_check *c)
{
    idt_error_t error = { "" };

    if (job_check_size (c) > SHORT) {
        add_long (k, c);
        return;
    }
    int rc = job_check_job (c, &k->reader, &error);
    checked (k->service, c, rc < 0 ? errno : 0, &error);
}

/* --- reading a request -------------------------------------------------------------------------------------- */

/* Parse the payload of a request, which must be an object. The result points into the message and into sv->reader. If
 * the payload is refused, the messages are those of idt_msg_json ().
 */
static const struct jv *read_payload (struct ingest *sv, const idt_msg_t *msg, idt_error_t *errp)
{
    const char *s = idt_msg_string (msg);
    const struct jv *o;
    struct jv_error e;

    if (!idt_msg_has_flag (msg, IDT_MSGFLAG_PAYLOAD))
        errsetf (errp, EPROTO, "message has no payload");
    else if (!s)
        errsetf (errp, EPROTO, "payload is not a NUL-terminated string");
    else if (!(o = jv_read (&sv->reader, s, strlen (s), REQUEST_DEPTH_MAX, REQUEST_VALUES_MAX, &e)))
        errno == EINVAL ? errsetf (errp, EPROTO, "%s", e.text) : errprintf (errp, "%s", strerror (errno));
    else if (!jv_is (o, JV_OBJECT))
        errsetf (errp, EPROTO, "payload is not a JSON object");
    else
        return o;
    return NULL;
}

static int get_urgency (const struct jv *o, uint8_t *urgency, idt_error_t *errp)
{
    const struct jv *v = jv_member (o, "urgency");
    int64_t n = v ? jv_integer (v) : URGENCY_DEFAULT;

    if ((v && !jv_is (v, JV_INTEGER)) || n < 0 || n > URGENCY_MAX)
        return errsetf (errp, EINVAL, "urgency: must be an integer from 0 to %d", URGENCY_MAX);
    *urgency = (uint8_t)n;
    return 0;
}

static int get_flags (const struct jv *o, uint32_t *flags, idt_error_t *errp)
{
    const struct jv *v = jv_member (o, "flags");
    int64_t n = jv_integer (v);

    if ((v && !jv_is (v, JV_INTEGER)) || n < 0 || n > INT32_MAX)
        return errsetf (errp, EINVAL, "flags: must be an integer from 0 to %d", INT32_MAX);
    *flags = (uint32_t)n;
    return 0;
}

/* Read a key or a nonce. If it is missing, '*size' is 0. */
static int get_name (const struct jv *o, const char *name, char text[JOBWIRE_KEY_MAX + 1], size_t *size,
                     idt_error_t *errp)
{
    const struct jv *v = jv_member (o, name);

    *size = jv_copy (v, text, JOBWIRE_KEY_MAX + 1);
    if (v && (*size < 1 || *size > JOBWIRE_KEY_MAX))
        return errsetf (errp, EINVAL, "%s: must be a string of 1 to %d bytes", name, JOBWIRE_KEY_MAX);
    return 0;
}

/* Make a key from a nonce: a byte 0, and a hash of the nonce's size, the nonce and the job as the request has it. The
 * size comes first, so that the end of a nonce cannot be confused with the beginning of a job. A key that a request
 * contains is text without a byte 0, so it never equals a key that was made from a nonce.
 */
static void hash_nonce (struct job_check *c, const char *nonce, size_t size)
{
    crypto_generichash_state state;
    uint8_t border = (uint8_t)size; /* JOBWIRE_KEY_MAX at most */

    crypto_generichash_init (&state, NULL, 0, NONCE_HASH);
    crypto_generichash_update (&state, &border, 1);
    crypto_generichash_update (&state, (const uint8_t *)nonce, size);
    crypto_generichash_update (&state, (const uint8_t *)(c->j ? c->j : c->spec), c->j ? c->j_size : c->spec_size);
    c->key[0] = '\0';
    crypto_generichash_final (&state, (uint8_t *)c->key + 1, NONCE_HASH);
    c->key_size = NONCE_HASH + 1;
}

static int get_key (struct job_check *c, const struct jv *o, idt_error_t *errp)
{
    char key[JOBWIRE_KEY_MAX + 1], nonce[JOBWIRE_KEY_MAX + 1];
    size_t key_size, nonce_size;

    if (get_name (o, "key", key, &key_size, errp) < 0 || get_name (o, "nonce", nonce, &nonce_size, errp) < 0)
        return -1;
    if (key_size > 0 && nonce_size > 0)
        return errsetf (errp, EINVAL, "key and nonce: only one of them is allowed");
    if (key_size > 0) {
        memcpy (c->key, key, key_size);
        c->key_size = (uint8_t)key_size;
    }
    else if (nonce_size > 0)
        hash_nonce (c, nonce, nonce_size);
    return 0;
}

/* Read a jobspec that is not wrapped. The request has it as a string, or as an object. The text of an object is used as
 * the client wrote it.
 */
static int get_plain (struct job_check *c, const struct jv *o, const struct ingest_options *options, idt_error_t *errp)
{
    const struct jv *v = jv_member (o, "jobspec");

    if (!v)
        return errsetf (errp, EPROTO, "J: is missing");
    if (options->require_signature)
        return errsetf (errp, EINVAL,
                        "jobspec: is accepted only if ingest.require-signature is off: send it wrapped, as J");
    if (!jv_is (v, JV_STRING) && !jv_is (v, JV_OBJECT))
        return errsetf (errp, EINVAL, "jobspec: must be an object, or a string that has one");
    c->spec_size = v->size;
    c->spec = jv_is (v, JV_STRING) ? jv_strdup (v, &c->spec_size) : strndup (v->text, v->size);
    return c->spec ? 0 : errsetf (errp, ENOMEM, "out of memory");
}

static int get_job (struct job_check *c, const struct jv *o, const struct ingest_options *options, idt_error_t *errp)
{
    const struct jv *v = jv_member (o, "J");

    if (!v)
        return get_plain (c, o, options, errp);
    if (!jv_is (v, JV_STRING))
        return errsetf (errp, EINVAL, "J: must be a string");
    c->j = v->text;
    c->j_size = v->size;
    if (!v->escaped)
        return 0;
    c->j = c->kept = jv_strdup (v, &c->j_size);
    return c->j ? 0 : errsetf (errp, ENOMEM, "out of memory");
}

/* Check whether the user may submit the job. Guests need ingest.allow-guests. Users other than the owner may use at
 * most half of each waiting limit, and no urgency above the default.
 */
static int check_user (const struct ingest *sv, const idt_msg_t *msg, uint8_t urgency, idt_error_t *errp)
{
    struct idt_cred cred = idt_msg_cred (msg);
    struct entry_stats e = entry_stats (sv->entry);

    if (cred.rolemask & IDT_ROLE_OWNER)
        return 0;
    if (access_is_guest (cred) && !sv->options.allow_guests)
        return errsetf (errp, EPERM, "user %" PRIu32 " may not submit jobs here: ingest.allow-guests is off",
                        cred.userid);
    if (urgency > URGENCY_DEFAULT)
        return errsetf (errp, EPERM, "urgency: users other than the owner may use at most %d, not %d", URGENCY_DEFAULT,
                        urgency);
    if (e.jobs >= (sv->options.max_waiting + 1) / 2 || e.bytes >= sv->options.max_waiting_bytes / 2)
        return errsetf (
            errp, EAGAIN,
            "%zu submissions wait at this rank: users other than the owner may use half of ingest.max-waiting (%" PRIu32
            ") and of ingest.max-waiting-bytes",
            (size_t)e.jobs, sv->options.max_waiting);
    return 0;
}

/* Check the size of a request before it is parsed. The limit is larger than a jobspec, because Base64 makes J a third
 * longer than its jobspec, escapes may make J longer still, and unknown members use memory, too.
 */
static int check_size (const struct ingest *sv, const idt_msg_t *msg, idt_error_t *errp)
{
    uint64_t max = REQUEST_FACTOR * (uint64_t)sv->options.max_jobspec + REQUEST_BESIDE;
    const void *data;
    size_t size;

    if (idt_msg_payload (msg, &data, &size) < 0 || size <= max)
        return 0;
    return errsetf (errp, EMSGSIZE,
                    "a request of %zu bytes: the limit is %" PRIu64 ", because ingest.max-jobspec is %" PRIu32, size,
                    max, sv->options.max_jobspec);
}

/* Begin a check with a copy of the request's header. The header is enough for the answer, so the payload is not kept.
 */
static struct job_check *check_create (const idt_msg_t *msg, idt_error_t *errp)
{
    struct job_check *c = calloc (1, sizeof (*c));

    if (!c || !(c->msg = idt_msg_copy (msg, false))) {
        free (c);
        return errsetf_null (errp, ENOMEM, "out of memory");
    }
    return c;
}

static struct job_check *read_request (struct ingest *sv, const idt_msg_t *msg, idt_error_t *errp)
{
    struct job_check *c = check_size (sv, msg, errp) < 0 ? NULL : check_create (msg, errp);
    const struct jv *o;

    if (!c)
        return NULL;
    c->userid = idt_msg_cred (msg).userid;
    c->max = sv->options.max_jobspec;
    if ((o = read_payload (sv, msg, errp)) && get_urgency (o, &c->urgency, errp) == 0
        && check_user (sv, msg, c->urgency, errp) == 0 && get_flags (o, &c->flags, errp) == 0
        && get_job (c, o, &sv->options, errp) == 0 && get_key (c, o, errp) == 0
        && quota_take (&sv->submissions, idt_msg_cred (msg), errp) == 0) {
        c->quota = &sv->submissions;
        return c;
    }
    job_check_destroy (c);
    return NULL;
}

void submit_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct ingest *sv = arg;
    idt_error_t error = { "" };
    struct job_check *c = read_request (sv, msg, &error);

    sv->submitted++;
    if (c)
        add_check (sv->checks, c);
    else
        refuse (sv, msg, errno, error.text);
}

/* --- the end of a submission ------------------------------------------------------------------------------------ */

void submit_reply (void *arg, void *cookie, uint64_t id, int errnum, const char *text)
{
    struct ingest *sv = arg;
    const idt_msg_t *msg = cookie;
    char answer[FLUID_TEXT_MAX + 64], f58[FLUID_TEXT_MAX];

    if (errnum)
        refuse (sv, msg, errnum, text);
    else {
        fluid_format (id, FLUID_F58, f58, sizeof (f58));
        snprintf (answer, sizeof (answer), "{\"id\":%" PRIu64 ",\"fluid\":\"%s\"%s}", id, f58,
                  text ? ",\"same\":true" : "");
        module_respond (sv->h, msg, answer);
    }
    quota_give (&sv->submissions, idt_msg_cred (msg));
    idt_msg_unref (msg);
}

void submit_forget (struct submit_checks *k, const idt_msg_t *disconnect)
{
    struct job_check *c, *following;

    for (c = STAILQ_FIRST (&k->waiting); c; c = following) {
        following = STAILQ_NEXT (c, link);
        if (!module_same_client (c->msg, disconnect))
            continue;
        STAILQ_REMOVE (&k->waiting, c, job_check, link);
        k->nwaiting--;
        k->bytes -= job_check_size (c);
        job_check_destroy (c);
    }
}

struct submit_checks *submit_create (struct ingest *sv)
{
    struct submit_checks *k = calloc (1, sizeof (*k));

    if (!k)
        return NULL;
    k->service = sv;
    STAILQ_INIT (&k->waiting);
    for (int i = 0; i < THREADS; i++)
        k->checker[i].checks = k;
    return k;
}

static void stop (struct ingest *sv, struct job_check *c)
{
    if (!c)
        return;
    module_respond_error (sv->h, c->msg, EHOSTUNREACH, "job-ingest of this broker is stopping");
    job_check_destroy (c);
}

void submit_destroy (struct submit_checks *k)
{
    struct job_check *c;

    if (!k)
        return;
    for (int i = 0; i < THREADS; i++) {
        idt_watcher_destroy (k->checker[i].watcher);
        worker_destroy (k->checker[i].worker);
        jv_reader_fini (&k->checker[i].reader);
        stop (k->service, k->checker[i].check);
    }
    while ((c = STAILQ_FIRST (&k->waiting))) {
        STAILQ_REMOVE_HEAD (&k->waiting, link);
        stop (k->service, c);
    }
    jv_reader_fini (&k->reader);
    free (k);
}
