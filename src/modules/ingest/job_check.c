/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_check.c - checks whether a submitted job is valid
 *
 * A short job is checked in the module's thread where it arrived, which takes less time than passing it to another
 * thread. Long jobs wait for one of a few threads, which are started when the first long job arrives.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libjob/sign.h"
#include "libutil/errprintf.h"
#include "libutil/worker.h"
#include "modules/ingest/job/jobspec.h"
#include "modules/ingest/service.h"

#define SHORT 16384 /* bytes of a job that is checked immediately: takes some 25 microseconds */
#define THREADS 2

struct checker {
    struct checks *checks;
    struct jv_reader reader;
    struct worker *worker; /* NULL: not started yet */
    idt_watcher_t *watcher;
    struct job_check *check; /* the job being checked; NULL: none */
};

struct checks {
    struct ingest *service;
    struct jv_reader reader; /* for jobs that are checked immediately */
    struct checker checker[THREADS];
    STAILQ_HEAD (check_queue, job_check) waiting;
    uint32_t nwaiting;
    size_t bytes;
};

void job_check_destroy (struct job_check *c)
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

/* Check a job, in a checker's thread or in the module's. */
static int job_check_job (struct job_check *c, struct jv_reader *reader, idt_error_t *errp)
{
    return unwrap (c, errp) < 0 ? -1 : jobspec_check (reader, c->spec, c->spec_size, errp);
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
    struct checks *k = w->checks;
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
    submit_checked (w->checks->service, c, rc > 0 ? 0 : errnum, &error);
    job_check_destroy (c);
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

static void refuse (struct checks *k, struct job_check *c, int errnum, const char *text)
{
    idt_error_t error;

    snprintf (error.text, sizeof (error.text), "%s", text);
    submit_checked (k->service, c, errnum, &error);
    job_check_destroy (c);
}

/* Release the request's payload: only memory that counts against ingest.max-waiting-bytes may be held while a job
 * waits.
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

static void add_long (struct checks *k, struct job_check *c)
{
    const struct ingest_options *o = &k->service->options;

    for (int i = 0; i < THREADS; i++)
        if (start (&k->checker[i]) < 0) {
            refuse (k, c, errno, "cannot start a thread to check the job");
            return;
        }
    if (k->nwaiting >= o->max_waiting || (k->bytes > 0 && k->bytes + job_check_size (c) > o->max_waiting_bytes)) {
        refuse (k, c, EAGAIN,
                "more submissions wait to be checked than ingest.max-waiting or ingest.max-waiting-bytes allow: "
                "submit the job again later");
        return;
    }
    if (drop_request (c) < 0) {
        refuse (k, c, ENOMEM, "out of memory");
        return;
    }
    STAILQ_INSERT_TAIL (&k->waiting, c, link);
    k->nwaiting++;
    k->bytes += job_check_size (c);
    for (int i = 0; i < THREADS; i++)
        next (&k->checker[i]);
}

/* --- public functions --------------------------------------------------------------------------------------------- */

void checks_add (struct checks *k, struct job_check *c)
{
    idt_error_t error = { "" };

    if (job_check_size (c) > SHORT) {
        add_long (k, c);
        return;
    }
    int rc = job_check_job (c, &k->reader, &error);
    submit_checked (k->service, c, rc < 0 ? errno : 0, &error);
    job_check_destroy (c);
}

void checks_forget (struct checks *k, const idt_msg_t *disconnect)
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

struct checks *checks_create (struct ingest *sv)
{
    struct checks *k = calloc (1, sizeof (*k));

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

void checks_destroy (struct checks *k)
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
