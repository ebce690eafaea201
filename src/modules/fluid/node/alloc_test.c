/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* alloc_test.c - each allocation fails in turn: every requester of a node or an authority is still answered exactly
 * once
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test/node_world.h"
#include "test/tap.h"
#include "modules/fluid/node/node.h"
#include "test/failing_alloc.h"

#define UUID WORLD_UUID
#define CHILD "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
#define MS UINT64_C (1000)
#define SECOND UINT64_C (1000000)
#define T0 (100 * SECOND)
#define REQUESTS 8
#define LEASES 5

static uint32_t asked_for (size_t request)
{
    return 500 * (uint32_t)request + 1;
}

static void ask (struct world *w, uint64_t at_us, size_t cookie, const char *asker)
{
    node_block (w->n, at_us,
                &(struct node_request){ .cookie = (void *)(cookie + 1), .count = asked_for (cookie), .asker = asker });
}

/* The parent answers the last forward, with 100 ids a millisecond. */
static void answer_forward (struct world *w, uint64_t at_us)
{
    static struct id_run run[1000];
    size_t n = 0;

    for (uint32_t left = w->count; left > 0; left -= run[n++].n)
        run[n] = (struct id_run){ ((w->after >> 24 < 10000 ? 10000 : (w->after >> 24) + 1) + n) << 24,
                                  left < 100 ? left : 100 };
    w->count = 0;
    if (n > 0)
        node_forwarded (w->n, at_us, w->tag, run, n);
}

static void want_for_child (struct world *w, uint64_t at_us, size_t cookie)
{
    const struct want want[] = {
        { .rank = 5, .incarnation = CHILD, .number = cookie + 1, .size = BOX_WHOLE },
        { .rank = 6, .incarnation = CHILD, .number = 1, .end_ms = 7 },
    };

    node_lease_request (w->n, at_us, (void *)(cookie + 1), &(struct lease_request){ .want = want, .nwant = 2 });
}

static void want_part (struct world *w, uint64_t at_us, size_t cookie)
{
    const struct want want = { .rank = 12, .incarnation = CHILD, .number = cookie + 1, .size = 64 };

    node_lease_request (w->n, at_us, (void *)(cookie + 1), &(struct lease_request){ &want, 1, .is_part = true });
}

static void answer_lease (struct world *w, uint64_t at_us, uint64_t hi_ms)
{
    const struct range range = { 10000, hi_ms };
    const struct grant grant[2] = {
        { .rank = 5, .incarnation = CHILD, .number = 1, .box = { 5, UINT64_MAX, range } },
        { .rank = 3, .incarnation = UUID, .number = w->own_number, .box = { 3, UINT64_MAX, range } },
    };

    node_lease_answered (w->n, at_us, w->lease_tag, &(struct lease_answer){ .grant = grant, .ngrant = 2 });
}

/* A node forwards, relays, makes ids itself, grants parts and stops. Returns whether it could be created. */
static bool node_life (struct world *w)
{
    const struct node_config config = { .rank = 3,
                                        .max_generators = 10,
                                        .incarnation = UUID,
                                        .lease_ms = 60000,
                                        .max_backlog_ms = 2000,
                                        .forward_timeout_ms = 5000,
                                        .max_waiting = 100,
                                        .share = NODE_SHARE_AUTO,
                                        .share_keep = 512 };
    const struct report report = { .from = CHILD, .low_ms = 5 };
    size_t size;

    *w = (struct world){ .n = node_create (&config, &world_ops, w) };
    if (!w->n)
        return false;
    node_parent (w->n, T0, true);
    for (size_t i = 0; i < 4; i++)
        ask (w, T0, i, i % 2 ? UUID : CHILD);
    for (int i = 0; i < 4; i++)
        answer_forward (w, T0 + MS);
    want_for_child (w, T0 + MS, 0);
    want_for_child (w, T0 + MS, 1);
    node_report (w->n, T0 + MS, &report);
    node_sample (w->n, T0 + 2 * MS,
                 &(struct idt_clock_sample){ .sent_us = T0 + MS,
                                             .peer_received_us = 20 * SECOND,
                                             .peer_sent_us = 20 * SECOND,
                                             .received_us = T0 + 2 * MS });
    node_tick (w->n, T0 + SECOND);
    answer_lease (w, T0 + SECOND, 70000);
    for (size_t i = 4; i < REQUESTS; i++)
        ask (w, T0 + SECOND, i, i % 2 ? UUID : CHILD);
    for (uint64_t i = 0; i < 20; i++)
        node_tick (w->n, T0 + SECOND + i * MS);
    want_part (w, T0 + SECOND + 20 * MS, 3);
    want_part (w, T0 + SECOND + 20 * MS, 4);
    want_for_child (w, T0 + 2 * SECOND, 2);
    node_stop (w->n, T0 + 2 * SECOND);
    free (node_leave (w->n, NULL, 0, &size));
    node_destroy (w->n);
    return true;
}

