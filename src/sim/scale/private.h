/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private.h - what the parts of a simulation at size share
 *
 *   scale.c     the course of a run; who is there
 *   host.c      processors: when something is done, and what it costs
 *   scale_link.c      messages on their way
 *   arrive.c    what comes to a rank
 *   ops.c       what a node wants done
 *   load.c      clients
 *   place.c     coming and going: start, loss, parents
 *   report.c    what is printed
 *
 * A rank does one thing after the other.  With a processor of its own it does what arrives when it is free, in order of
 * arrival; so what arrives is done at once, with the time told at which it will have been done, and nothing is queued.
 * Where ranks share cores, what cannot be done yet is put off until its rank, or a core, is free.
 */
#ifndef SIM_SCALE_PRIVATE_H
#define SIM_SCALE_PRIVATE_H

#include "broker/base/plan.h"
#include "broker/base/topology.h"
#include "modules/fluid/node/inspect.h"
#include "sim/sim_check.h"
#include "sim/scale/queue.h"
#include "sim/scale/samples.h"
#include "sim/scale/scale.h"

#define MS_NS UINT64_C (1000000)
#define SECOND_NS UINT64_C (1000000000)
#define EPOCH_MS INT64_C (1767225600000)
#define MAX_LEVELS 40 /* deeper ones count as the last */
#define NSTATES 4

enum event_type {
    EV_START,    /* a rank; with.n: and then that one more of its process, 0: none */
    EV_JOIN,     /* a rank that waited until it may look for its parent */
    EV_MESSAGE,  /* arrives */
    EV_IO,       /* ZeroMQ's threads have a message, on a host that is shared */
    EV_TICK,     /* a node's deadline; with.n: that */
    EV_BEAT,     /* the next heartbeat is due, or the next ranks' */
    EV_PING,     /* that */
    EV_RETRY,    /* a rank looks for a parent; with.n: the link that it looked for last */
    EV_PROBE,    /* a rank that is not with its own parent tries to return */
    EV_LOST,     /* a rank sees that its link is gone; with.n: which */
    EV_STORED,   /* the disk has done */
    EV_WALL,     /* rank 0 looks at the wall clock */
    EV_LOAD,     /* the next request of a client, somewhere */
    EV_BURST,    /* the next rank of a burst */
    EV_REQUEST,  /* a client's comes to its broker */
    EV_CLIENT,   /* the client process begins one, on a host that is shared */
    EV_ANSWERED, /* ... and has its answer */
    EV_TURN,     /* of a process that has something to do; 'rank' is its number */
    EV_KILL,
    EV_PHASE, /* with.n: the next */
};

enum message_type {
    MSG_BLOCK,
    MSG_CANCEL,
    MSG_LEASE,
    MSG_REPORT,
    MSG_WANT,
    MSG_PING,
    MSG_HELLO, /* the last that goes up */
    MSG_IDS,
    MSG_ERROR,
    MSG_GRANTS,
    MSG_SHARE,
    MSG_PONG,
    MSG_JOINED,
    NMESSAGES,
};

struct scale_message {
    struct scale_message *next; /* of those that are spare */
    enum message_type type;
    uint32_t from, to;
    uint32_t link;
    uint32_t tag;
    uint32_t count; /* ids; errnum; MSG_SHARE: retry_ms */
    bool has_share;
    size_t nruns;
    struct run *run; /* 'small', or to be freed */
    struct run small[2];
    union {
        fluid_t after;
        struct lease_request req;
        struct lease_answer answer;
        struct idt_clock_sample sample;
        struct report report;
        struct share_want want;
        struct share share;
    };
};

/* A request that a node has: of a client, or of a child. */
struct scale_ask {
    struct scale_ask *next, *prev; /* of its rank */
    uint32_t rank;
    uint32_t child;
    uint32_t link; /* the child's */
    uint32_t tag;
    uint32_t count;
    uint32_t life; /* of the rank that was asked */
    bool client;
    bool measured;
    bool probe; /* what is asked right after a loss */
    bool failed;
    bool at_node;          /* which has not answered it yet */
    enum node_state state; /* of the rank when it was asked */
    uint64_t asked_ns;
};

struct tags {
    uint32_t *tag;
    uint32_t count, size;
};

/* One direction of a link: when it is free, and when the last message arrives. */
struct scale_way {
    uint64_t free_ns, last_ns;
};

