/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sim.h - one history of a tree of nodes in a world full of faults, decided by a seed
 *
 * The nodes are the real ones of the broker (modules/fluid/node/node.h). Clock, network and disk are simulated:
 * - messages are lost, repeated, delayed and reordered
 * - brokers are killed, paused, cut off, started twice, and stopped cleanly, at any point
 * - wall clocks jump; the clocks of a host miss pauses, jump, or report time that did not pass, which the clock check
 *   must detect
 * - the root's disk hangs and fails; if the root dies, its last commit, even that of a clean stop, may or may not have
 *   happened
 * - rank 0 crashes many times in a row
 * - in histories with a standby, other roots take over while the old root continues. The store does their writes late,
 *   or loses the answers. It refuses the writes of all roots but the last one
 * - modules are reloaded, with or without a gap, and continue with their handover; rank 0 continues with it even if
 *   another root ran meanwhile
 * - other modules are granted time
 * - in some histories brokers differ in their options, in some processes make ids by pages, and in some the instance's
 *   time ends
 *
 * Meanwhile clients send requests to every rank. Some name an id that was never made, and request ids above it; some
 * request more ids than can be made in time. At the end all faults are healed, and every request that waits must be
 * served.
 *
 * Checked at every step:
 * - no id is made twice; ids lie in ranges that are held; the ranges that different incarnations hold are disjoint
 * - the root holds and grants nothing above the horizon that is on the disk; crashes put the horizon ahead by at most
 *   a bound
 * - each request is answered exactly once and in time, with as many ids as it asked for, all above the id that it named
 * - all ids that one client gets from one broker increase
 * - no id leaves the broker that made it below a watermark that a root has reported before; no id is older than its
 *   request, apart from the bound of the broker's clock
 * - no clock goes back, or runs ahead of the clocks of the roots; in histories whose root lives throughout, no clock
 *   differs from the root's by more than its own bound
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

struct sim_config {
    uint64_t seed;
    uint32_t nodes; /* 1 ... 64; 0: the seed decides on 2 ... 16 */
    uint64_t steps; /* number of events until all faults are healed */
    bool standby;   /* other roots may take over */
    bool unfenced;  /* the store does all writes of all roots: a fault that the checks must find */
    bool verbose;   /* print each event */
};

struct sim_result {
    char violation[256]; /* empty: no violation */
    uint64_t events;
    uint64_t faults;
    uint64_t requests;
    uint64_t answered; /* requests that were answered with ids */
    uint64_t failed;   /* requests that failed with an error */
    uint64_t ids;
    uint64_t ranges;     /* ranges that were granted */
    uint64_t parts;      /* parts that were granted, renewals included */
    uint64_t watermarks; /* how often the watermark rose */
    uint64_t paged;      /* ids that were made by a page */
    uint64_t lives;      /* number of incarnations */
    uint64_t takeovers;  /* how often a root began while another one lived */
    uint64_t sim_ms;     /* simulated time in ms */
};

/* Play a history, and add its result to '*sum'. */
void sim_run (const struct sim_config *config, struct sim_result *sum);

#endif /* SIM_SIM_H */
