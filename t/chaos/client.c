/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* client.c - a thread that requests ids from one broker without pause
 *
 * It sends fluid.block by libidtree's function for requests, and records the runs of ids as they arrive; only the
 * checker checks them. When a request ends, the callback of its future records how: with ids, with an error, or because
 * the connection was lost. A slot is used again as soon as it is free, but only after a short delay if the request
 * failed.
 */
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <idtree/idtree.h>

#include "client.h"
#include "die.h"
#include "rng.h"

#define SLOTS_MAX 8              /* pending requests of a client */
#define COUNT_BITS 16            /* numbers of ids are distributed evenly over their number of bits */
#define ANSWER_TIMEOUT_MS 60000. /* after this time there is no answer; far longer than any fault of the nemesis */
#define RETRY_MS 10.             /* pause after an error, or while there is no broker */
#define INFO_PERIOD_MS 100.

struct slot {
    struct client *c;
    idt_future_t *f; /* NULL: the slot is free */
    uint64_t sent_us;
    fluid_t after;
    uint32_t count;
};

struct question {
    struct client *c;
    const char *topic;
    idt_future_f cb;
    idt_future_t *f;
    uint64_t sent_us;
};

struct client {
    struct client_config config;
    struct history h;
    uint32_t life; /* number of connections so far */
    struct rng rng;
    pthread_t thread;
    _Atomic uint64_t answers;
    _Atomic bool ended;

    idt_reactor_t *r;
    idt_t *handle;
    idt_watcher_t *retry; /* fills the slots again after errors */
    idt_watcher_t *info;
    struct slot slots[SLOTS_MAX];
    uint32_t depth; /* number of slots that this connection uses */
    uint32_t busy;
    fluid_t last; /* the largest id that the client got */
    bool stopping;
    bool lost;
    struct question questions[2];
};

uint64_t client_now_us (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * UINT64_C (1000000) + ts.tv_nsec / 1000;
}

static void end_if_idle (struct client *c)
{
    if (c->stopping && c->busy == 0)
        idt_reactor_stop (c->r);
}

/* --- requests ------------------------------------------------------------------------------------ */

static void fill (struct client *c);

/* A run takes 12 bytes, big-endian: u64 first, u32 n. */
static void log_runs (struct client *c, const uint8_t *p, size_t size, struct history_answer *a)
{
    for (; size >= 12; p += 12, size -= 12, a->nruns++) {
        uint64_t first;
        uint32_t n;

        memcpy (&first, p, sizeof (first));
        memcpy (&n, p + sizeof (first), sizeof (n));
        history_run (&c->h, be64toh (first), be32toh (n));
        fluid_t last = be64toh (first) + (be32toh (n) - 1);
        if (last > c->last)
            c->last = last;
    }
    if (size > 0) /* no answer has such a size, so the checker must see it */
        history_run (&c->h, 0, 0), a->nruns++;
}

static void answer_cb (idt_future_t *f, void *arg)
{
    struct slot *s = arg;
    struct client *c = s->c;
    struct history_answer a = { s->sent_us, client_now_us (), s->after, s->count, 0, 0, c->h.nruns };
    const void *data;
    size_t size;

    if (s->f != f) { /* the request had ended before */
        c->h.twice++;
        return;
    }
    if (idt_rpc_get_raw (f, &data, &size) == 0) {
        log_runs (c, data, size, &a);
        atomic_fetch_add (&c->answers, 1);
    }
    else
        a.errnum = c->lost || errno == EPIPE || errno == EPROTO ? ECONNRESET : errno;
    if (a.errnum == EOVERFLOW) /* the time of ids is over, so no further answer has ids */
        atomic_fetch_add (&c->answers, 1);
    history_answer (&c->h, &a);
    s->f = NULL;
    c->busy--;
    idt_future_destroy (f);
    end_if_idle (c);
    if (a.errnum == 0)
        fill (c);
    else if (!c->stopping)
        idt_watcher_start (c->retry);
}

static int ask (struct client *c, struct slot *s)
{
    uint8_t request[12];

    s->count = 1 + rng_below (&c->rng, 1U << rng_below (&c->rng, COUNT_BITS + 1));
    if (s->count > IDT_FLUID_MAX_COUNT)
        s->count = IDT_FLUID_MAX_COUNT;
    s->after = c->last;
    s->sent_us = client_now_us ();
    memcpy (request, &(uint32_t){ htobe32 (s->count) }, 4);
    memcpy (request + 4, &(uint64_t){ htobe64 (s->after) }, 8);
    if (!(s->f = idt_rpc_raw (c->handle, "fluid.block", request, sizeof (request), IDT_NODEID_ANY, 0)))
        return -1;
    c->h.sent++;
    c->busy++;
    if (idt_future_then (s->f, ANSWER_TIMEOUT_MS, answer_cb, s) < 0)
        die ("idt_future_then");
    return 0;
}

/* Fill the free slots. If a request cannot be sent, the connection will soon be lost. */
static void fill (struct client *c)
{
    if (c->stopping || c->lost)
        return;
    for (uint32_t i = 0; i < c->depth; i++)
        if (!c->slots[i].f && ask (c, &c->slots[i]) < 0)
            return;
}

static void retry_cb (idt_watcher_t *w, int revents, void *arg)
{
    fill (arg);
}

/* --- reports of the broker ------------------------------------------------------------------------ */