/* Each request was answered once: with an error, or with the ids that it asked for. */
static bool all_once (const struct world *w)
{
    bool good = true;

    for (size_t i = 0; i < REQUESTS; i++) {
        const struct record *r = &w->req[i + 1];

        good = good && r->answers == 1 && (r->errnum != 0 || r->ids == asked_for (i));
    }
    for (int i = 0; i < LEASES; i++)
        good = good && w->lease_answers[i + 1] == 1;
    return good;
}

static int short_of_memory (const struct world *w)
{
    int n = 0;

    for (int i = 0; i < REQUESTS; i++)
        n += w->req[i + 1].errnum == ENOMEM;
    return n;
}

static void test_node (void)
{
    struct world w;
    int lives = 0, told = 0;
    bool good = true;

    ok (node_life (&w) && all_once (&w) && short_of_memory (&w) == 0,
        "if no allocation fails all requests get their ids");
    for (failures = 1; failures > 0;) {
        failures = 0;
        countdown = lives++;
        bool lived = node_life (&w);
        countdown = -1;
        good = good && (lived ? all_once (&w) : failures > 0);
        told += short_of_memory (&w) > 0;
    }
    ok (good && lives > 10, "if any allocation fails, each request is still answered once (%d allocations)", lives);
    ok (told > 3, "some requests are answered with ENOMEM because an allocation failed");
}

/* --- the authority --------------------------------------------------------------------------------- */

/* Returns how many ranges were granted, or -1 if the authority could not be created. */
static int authority_life (void)
{
    const struct authority_config config = { .max_generators = 10, .lease_ms = 60000 };
    const struct lease_record fresh = { 0 };
    const struct want want = { .rank = 5, .incarnation = CHILD, .number = 1, .size = BOX_WHOLE };
    struct world w = { 0 };
    struct lease_answer answer;
    struct lease_record last;
    size_t size;
    struct authority *a = authority_create (&config, &world_root_ops, &w, T0,
                                            &(struct authority_start){ .wall_us = 10 * SECOND, .stored = &fresh });

    if (!a)
        return -1;
    authority_stored (a, T0, w.record.horizon_ms);
    authority_answer (a, T0, &(struct lease_request){ .want = &want, .nwant = 1 }, &answer);
    authority_close (a, T0, &last);
    void *past = authority_leave (a, &last, &size);
    bool whole = past ? size > 0 : size == 0;
    free (past);
    authority_destroy (a);
    return whole ? (int)answer.ngrant : 2;
}

static void test_authority (void)
{
    int given[8] = { 0 }, lives = 0;

    for (failures = 1; failures > 0 && lives < 8; lives++) {
        failures = 0;
        countdown = lives;
        given[lives] = authority_life ();
        countdown = -1;
    }
    ok (lives == 6 && given[0] == -1 && given[1] == -1 && given[2] == -1,
        "an authority is created completely, or not at "
        "all");
    ok (given[3] == 0, "a lease request for which memory is short grants nothing");
    ok (given[4] == 1 && given[5] == 1, "a handover for which memory is short has no effect");
}

int main (void)
{
    test_node ();
    test_authority ();
    return done_testing ();
}
