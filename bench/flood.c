/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

#include "config.h"

#include "flood.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timing.h"

struct run {
    const struct flood *flood;
    idt_reactor_t *reactor;
    double start; /* when the part that counts begins */
    uint64_t got; /* ids */
    int outstanding;
};

/* One of the requests that a client keeps pending. */
struct request {
    struct run *run;
    idt_t *h;
    double sent; /* seconds, as now_s () */
};

static void die (const char *what)
{
    fprintf (stderr, "bench: a flood of requests: %s: %s\n", what, strerror (errno));
    exit (EXIT_FAILURE);
}

static void send_at (struct request *r, double now);

static void count (struct request *r, double now)
{
    const struct flood *fl = r->run->flood;

    r->run->got += (uint64_t)fl->block;
    if (fl->times)
        figures_add (fl->times, (now - r->sent) * 1e6);
}

static void answered (idt_future_t *f, void *arg)
{
    struct request *r = arg;
    struct run *run = r->run;
    const struct flood *fl = run->flood;
    fluid_t ids[FLOOD_BLOCK_MAX];
    double now = now_s (), s = now - run->start;

    if ((fl->topic ? idt_rpc_get (f, NULL) : idt_fluid_generate_get (f, (uint32_t)fl->block, ids)) < 0)
        die (idt_future_error (f));
    idt_future_destroy (f);
    run->outstanding--;
    if (s >= 0 && s < fl->seconds)
        count (r, now);
    if (s < fl->seconds)
        send_at (r, now);
    else if (run->outstanding == 0)
        idt_reactor_stop (run->reactor);
}

static void send_at (struct request *r, double now)
{
    const struct flood *fl = r->run->flood;
    idt_future_t *f = fl->topic ? idt_rpc (r->h, fl->topic, "{\"count\":1}", IDT_NODEID_ANY, 0)
                                : idt_fluid_generate_async (r->h, (uint32_t)fl->block);

    if (!f || idt_future_then (f, -1., answered, r) < 0)
        die (fl->topic ? fl->topic : "idt_fluid_generate_async");
    r->sent = now;
    r->run->outstanding++;
}

double flood_run (const struct flood *flood, idt_t **clients, int n)
{
    struct run run = { .flood = flood, .reactor = idt_reactor_create () };
    int total = n * flood->under_way;
    struct request *requests = calloc ((size_t)total, sizeof (requests[0]));

    if (!run.reactor || !requests)
        die ("memory");
    for (int i = 0; i < n; i++)
        if (idt_set_reactor (clients[i], run.reactor) < 0)
            die ("idt_set_reactor");
    run.start = now_s () + flood->warmup_s;
    for (int i = 0; i < total; i++) {
        requests[i] = (struct request){ .run = &run, .h = clients[i % n] };
        send_at (&requests[i], now_s ());
    }
    if (idt_reactor_run (run.reactor, IDT_REACTOR_DEFAULT) < 0)
        die ("idt_reactor_run");
    for (int i = 0; i < n; i++)
        idt_close (clients[i]);
    idt_reactor_destroy (run.reactor);
    free (requests);
    return (double)run.got / flood->seconds;
}
