/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* world.c - random numbers, events and messages of a simulated world */
#include <stdio.h>
#include <string.h>

#include "sim/world.h"

/* --- random numbers ------------------------------------------------------------------------------------ */

static uint64_t next_random (struct world *w)
{
    uint64_t z = w->random += UINT64_C (0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C (0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t world_below (struct world *w, uint64_t n)
{
    return next_random (w) % n;
}

bool world_chance (struct world *w, unsigned of_1000)
{
    return world_below (w, 1000) < of_1000;
}

/* --- events ---------------------------------------------------------------------------------------------- */

static bool earlier (const struct sim_event *a, const struct sim_event *b)
{
    return a->t != b->t ? a->t < b->t : a->order < b->order;
}

static void swap (struct sim_event *a, struct sim_event *b)
{
    struct sim_event e = *a;

    *a = *b;
    *b = e;
}

void world_push (struct world *w, struct sim_event e)
{
    if (w->nevents == w->heap_size) {
        w->heap_size = w->heap_size ? 2 * w->heap_size : 256;
        w->heap = must (realloc (w->heap, w->heap_size * sizeof (w->heap[0])));
    }
    e.order = ++w->order;
    size_t i = w->nevents++;
    for (w->heap[i] = e; i > 0 && earlier (&w->heap[i], &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap (&w->heap[i], &w->heap[(i - 1) / 2]);
}

struct sim_event world_pop (struct world *w)
{
    struct sim_event e = w->heap[0];
    size_t i = 0, n = --w->nevents;

    w->heap[0] = w->heap[n];
    for (size_t k; (k = 2 * i + 1) < n; i = k) {
        if (k + 1 < n && earlier (&w->heap[k + 1], &w->heap[k]))
            k++;
        if (!earlier (&w->heap[k], &w->heap[i]))
            break;
        swap (&w->heap[k], &w->heap[i]);
    }
    return e;
}

void world_later (struct world *w, uint64_t us, enum event_type type, uint32_t life, uint64_t n)
{
    world_push (w, (struct sim_event){ .t = w->t + us, .type = type, .life = life, .n = n });
}

void world_say (struct world *w, const struct life *l, const char *what)
{
    if (w->config->verbose)
        printf ("# %9.3f ms: rank %u life %u: %s\n", (double)w->t / 1000, (unsigned)l->rank, (unsigned)l->id, what);
}

/* --- messages --------------------------------------------------------------------------------------------- */

static void *copy (const void *p, size_t n, size_t size)
{
    void *q = n > 0 ? must (malloc (n * size)) : NULL;

    if (n > 0)
        memcpy (q, p, n * size);
    return q;
}

void message_unref (struct message *msg)
{
    if (!msg || --msg->refs > 0)
        return;
    free (msg->run);
    free ((void *)msg->req.want);
    free ((void *)msg->req.back);
    free ((void *)msg->answer.grant);
    free (msg);
}

/* Mostly short, sometimes very long, so that messages overtake each other. */
static uint64_t delay (struct world *w)
{
    uint64_t us = 20 + world_below (w, w->delay_us);

    return !w->healing && world_chance (w, 20) ? us * (1 + world_below (w, 50)) : us;
}

/* A repeated message may arrive after its sender, and the sender's successor, have ended (RETURN_BY_LESSEE in
 * doc/model).
 */
static uint64_t repeat_delay (struct world *w)
{
    return delay (w) + (world_chance (w, 300) ? world_below (w, w->lease_ms * MS / 2) : 0);
}

void message_send (struct world *w, const struct message *msg)
{
    struct message *m = must (malloc (sizeof (*m)));
    unsigned copies = w->healing ? 1 : !world_chance (w, w->loss) + world_chance (w, w->repeat);

    *m = *msg;
    m->refs = 1;
    m->run = copy (msg->run, msg->nruns, sizeof (msg->run[0]));
    m->req.want = copy (msg->req.want, msg->req.nwant, sizeof (msg->req.want[0]));
    m->req.back = copy (msg->req.back, msg->req.nback, sizeof (msg->req.back[0]));
    m->answer.grant = copy (msg->answer.grant, msg->answer.ngrant, sizeof (msg->answer.grant[0]));
    w->result.faults += copies != 1;
    for (unsigned i = 0; i < copies; i++, m->refs++)
        world_push (w, (struct sim_event){ .t = w->t + (i > 0 ? repeat_delay (w) : delay (w)),
                                           .type = EV_MESSAGE,
                                           .life = m->to,
                                           .msg = m });
    message_unref (m);
}
