/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* role.h - whether this process may be rank 0: it waits for the role, claims it, and keeps it
 *
 * The state of an instance in PostgreSQL has one row that says which process is rank 0: its term, owner, state, and a
 * counter that the owner raises ("beat"). Each candidate is a process that waits until the row shows that no process
 * has the role, or
 * until the beat has stood still for root.takeover. Then it raises the term, in one statement that names the term and
 * beat that it has seen. Only then does it make its broker. A takeover needs no clock to be safe: the stores are fenced
 * by the term (libpg/fenced.h), so a root that does not know that it was replaced can store nothing.
 *
 *   WAIT     reads the row each twelfth of root.takeover
 *   CLAIM    sends a claim, and finds out its outcome
 *   LEAD     has the role; beats each sixth of root.takeover
 *   END      is over: 'ending' says how
 *
 * Rules:
 *   1. A claim names the term and beat of the newest read. So it fails if anything happened in between.
 *   2. Only answered time counts: between two reads at most two intervals, and none if a read shows another row. So a
 *      store that stands still causes no takeover.
 *   3. A claim whose answer is lost is settled by reading: 'owner' is a random UUID of this process. A claim that is
 *      known only from reading counts after a later beat was acknowledged, because what one server shows may not be on
 *      the second server yet.
 *   4. A process leads once. When it has ended, it must not be used again.
 *
 * This object does no I/O: time and answers are passed in, and it says what to do next. 'us' are CLOCK_BOOTTIME
 * microseconds. broker/root/role_pg.h does the rest.
 */
#ifndef BROKER_ROLE_H
#define BROKER_ROLE_H

#include <stdbool.h>
#include <stdint.h>

#define ROLE_OWNER_SIZE 37
#define ROLE_HOST_SIZE 256

#define ROLE_POLLS 12           /* reads in root.takeover */
#define ROLE_BEATS 6            /* beats in root.takeover */
#define ROLE_STAGGER_US 100000U /* each candidate waits so much longer than the one before it in cluster.root */
#define ROLE_PEERS_US 1000000U  /* without an answer of the store, look for another root that often */

/* The row. */
enum role_word { ROLE_NOBODY, ROLE_LEADS, ROLE_RELEASED, ROLE_STOPPED };

struct role_row {
    uint64_t term;
    uint64_t beat;
    enum role_word word;         /* ROLE_NOBODY: no root has led yet */
    char owner[ROLE_OWNER_SIZE]; /* a random UUID of the process that claimed the term */
    char host[ROLE_HOST_SIZE];   /* its host, for messages */
};

enum role_state { ROLE_WAIT, ROLE_CLAIM, ROLE_LEAD, ROLE_END };

enum role_ending {
    ROLE_END_NONE,    /* not over */
    ROLE_END_LOST,    /* another process has the role: exit 76, and be started again as a standby */
    ROLE_END_CUT,     /* the store did not answer, and another candidate serves, or the horizon has passed: exit 76 */
    ROLE_END_GIVEN,   /* given back in order (SIGTERM): exit 0 */
    ROLE_END_STOPPED, /* the instance was shut down: exit 0 */
};

struct role_config {
    uint64_t takeover_us; /* root.takeover */
    uint32_t candidate;   /* position in cluster.root, from 0 */
    char owner[ROLE_OWNER_SIZE];
    char host[ROLE_HOST_SIZE];
};

struct role {
    struct role_config config;
    enum role_state state;
    enum role_ending ending;
    enum role_ending wanted; /* how role_end () is to end it; ROLE_END_NONE: not called */
    struct role_row row;     /* as last read; in ROLE_LEAD the own one */
    bool seen;               /* 'row' was read */
    bool unsure;             /* ROLE_CLAIM: a claim was sent, and its outcome is not known */
    bool confirms;           /* ROLE_CLAIM: a read shows the own claim; a beat must be acknowledged (rule 3) */
    bool pending;            /* a statement was sent, and its outcome has not come in */
    bool asks_peers;         /* the same of ROLE_ACT_PEERS */
    uint64_t still_us;       /* answered time during which the row has not changed */
    uint64_t read_us;        /* the newest read */
    uint64_t sent_us;        /* the newest statement was sent */
    uint64_t look_us;        /* when to send the next statement */
    uint64_t answered_us;    /* the newest answer of the store */
    uint64_t asked_us;       /* the oldest statement that was sent after 'answered_us'; 0: none */
    uint64_t peer_us;        /* when to look for another root */
    uint64_t give_up_us;     /* when a release that gets no answer is given up */
};

/* What to do next. */
enum role_act {
    ROLE_ACT_NONE,    /* wait until role_due () */
    ROLE_ACT_READ,    /* read the row; then role_read () or role_failed () */
    ROLE_ACT_CLAIM,   /* UPDATE ... WHERE term = row.term AND beat = row.beat; then role_claimed () or role_failed () */
    ROLE_ACT_BEAT,    /* UPDATE ... WHERE term = row.term; then role_beaten () or role_failed () */
    ROLE_ACT_RELEASE, /* UPDATE ... WHERE term = row.term, word by wanted; then role_released () or role_failed () */
    ROLE_ACT_PEERS,   /* look whether another candidate accepts connections; then role_peers () */
};

void role_init (struct role *r, uint64_t now_us, const struct role_config *config);

/* The next thing to do, which then counts as begun. At most one statement is pending. */
enum role_act role_next (struct role *r, uint64_t now_us);

/* When role_next () is to be called again, unless something comes in before. UINT64_MAX: not before. */
uint64_t role_due (const struct role *r);

/* The row was read. */
void role_read (struct role *r, uint64_t now_us, const struct role_row *row);

/* The claim changed one row (true), or none. */
void role_claimed (struct role *r, uint64_t now_us, bool one);

/* The beat changed one row (true), or none: another term has begun. */
void role_beaten (struct role *r, uint64_t now_us, bool one);

/* The release was carried out, or another term has begun. */
void role_released (struct role *r, uint64_t now_us);

/* The pending statement got no answer, or was refused: its outcome is not known. */
void role_failed (struct role *r, uint64_t now_us);

/* 'one_serves': another candidate accepts connections. 'horizon_past': this root has no time left to grant. */
void role_peers (struct role *r, uint64_t now_us, bool one_serves, bool horizon_past);

/* End: give the role back (ROLE_END_GIVEN), or end the instance (ROLE_END_STOPPED). Only in ROLE_LEAD something is
 * written, at most for root.takeover. A claim that is under way may be carried out nevertheless; then its term passes
 * as if its owner had crashed.
 */
void role_end (struct role *r, uint64_t now_us, enum role_ending how);

#endif /* BROKER_ROLE_H */
