/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pmix.c - brokers started by a launcher that speaks PMIx: mpirun of Open MPI, prterun, srun --mpi=pmix
 *
 * A task is a broker. libpmix is loaded only when it is needed, so other brokers run without it. libpmix reads the
 * environment itself, has a thread of its own, and stays loaded until the process ends.
 *
 * Some calls of libpmix wait for other tasks or for a server, and not all servers respect a time limit. So each call
 * runs in a thread. If the call has not returned at the deadline, the thread is left behind, with all memory that it
 * may still use. The process ends soon after that.
 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <pmix.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "broker/boot/method.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

#define LIBRARY "libpmix.so.2"
#define CARD_KEY "idtree.bizcard"

struct pmix {
    void *library;
    __typeof__ (PMIx_Init) *Init;
    __typeof__ (PMIx_Put) *Put;
    __typeof__ (PMIx_Commit) *Commit;
    __typeof__ (PMIx_Fence) *Fence;
    __typeof__ (PMIx_Get) *Get;
    __typeof__ (PMIx_Finalize) *Finalize;
    __typeof__ (PMIx_Abort) *Abort;
    __typeof__ (PMIx_Error_string) *Error_string;

    uint64_t deadline_ms; /* 0: none */
    int exit_code;        /* exit code for all tasks when this task aborts them */
    pmix_proc_t self;
    uint32_t size;
    bool stuck; /* a call was left behind and may still use this object */

    /* Arguments and results of the calls. */
    pmix_proc_t of;
    const char *key;
    char text[CARD_TEXT];
    pmix_value_t *value;
};

struct call {
    struct pmix *p;
    pmix_status_t (*fn) (struct pmix *p);
    pmix_status_t status;
    bool over;
    pthread_mutex_t lock;
    pthread_cond_t done;
};

/* --- calls that end --------------------------------------------------------------------------------- */

static struct call *call_create (struct pmix *p, pmix_status_t (*fn) (struct pmix *p))
{
    struct call *c = calloc (1, sizeof (*c));
    pthread_condattr_t attr;

    if (!c)
        return NULL;
    c->p = p;
    c->fn = fn;
    pthread_mutex_init (&c->lock, NULL);
    pthread_condattr_init (&attr);
    pthread_condattr_setclock (&attr, CLOCK_MONOTONIC);
    pthread_cond_init (&c->done, &attr);
    pthread_condattr_destroy (&attr);
    return c;
}

static void call_destroy (struct call *c)
{
    pthread_cond_destroy (&c->done);
    pthread_mutex_destroy (&c->lock);
    free (c);
}

static void *call_main (void *arg)
{
    struct call *c = arg;
    pmix_status_t status = c->fn (c->p);

    pthread_mutex_lock (&c->lock);
    c->status = status;
    c->over = true;
    pthread_cond_signal (&c->done);
    pthread_mutex_unlock (&c->lock);
    return NULL;
}

/* Whether the call has returned by 'deadline_ms' (0: no limit). */
static bool wait_for_call (struct call *c, uint64_t deadline_ms)
{
    struct timespec until = { .tv_sec = deadline_ms / 1000, .tv_nsec = deadline_ms % 1000 * 1000000 };
    bool over;
    int rc = 0;

    pthread_mutex_lock (&c->lock);
    while (!c->over && rc == 0)
        rc = deadline_ms > 0 ? pthread_cond_timedwait (&c->done, &c->lock, &until)
                             : pthread_cond_wait (&c->done, &c->lock);
    over = c->over;
    pthread_mutex_unlock (&c->lock);
    return over;
}

/* Make a call in a thread. Returns 0, or -1 with errno ETIMEDOUT, ENOENT (not found), EPROTO, ENOMEM or EAGAIN and
 * 'errp' filled.
 */
static int call (struct pmix *p, const char *what, pmix_status_t (*fn) (struct pmix *p), idt_error_t *errp)
{
    struct call *c = call_create (p, fn);
    pthread_t thread;
    pmix_status_t status;
    int errnum = c ? pthread_create (&thread, NULL, call_main, c) : ENOMEM;

    if (errnum != 0) {
        free (c);
        return errsetf (errp, errnum, "PMIx %s: cannot make a thread: %s", what, strerror (errnum));
    }
    if (!wait_for_call (c, p->deadline_ms)) {
        pthread_detach (thread);
        p->stuck = true;
        return errsetf (errp, ETIMEDOUT, "PMIx %s of rank %u: the launcher does not answer", what, p->self.rank);
    }
    pthread_join (thread, NULL);
    status = c->status;
    call_destroy (c);
    if (status == PMIX_SUCCESS)
        return 0;
    errnum = status == PMIX_ERR_NOT_FOUND ? ENOENT : status == PMIX_ERR_TIMEOUT ? ETIMEDOUT : EPROTO;
    return errsetf (errp, errnum, "PMIx %s of rank %u: %s", what, p->self.rank, p->Error_string (status));
}