enum rank_place { PLACE_DOWN, PLACE_SEEKS, PLACE_UP };

struct scale_rank {
    struct scale *s;
    struct node *node; /* NULL: not running */
    struct scale_ask *asks;
    uint64_t busy_ns; /* its processor is, until then */
    uint64_t tick_ns; /* when it is woken; UINT64_MAX: not */
    uint64_t used_ns; /* of that, while it is measured */
    struct scale_way up, down;
    struct tags tags;  /* of lease requests that went up */
    uint32_t received; /* messages from children, while it is measured */
    uint32_t parent;   /* whom it is with, or asks */
    uint32_t link;     /* changes with each attempt */
    uint32_t life;     /* how often it was started */
    uint16_t tries;    /* of ancestors, since one answered */
    uint16_t rounds;   /* through all of them */
    uint8_t level;     /* at most MAX_LEVELS - 1 */
    uint8_t under_way; /* forwards */
    uint8_t place;     /* enum rank_place */
    bool activated;    /* has been */
    bool has_joined;   /* ever */
    bool waits;        /* for its parent, which is in its process, or for all processes */
    bool wants_share;  /* and waits for the answer */
};

/* One that hosts many ranks: it has one thread for them. */
struct scale_process {
    uint64_t busy_ns;         /* until then */
    struct scale_event *todo; /* a ring, in order of arrival */
    uint32_t first, count, size;
    bool has_turn; /* an EV_TURN is to come */
};

struct scale_level {
    uint32_t ranks;
    uint64_t messages[NMESSAGES]; /* over the links up from here, while it is measured */
    uint64_t bytes;
    struct samples latency[NSTATES];
};

/* --- phases --- */
enum phase { PHASE_COLD, PHASE_WARM, PHASE_MEASURE, PHASE_DRAIN, PHASE_END };

/* What grows with the number of brokers, with as many as there are (costs.h). */
struct scale_transport {
    double heartbeat_us, report_us, local_us, cold_us, client_us;
};

struct scale {
    struct scale_config config;
    struct scale_transport inside; /* of a process of many */
    struct scale_result result;
    struct topo *topo;
    struct queue queue;
    uint64_t t_ns;
    uint64_t random;
    enum phase phase;
    struct scale_rank *rank;
    struct scale_level level[MAX_LEVELS];
    uint32_t nlevels;
    struct scale_ask *spare_asks;
    struct scale_message *spare_messages;
    uint64_t outstanding; /* requests of clients */
    struct sim_check *check;

    struct authority *authority; /* of rank 0 */
    struct lease_record disk, storing;
    uint64_t core_ns[SCALE_MAX_CORES]; /* of a host that is shared: busy until then */
    struct plan *plan;                 /* its processes; NULL: a rank is one */
    struct scale_process *process;
    uint32_t made;        /* of their ranks: so many are */
    uint64_t client_ns;   /* the client process there, too */
    uint64_t io_until_ns; /* what its threads for messages do now is done */
    uint64_t client_used_ns, io_used_ns;

    uint32_t first_asker, askers; /* ranks that ask: so many from there on */
    uint64_t beats;               /* heartbeats so far: which rank is next */
    uint32_t stride;              /* in what order they are */
    uint32_t bursting;            /* which rank is the next of this burst */

    uint32_t owners, nactive, nup; /* who own a generator, and have been active; who have joined */
    struct samples joined, activated;
    uint64_t cold_root_wants, cold_root_used_ns;
    uint64_t begin_ns, end_ns; /* of what is measured */
    uint64_t kill_ns;
    struct samples served_again[NSTATES], joined_again;
    uint64_t last_joined_ns; /* after a loss */
    struct samples all;
    uint64_t stores;
};

/* --- chance and time: scale.c -------------------------------------------------------------------- */

uint64_t scale_below (struct scale *s, uint64_t n);
double scale_fraction (struct scale *s); /* 0 <= x < 1 */
double scale_exponential (struct scale *s, double mean);
void scale_at (struct scale *s, uint64_t t_ns, enum event_type type, uint32_t rank, uint64_t n);
bool scale_is_measured (const struct scale *s);
void scale_fail (struct scale *s, const char *what, uint32_t rank);

