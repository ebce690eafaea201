/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sim.h - one history of a tree of nodes in a world without mercy, decided by a seed
 *
 * The nodes are those of the broker (modules/fluid/node/node.h).  Clock, network and disk are simulated: messages are
 * lost, repeated, delayed, overtaken; brokers are killed, paused, cut off, started twice, stopped cleanly, at any
 * point; wall clocks jump; the root's disk hangs and fails, and a commit may or may not have happened when the root
 * dies, nor a clean stop's last one.  Modules are loaded anew, at once or after a while without one, and go on with
 * what they left, rank 0's also after another root; others borrow time; hosts' clocks miss pauses, jump, or say so
 * where nothing was, and brokers' witnesses are asked; rank 0 crashes again and again.  In some histories brokers'
 * options differ, in some processes make ids by brokers' pages, whoever is killed, in some time comes to its end.  All
 * the while clients ask every rank, some for ids above one that nobody has made, some for more than is made in time.
 * At the end everything heals, and whoever still waits must be served.
 *
 * Checked at every step: no id twice; ranges that different incarnations hold are disjoint; ids lie in ranges that
 * are held; the root holds and gives nothing above the horizon that is on the disk; each request is answered
 * exactly once and in its time, with as many ids as it asked for, above the id that it named; all ids that one client
 * gets of one broker increase; no clock runs ahead of those of the roots; no id leaves the broker that made it below a
 * watermark that a root has told before, nor is it older than the request for it, but by the bound that the clock
 * tells; crashes carry the horizon no further than they may; no clock goes back; clocks differ from the root's by no
 * more than the bound that they tell (in histories whose root lives through).
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

struct sim_config {
    uint64_t seed;
    uint32_t nodes; /* 1 ... 64; 0: the seed decides, 2 ... 16 */
    uint64_t steps; /* events before everything heals */
    bool verbose;   /* print what happens */
};

struct sim_result {
    char violation[256]; /* empty: none */
    uint64_t events;
    uint64_t faults;
    uint64_t requests;
    uint64_t answered; /* with ids */
    uint64_t failed;   /* with an error */
    uint64_t ids;
    uint64_t ranges;     /* taken */
    uint64_t shares;     /* borrowed, renewals counted */
    uint64_t spilled;    /* requests that owners passed on */
    uint64_t watermarks; /* higher ones */
    uint64_t paged;      /* ids by a page */
    uint64_t lives;      /* incarnations */
    uint64_t sim_ms;     /* that passed in the history */
};

struct sim_result sim_run (const struct sim_config *config);

#endif /* SIM_SIM_H */