static pmix_status_t init_fn (struct pmix *p)
{
    return p->Init (&p->self, NULL, 0);
}

static pmix_status_t get_fn (struct pmix *p)
{
    return p->Get (&p->of, p->key, NULL, 0, &p->value);
}

/* Get a bizcard. All ranks have published theirs before, so a server that does not have the bizcard need not wait for
 * it.
 */
static pmix_status_t get_card_fn (struct pmix *p)
{
    pmix_info_t immediate = { .key = PMIX_IMMEDIATE, .value = { .type = PMIX_BOOL, .data.flag = true } };
    pmix_status_t status = p->Get (&p->of, p->key, &immediate, 1, &p->value);

    return status == PMIX_ERR_TIMEOUT ? PMIX_ERR_NOT_FOUND : status; /* with PMIX_IMMEDIATE, PMIx 5 still waits */
}

static pmix_status_t put_fn (struct pmix *p)
{
    pmix_value_t value = { .type = PMIX_STRING, .data.string = p->text };
    pmix_status_t status = p->Put (PMIX_GLOBAL, CARD_KEY, &value);

    return status == PMIX_SUCCESS ? p->Commit () : status;
}

static pmix_status_t fence_fn (struct pmix *p)
{
    pmix_info_t collect = { .key = PMIX_COLLECT_DATA, .value = { .type = PMIX_BOOL, .data.flag = true } };

    return p->Fence (NULL, 0, &collect, 1);
}

static pmix_status_t finalize_fn (struct pmix *p)
{
    return p->Finalize (NULL, 0);
}

static pmix_status_t abort_fn (struct pmix *p)
{
    return p->Abort (p->exit_code, "idtree-broker gives up", NULL, 0);
}

/* --- the library ------------------------------------------------------------------------------------ */

/* Load libpmix. libpmix uses libevent. libev, which is already loaded, exports functions of the same names as libevent.
 * With RTLD_DEEPBIND libpmix finds the functions of libevent first.
 */
static int load (struct pmix *p, idt_error_t *errp)
{
    const struct {
        const char *name;
        void *at;
    } symbols[] = {
        { "PMIx_Init", &p->Init },     { "PMIx_Put", &p->Put },
        { "PMIx_Commit", &p->Commit }, { "PMIx_Fence", &p->Fence },
        { "PMIx_Get", &p->Get },       { "PMIx_Finalize", &p->Finalize },
        { "PMIx_Abort", &p->Abort },   { "PMIx_Error_string", &p->Error_string },
    };

    if (!(p->library = dlopen (LIBRARY, RTLD_NOW | RTLD_DEEPBIND)))
        return errsetf (errp, ENOENT, "a launcher that speaks PMIx started this, but %s: install libpmix2", dlerror ());
    for (size_t i = 0; i < sizeof (symbols) / sizeof (symbols[0]); i++) {
        void *symbol = dlsym (p->library, symbols[i].name);

        if (!symbol)
            return errsetf (errp, ENOSYS, LIBRARY " has no %s: another version is needed", symbols[i].name);
        memcpy (symbols[i].at, &symbol, sizeof (symbol));
    }
    return 0;
}

/* --- this task -------------------------------------------------------------------------------------- */

/* Get a number that the server keeps for the whole job. */
static int get_number (struct pmix *p, const char *key, uint32_t *n, idt_error_t *errp)
{
    p->of = p->self;
    p->of.rank = PMIX_RANK_WILDCARD;
    p->key = key;
    if (call (p, key, get_fn, errp) < 0)
        return -1;
    if (p->value->type != PMIX_UINT32)
        return errsetf (errp, EPROTO, "PMIx %s: the launcher sent no number", key);
    *n = p->value->data.uint32;
    free (p->value);
    p->value = NULL;
    return 0;
}

/* Connect to the server. If libpmix finds no server, it may report a job of one task, so the identity is compared with
 * the environment.
 */