/* How the phases go on. */
void scale_phase (struct scale *s, enum phase phase);
void scale_look_at_start (struct scale *s);

/* --- processors: host.c ------------------------------------------------------------------------------ */

/* Whether this can be done now; else it comes again when it can. */
bool host_begins (struct scale *s, const struct scale_event *e);
void host_ends (struct scale *s, const struct scale_event *e);

/* It is a process' turn.  Returns whether '*next' can be begun now, between the other two, or dropped; then the turn
 * has to be ended.
 */
bool host_turn (struct scale *s, const struct scale_event *e, struct scale_event *next);
void host_turn_begins (struct scale *s, const struct scale_event *e);
void host_turn_ends (struct scale *s, uint32_t process);

void rank_spend (struct scale_rank *r, double us);
uint64_t rank_boot_us (const struct scale_rank *r); /* its CLOCK_BOOTTIME when it has done */

/* The time of the simulation at which its clock shows that. */
uint64_t rank_when_ns (const struct scale_rank *r, uint64_t boot_us);

static inline uint32_t rank_number (const struct scale_rank *r)
{
    return (uint32_t)(r - r->s->rank);
}

/* Its name to who checks ids. */
static inline uint32_t rank_life (const struct scale_rank *r)
{
    return rank_number (r) * 16 + r->life;
}

/* --- messages: scale_link.c ------------------------------------------------------------------------------- */

/* Whether a link leaves no process. */
bool scale_link_is_inside (const struct scale *s, uint32_t a, uint32_t b);

/* What one costs who sends or takes it; 'other_us': one that has no figure of its own. */
double message_cost_us (const struct scale *s, const struct scale_message *m, double other_us);

/* 'from' sends it when it has done what it does; a copy is made of what it borrows. */
void scale_link_send (struct scale_rank *from, const struct scale_message *msg);
void scale_link_free (struct scale *s, struct scale_message *m);
void scale_link_io (struct scale *s, const struct scale_event *e);

static inline bool message_goes_up (enum message_type type)
{
    return type <= MSG_HELLO;
}

/* --- what comes to a rank: arrive.c -------------------------------------------------------------------- */

void rank_message (struct scale_rank *r, const struct scale_message *m);
void rank_tick (struct scale_rank *r);
void rank_ping (struct scale_rank *r);

/* After each word with its node: when does it want to be woken, is it active? */
void rank_look (struct scale_rank *r);
void rank_check_ranges (struct scale_rank *r);

/* --- what a node wants: ops.c ------------------------------------------------------------------------------ */

extern const struct node_ops rank_ops;      /* 'arg': the rank */
extern const struct authority_ops root_ops; /* 'arg': rank 0 */

struct scale_ask *scale_ask_create (struct scale_rank *r);
void ask_free (struct scale *s, struct scale_ask *a);
void rank_cancel_child (struct scale_rank *r, uint32_t child, bool answer);

/* --- clients: load.c ------------------------------------------------------------------------------------------ */

void load_begin (struct scale *s);
void load_next (struct scale *s);
void load_burst (struct scale *s, uint64_t n);
void load_client (struct scale *s, const struct scale_event *e);
void load_request (struct scale_rank *r, struct scale_ask *a);
void load_answer (struct scale *s, struct scale_ask *a, bool good); /* it leaves its broker */
void load_answered (struct scale *s, struct scale_ask *a);
void load_drop (struct scale *s, struct scale_ask *a);
void load_probe (struct scale *s, uint32_t below);

/* --- coming and going: place.c ---------------------------------------------------------------------------------- */

void rank_start (struct scale *s, const struct scale_event *e);
void rank_seek (struct scale_rank *r);
void rank_join (struct scale_rank *r);
void rank_retry (struct scale_rank *r, uint64_t link);
void rank_probe (struct scale_rank *r);
void rank_hello (struct scale_rank *r, const struct scale_message *m);
void rank_joined (struct scale_rank *r, const struct scale_message *m);
void rank_lost (struct scale_rank *r, uint64_t link);
void rank_kill (struct scale *s, uint32_t number);
void rank_end (struct scale_rank *r); /* its memory */
void rank_stored (struct scale_rank *r);
void rank_wall (struct scale_rank *r);
bool rank_is_below (const struct scale *s, uint32_t number, uint32_t top); /* or is it */

#endif /* SIM_SCALE_PRIVATE_H */