static void info_answer_cb (idt_future_t *f, void *arg)
{
    struct question *q = arg;
    struct history_bound b = { .sent_us = q->sent_us, .got_us = client_now_us () };
    json_t *bound;
    int rank;

    if (idt_rpc_get_unpack (f, "{s:i s:o}", "rank", &rank, "skew_bound_ms", &bound) == 0 && json_is_number (bound)) {
        b.rank = (uint32_t)rank;
        b.life = q->c->life;
        b.bound_us = (uint64_t)(json_number_value (bound) * 1000);
        history_bound (&q->c->h, &b);
    }
    q->f = NULL;
    idt_future_destroy (f);
}

static void watermark_answer_cb (idt_future_t *f, void *arg)
{
    struct question *q = arg;
    const char *text;

    if (idt_rpc_get_unpack (f, "{s:s}", "timestamp_ms", &text) == 0)
        history_watermark (&q->c->h, &(struct history_watermark){ client_now_us (), strtoull (text, NULL, 10) });
    q->f = NULL;
    idt_future_destroy (f);
}

static void info_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct client *c = arg;

    for (int i = 0; i < 2 && !c->lost; i++) {
        struct question *q = &c->questions[i];

        if (q->f)
            continue;
        q->sent_us = client_now_us ();
        q->f = idt_rpc (c->handle, q->topic, NULL, IDT_NODEID_ANY, 0);
        if (q->f && idt_future_then (q->f, -1, q->cb, q) < 0)
            die ("idt_future_then");
    }
}

/* --- connection ------------------------------------------------------------------------------------ */

static void lost_cb (idt_t *h, int errnum, void *arg)
{
    struct client *c = arg;

    c->lost = true;
    idt_reactor_stop (c->r);
}

static void stop_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct client *c = arg;

    idt_watcher_stop (w);
    c->stopping = true;
    end_if_idle (c);
}

/* Use the connection until it is lost. If the client must stop, use it until all requests have ended. */
static void serve (struct client *c)
{
    c->lost = false;
    c->life++;
    if (c->config.forgets)
        c->last = 0;
    c->depth = rng_between (&c->rng, 1, SLOTS_MAX);
    idt_set_lost (c->handle, lost_cb, c);
    if (c->config.asks_info)
        idt_watcher_start (c->info);
    fill (c);
    end_if_idle (c);
    idt_reactor_run (c->r, IDT_REACTOR_DEFAULT);
    idt_watcher_stop (c->info);
    idt_watcher_stop (c->retry);
    for (int i = 0; i < 2; i++) {
        idt_future_destroy (c->questions[i].f);
        c->questions[i].f = NULL;
    }
}

static void wait_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct client *c = arg;

    idt_reactor_stop (c->r);
}

static void *client_main (void *arg)
{
    struct client *c = arg;
    idt_watcher_t *stop, *wait;

    if (!(c->r = idt_reactor_create ())
        || !(stop = idt_fd_watcher_create (c->r, c->config.stop_fd, IDT_POLLIN, stop_cb, c))
        || !(wait = idt_timer_watcher_create (c->r, RETRY_MS, 0, wait_cb, c))
        || !(c->retry = idt_timer_watcher_create (c->r, RETRY_MS, 0, retry_cb, c))
        || !(c->info = idt_timer_watcher_create (c->r, 0, INFO_PERIOD_MS, info_cb, c)))
        die ("a client's reactor");
    idt_watcher_start (stop);
    while (!c->stopping) {
        if ((c->handle = idt_open (c->config.uri, NULL)) && idt_set_reactor (c->handle, c->r) == 0)
            serve (c);
        else {
            idt_watcher_start (wait);
            idt_reactor_run (c->r, IDT_REACTOR_DEFAULT);
        }
        idt_close (c->handle);
        c->handle = NULL;
    }
    idt_watcher_destroy (c->info);
    idt_watcher_destroy (c->retry);
    idt_watcher_destroy (wait);
    idt_watcher_destroy (stop);
    idt_reactor_destroy (c->r);
    atomic_store (&c->ended, true);
    return NULL;
}

/* --- life -------------------------------------------------------------------------------------------- */

struct client *client_start (const struct client_config *config)
{
    struct client *c = calloc (1, sizeof (*c));

    if (!c)
        die ("a client");
    c->config = *config;
    c->h.rank = config->rank;
    c->h.client = config->client;
    c->h.makers = config->makers;
    c->h.ranks = config->ranks;
    c->rng.state = config->seed;
    for (int i = 0; i < SLOTS_MAX; i++)
        c->slots[i].c = c;
    c->questions[0] = (struct question){ .c = c, .topic = "fluid.info", .cb = info_answer_cb };
    c->questions[1] = (struct question){ .c = c, .topic = "fluid.watermark", .cb = watermark_answer_cb };
    if ((errno = pthread_create (&c->thread, NULL, client_main, c)) != 0)
        die ("a client's thread");
    return c;
}

uint64_t client_answers (const struct client *c)
{
    return atomic_load (&c->answers);
}

bool client_ended (const struct client *c)
{
    return atomic_load (&c->ended);
}

const struct history *client_join (struct client *c)
{
    pthread_join (c->thread, NULL);
    return &c->h;
}

void client_destroy (struct client *c)
{
    if (!c)
        return;
    history_fini (&c->h);
    free (c);
}