static int meet_server (struct pmix *p, const struct boot_conf *conf, idt_error_t *errp)
{
    idt_error_t err;

    if (call (p, "init", init_fn, &err) < 0)
        return errprintf (errp,
                          "PMIX_NAMESPACE=%s, PMIX_RANK=%u: the launcher does not accept this process as a "
                          "task: %s",
                          conf->pmix_namespace, conf->pmix_rank, err.text);
    if (strcmp (p->self.nspace, conf->pmix_namespace) != 0 || p->self.rank != conf->pmix_rank)
        return errsetf (
            errp, EPROTO,
            "PMIX_NAMESPACE=%s and PMIX_RANK=%u, but PMIx identifies this process as rank %u of %s: the launcher has "
            "ended, or is not its server",
            conf->pmix_namespace, conf->pmix_rank, p->self.rank, p->self.nspace);
    return get_number (p, PMIX_JOB_SIZE, &p->size, errp);
}

static int who_am_i (struct pmix *p, const struct boot_conf *conf, struct boot_self *self, idt_error_t *errp)
{
    uint32_t here;

    if (meet_server (p, conf, errp) < 0)
        return -1;
    if (p->size < 1 || p->size > BOOT_SIZE_MAX || p->self.rank >= p->size)
        return errsetf (errp, EPROTO, "PMIX_RANK=%u: the launcher has %u tasks, but the limit is %d", p->self.rank,
                        p->size, BOOT_SIZE_MAX);
    *self = (struct boot_self){
        .size = p->size, .processes = p->size, .tasks = p->size, .process = p->self.rank, .whole = true
    };
    self->one_host = get_number (p, PMIX_LOCAL_SIZE, &here, NULL) == 0 && here == p->size;
    return 0;
}

static void destroy (void *m)
{
    struct pmix *p = m;

    if (!p->stuck)
        free (p);
}

static void *create (const struct boot_conf *conf, struct boot_self *self, idt_error_t *errp)
{
    struct pmix *p = calloc (1, sizeof (*p));

    if (!p)
        return errsetf_null (errp, ENOMEM, "out of memory");
    p->deadline_ms = conf->deadline_ms;
    p->self.rank = conf->pmix_rank;
    if (load (p, errp) == 0 && who_am_i (p, conf, self, errp) == 0)
        return p;
    destroy (p);
    return NULL;
}

/* --- bizcards --------------------------------------------------------------------------------------- */

static int put (void *m, const struct bizcard *card, idt_error_t *errp)
{
    struct pmix *p = m;

    if (card_encode (p->text, card, errp) < 0)
        return -1;
    return call (p, "put", put_fn, errp);
}

static int wait_for_all (void *m, idt_error_t *errp)
{
    struct pmix *p = m;

    if (call (p, "fence", fence_fn, errp) == 0)
        return 0;
    return errno != ETIMEDOUT
               ? -1
               : errsetf (errp, ETIMEDOUT, "rank %u of %u waited for others that did not join", p->self.rank, p->size);
}

static int get (void *m, uint32_t rank, struct bizcard *card, idt_error_t *errp)
{
    struct pmix *p = m;
    int rc;

    p->of = p->self;
    p->of.rank = rank;
    p->key = CARD_KEY;
    if (call (p, "get", get_card_fn, errp) < 0)
        return -1;
    if (p->value->type != PMIX_STRING)
        return errsetf (errp, EPROTO, "rank %u: its bizcard is not a string", rank);
    rc = card_decode (p->value->data.string, rank, card, errp);
    free (p->value->data.string);
    free (p->value);
    p->value = NULL;
    return rc;
}

static void ready (void *m)
{
    struct pmix *p = m;

    p->deadline_ms = clock_ms (CLOCK_MONOTONIC) + BOOT_READY_MS;
    call (p, "finalize", finalize_fn, NULL);
}

/* Abort all tasks. Works even if an earlier call was left behind. */
static void end_all (void *m, int exit_code)
{
    struct pmix *p = m;

    p->exit_code = exit_code;
    p->deadline_ms = clock_ms (CLOCK_MONOTONIC) + BOOT_READY_MS;
    call (p, "abort", abort_fn, NULL);
}

const struct boot_method boot_pmix = {
    .name = "pmix",
    .create = create,
    .destroy = destroy,
    .put = put,
    .wait = wait_for_all,
    .get = get,
    .ready = ready,
    .abort = end_all,
};
