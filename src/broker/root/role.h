/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* role.h - whether this process may be rank 0: it waits for the role, claims it, and keeps it
 *
 * The state of an instance in PostgreSQL has one row that says who is rank 0: its term, owner, state, and a counter that
 * the owner raises ("beat"). Each candidate is a process that waits until the row shows that nobody has the role, or
 * until the beat has stood still for root.takeover. Then it raises the term, in one statement that names the term and
 * beat that it has seen. Only then does it make its broker. A takeover needs no clock to be safe: the stores are fenced
 * by the term (libpg/fenced.h), so a root that does not know that it was replaced can store nothing.
 *
 *   WAIT     looks at the row each twelfth of root.takeover
 *   CLAIM    has sent a claim
 *   LEAD     has the role; beats each sixth of root.takeover
 *   END      is over: role_ending () says how
 *
 * This object does no I/O: it is told the time, and what came in, and says what to do next. 'us' are CLOCK_BOOTTIME
 * microseconds. broker/root/role_pg.h does the rest.
 */
#ifndef BROKER_ROLE_H
#define BROKER_ROLE_H

#include <stdbool.h>
#include <stdint.h>

#define ROLE_OWNER_SIZE 37
#define ROLE_HOST_SIZE 256

/* The row. */
enum role_word { ROLE_NOBODY, ROLE_LEADS, ROLE_RELEASED, ROLE_STOPPED };

struct role_row {
    uint64_t term;
    uint64_t beat;
    enum role_word word;          /* ROLE_NOBODY: no root has led yet */
    char owner[ROLE_OWNER_SIZE];  /* a random UUID of the process that claimed the term */
    char host[ROLE_HOST_SIZE];    /* its host, for messages */
};

enum role_state { ROLE_WAIT, ROLE_CLAIM, ROLE_LEAD, ROLE_END };

enum role_ending {
    ROLE_END_NONE,    /* not over */
    ROLE_END_LOST,    /* another process has the role: exit 76, and be started again as a standby */
    ROLE_END_GIVEN,   /* given back in order (SIGTERM): exit 0 */
    ROLE_END_STOPPED, /* the instance was shut down: exit 0 */
    ROLE_END_CUT,     /* the store did not answer, and another candidate serves, or the horizon has passed: exit 76 */
};

struct role_config {
    uint64_t takeover_us;         /* root.takeover */
    uint32_t candidate;           /* position in cluster.root; each position waits 100 ms longer */
    char owner[ROLE_OWNER_SIZE];
    char host[ROLE_HOST_SIZE];
};

struct role {
    struct role_config config;
    enum role_state state;
    enum role_ending ending;
    struct role_row row;     /* as last seen; in ROLE_LEAD our own */
    bool seen;               /* 'row' was read */
    uint64_t still_us;       /* answered time during which the beat stood still */
    uint64_t look_us;        /* when to act next */
    uint64_t answered_us;    /* the newest answer of the store; 0: none */
    uint64_t asked_us;       /* when the pending request was sent; 0: none is pending */
    uint64_t peer_us;        /* when to look for another candidate's port */
};

/* What to do next. */
enum role_act {
    ROLE_ACT_NONE,    /* wait until role_due () */
    ROLE_ACT_READ,    /* read the row; then role_read () or role_failed () */
    ROLE_ACT_CLAIM,   /* UPDATE ... WHERE term = row.term AND beat = row.beat; then role_claimed () or role_failed () */
    ROLE_ACT_BEAT,    /* UPDATE ... WHERE term = row.term; then role_beaten () or role_failed () */
    ROLE_ACT_PEERS,   /* look whether another candidate accepts connections; then role_peers () */
    ROLE_ACT_RELEASE, /* write the word; then role_released () or role_failed () */
};

void role_init (struct role *r, uint64_t now_us, const struct role_config *config);

/* The next thing to do, which then counts as begun. At most one that uses the store is pending. */
enum role_act role_next (struct role *r, uint64_t now_us);

/* When role_next () is to be called again, unless something comes in before. */
uint64_t role_due (const struct role *r);

/* The row, as it was read. In ROLE_LEAD and ROLE_CLAIM it settles what a lost answer left open. */
void role_read (struct role *r, uint64_t now_us, const struct role_row *row);

/* The claim changed one row (true), or none. */
void role_claimed (struct role *r, uint64_t now_us, bool one);

/* The beat changed one row (true), or none: another term has begun. */
void role_beaten (struct role *r, uint64_t now_us, bool one);

/* The statement got no answer, or was refused: its outcome is not known. */
void role_failed (struct role *r, uint64_t now_us);

/* Another candidate accepts connections. 'horizon_past': this root has no time left to grant. */
void role_peers (struct role *r, uint64_t now_us, bool one_serves, bool horizon_past);

/* End: give the role back (SIGTERM), or end the instance (idtree shutdown). Only in ROLE_LEAD something is written. */
void role_end (struct role *r, uint64_t now_us, enum role_ending how);
void role_released (struct role *r, uint64_t now_us);

#endif /* BROKER_ROLE_H */
