/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private.h - the declarations that the files of a simulation at size share
 *
 *   scale.c   the course of a run: its queue of events, and its ranks
 *   host.c    processors, links, clients: when a step ends, when a message arrives, when a client sends a request
 *   rank.c    messages for a node, and its callbacks
 *   place.c   start, loss, and the search for a parent
 *   report.c  the output
 *
 * A rank does one step after the other. If each rank has its own processor, the rank handles arrivals in their order,
 * each when the step before has ended. So an arrival is executed immediately, with the time at which its step will have
 * ended, and no queue is needed. If ranks share cores, a step that cannot begin yet is postponed until its rank, or a
 * core, is free.
 */
#ifndef SIM_SCALE_PRIVATE_H
#define SIM_SCALE_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/base/plan.h"
#include "broker/base/topology.h"
#include "modules/fluid/node/node.h"
#include "sim/scale/samples.h"
#include "sim/scale/scale.h"
#include "sim/sim_check.h"

#define MS_NS UINT64_C (1000000)
#define SECOND_NS UINT64_C (1000000000)
#define EPOCH_MS INT64_C (1767225600000)
#define MAX_LEVELS 40 /* levels from this one on are counted together */
#define NSTATES 4

/* --- events: scale.c ------------------
 *
 * The events are ordered by time. Events of the same time are in the order in which they were pushed. The queue is a
 * heap in which each node has four children: it is half as deep as a binary heap, and the four are adjacent in memory.
 */

struct scale_event {
    uint64_t t_ns;
    uint64_t order; /* set by queue_push () */
    uint32_t type;
    uint32_t rank;
    union {
        void *p;
        uint64_t n;
    } with;
};

struct queue {
    struct scale_event *event;
    size_t count, size;
    uint64_t order; /* the number of events that were pushed */
};

/* Push an event. A queue that is all 0 is empty. The program aborts if memory is exhausted. */
void queue_push (struct queue *q, struct scale_event e);

/* Take the next event into '*e'. Returns false if the queue is empty. */
bool queue_pop (struct queue *q, struct scale_event *e);

void queue_fini (struct queue *q);

enum event_type {
    EV_START,    /* a rank starts; with.n: index in its process of the rank to start next; 0: none */
    EV_JOIN,     /* a rank that has waited may connect to its parent */
    EV_MESSAGE,  /* a message arrives */
    EV_IO,       /* ZeroMQ's threads have a message (only with --one-host) */
    EV_TICK,     /* the deadline of a node; with.n: its time */
    EV_BEAT,     /* the heartbeats of the next rank, or of the next moment, are due */
    EV_PING,     /* a rank sends a heartbeat */
    EV_RETRY,    /* a rank tries the next ancestor; with.n: the link of its last attempt */
    EV_PROBE,    /* a rank that is not attached to its own parent tries to return to it */
    EV_LOST,     /* a rank notices that its link is broken; with.n: the number of the link */
    EV_STORED,   /* the disk has stored the horizon */
    EV_WALL,     /* rank 0 reads the wall clock */
    EV_LOAD,     /* a random client sends a request */
    EV_BURST,    /* the next rank of a burst sends its requests */
    EV_REQUEST,  /* a client's request arrives at its broker */
    EV_CLIENT,   /* the client process begins a request (only with --one-host) */
    EV_ANSWERED, /* the client process has an answer (only with --one-host) */
    EV_TURN,     /* a process has work; 'rank' is the number of the process */
    EV_KILL,
    EV_PHASE, /* the next phase begins; with.n: this phase */
};

enum message_type {
    MSG_BLOCK,
    MSG_CANCEL,
    MSG_LEASE,
    MSG_REPORT,
    MSG_PING,
    MSG_HELLO, /* types up to this one are sent to a parent */
    MSG_IDS,
    MSG_ERROR,
    MSG_GRANTS,
    MSG_PONG,
    MSG_JOINED,
    NMESSAGES,
};

struct scale_message {
    struct scale_message *next; /* the next free message */
    enum message_type type;
    uint32_t from, to;
    uint32_t link;
    uint32_t tag;
    uint32_t count; /* number of ids; in MSG_ERROR an errno; in MSG_GRANTS an errno, or 0 */
    size_t nruns;
    struct id_run *run; /* points to 'small', or is allocated */
    struct id_run small[2];
    union {
        fluid_t after;
        struct lease_request req;
        struct lease_answer answer;
        struct idt_clock_sample sample;
        struct report report;
    };
};

/* A request of a client or of a child that a node holds. */
struct scale_ask {
    struct scale_ask *next, *prev; /* in the list of the rank's requests */
    uint32_t rank;
    uint32_t child;
    uint32_t link; /* number of the link to the child */
    uint32_t tag;
    uint32_t count;
    uint32_t life; /* life of the rank that holds the request */
    bool client;
    bool measured;
    bool probe; /* sent immediately after a loss */
    bool failed;
    bool at_node;          /* the node has not answered it yet */
    enum node_state state; /* state of the rank when the request arrived */
    uint64_t asked_ns;
};

struct tags {
    uint32_t *tag;
    uint32_t count, size;
};

/* One direction of a link: when it is free, and when its last message arrives. */
struct scale_way {
    uint64_t free_ns, last_ns;
};

enum rank_place { PLACE_DOWN, PLACE_SEEKS, PLACE_UP };

struct scale_rank {
    struct scale *s;
    struct node *node; /* NULL: the broker does not run */
    struct scale_ask *asks;
    uint64_t busy_ns; /* when its processor is free again */
    uint64_t tick_ns; /* time of its next tick; UINT64_MAX: none */
    uint64_t used_ns; /* processor time during the measurement */
    struct scale_way up, down;
    struct tags tags;  /* matchtags of lease requests to the parent */
    uint32_t received; /* messages from children during the measurement */
    uint32_t parent;   /* the broker that it is connected to, or tries to connect to */
    uint32_t link;     /* number of the link; changes with each attempt */
    uint32_t life;     /* how often the rank was started */
    uint16_t tries;    /* ancestors that it has tried since an ancestor answered */
    uint16_t rounds;   /* rounds through all ancestors */
    uint8_t level;     /* at most MAX_LEVELS - 1 */
    uint8_t under_way; /* number of forwards under way */
    uint8_t place;     /* enum rank_place */
    bool activated;    /* it was active at some time */
    bool has_joined;   /* it was connected at some time */
    bool waits;        /* it waits for its parent in the same process, or for all processes */
};

/* A process that hosts many ranks, all in one thread. */
struct scale_process {
    uint64_t busy_ns;         /* when its thread is free again */
    struct scale_event *todo; /* a ring buffer in order of arrival */
    uint32_t first, count, size;
    bool has_turn; /* an EV_TURN is scheduled */
};

struct scale_level {
    uint32_t ranks;
    uint64_t messages[NMESSAGES]; /* messages from this level to parents, during the measurement */
    uint64_t bytes;
    struct samples latency[NSTATES];
};

/* --- phases --- */
enum phase { PHASE_COLD, PHASE_WARM, PHASE_MEASURE, PHASE_DRAIN, PHASE_END };

/* Times that grow with the number of brokers (struct cost_grows), for the number of this run. */
struct scale_transport {
    double heartbeat_us, report_us, local_us, cold_us, client_us;
};

struct scale {
    struct scale_config config;
    struct scale_transport inside; /* times inside a process that hosts many brokers */
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
    uint64_t outstanding; /* number of pending requests of clients */
    struct sim_check *check;

    struct authority *authority; /* the authority of rank 0 */
    struct lease_record disk, storing;
    uint64_t core_ns[SCALE_MAX_CORES]; /* --one-host: when each core is free again */
    struct plan *plan;                 /* which process hosts which ranks; NULL: each rank has its own process */
    struct scale_process *process;
    uint32_t made;        /* number of ranks of all processes that are made */
    uint64_t client_ns;   /* when the client process is free again */
    uint64_t io_until_ns; /* when ZeroMQ's threads are free again */
    uint64_t client_used_ns, io_used_ns;

    uint32_t first_asker, askers; /* the first rank with a client, and the number of such ranks */
    uint64_t beats;               /* number of heartbeats so far, which determines the next rank */
    uint32_t stride;              /* distance between consecutive ranks in the order of heartbeats */
    uint32_t bursting;            /* index of the next rank of this burst */

    uint32_t owners, nactive, nup; /* owner ranks; owner ranks that were active; ranks that joined */
    struct samples joined, activated;
    uint64_t cold_root_wants, cold_root_used_ns;
    uint64_t begin_ns, end_ns; /* begin and end of the measurement */
    uint64_t kill_ns;
    struct samples served_again[NSTATES], joined_again;
    uint64_t last_joined_ns; /* when the last rank had joined again after a loss */
    struct samples all;
    uint64_t stores;
};

/* --- random numbers and time: scale.c ------------------------------------------------------------ */

uint64_t scale_below (struct scale *s, uint64_t n);
double scale_fraction (struct scale *s); /* 0 <= x < 1 */
double scale_exponential (struct scale *s, double mean);
void scale_at (struct scale *s, uint64_t t_ns, enum event_type type, uint32_t rank, uint64_t n);
bool scale_is_measured (const struct scale *s);
void scale_fail (struct scale *s, const char *what, uint32_t rank);

/* If all ranks have started, end the cold start. */
void scale_look_at_start (struct scale *s);

/* --- processors: host.c ------------------------------------------------------------------------------ */

/* host_begins (): whether the event can be handled now. Otherwise it is scheduled for the time when it can be handled.
 * host_ends (): the event was handled.
 */
bool host_begins (struct scale *s, const struct scale_event *e);
void host_ends (struct scale *s, const struct scale_event *e);

/* Begin the turn of a process. Returns whether the process has work. If so, the caller handles '*next' between
 * host_turn_begins () and host_turn_ends (), or drops '*next' and calls only host_turn_ends ().
 */
bool host_turn (struct scale *s, const struct scale_event *e, struct scale_event *next);
void host_turn_begins (struct scale *s, const struct scale_event *e);
void host_turn_ends (struct scale *s, uint32_t process);

void rank_spend (struct scale_rank *r, double us);
uint64_t rank_boot_us (const struct scale_rank *r); /* CLOCK_BOOTTIME of the rank at the end of its step */

/* Return the simulated time at which the rank's clock shows 'boot_us'. */
uint64_t rank_when_ns (const struct scale_rank *r, uint64_t boot_us);

static inline uint32_t rank_number (const struct scale_rank *r)
{
    return (uint32_t)(r - r->s->rank);
}

/* Return the number by which sim_check.h knows this life of the rank. */
static inline uint32_t rank_life (const struct scale_rank *r)
{
    return rank_number (r) * 16 + r->life;
}

/* --- messages: host.c ------------------------------------------------------------------------------- */

/* Whether both ranks are in one process. */
bool scale_link_is_inside (const struct scale *s, uint32_t a, uint32_t b);

/* Return the processor time that a message needs at its sender or its receiver. 'other_us' is the time for types that
 * have none of their own.
 */
double message_cost_us (const struct scale *s, const struct scale_message *m, double other_us);

/* scale_link_send (): send a message when the step of 'from' has ended. Memory that the message borrows is copied.
 * scale_link_free (): free a message.
 */
void scale_link_send (struct scale_rank *from, const struct scale_message *msg);
void scale_link_free (struct scale *s, struct scale_message *m);
void scale_link_io (struct scale *s, const struct scale_event *e);

static inline bool message_goes_up (enum message_type type)
{
    return type <= MSG_HELLO;
}

/* --- arrivals: rank.c -------------------------------------------------------------------------------- */

void rank_message (struct scale_rank *r, const struct scale_message *m);
void rank_tick (struct scale_rank *r);
void rank_ping (struct scale_rank *r);

/* Call this after each call into the node: it schedules the next tick, and notes whether the node is active. */
void rank_look (struct scale_rank *r);

/* --- callbacks of a node: rank.c ---------------------------------------------------------------------------- */

extern const struct node_ops rank_ops;      /* 'arg': the rank */
extern const struct authority_ops root_ops; /* 'arg': rank 0 */

struct scale_ask *scale_ask_create (struct scale_rank *r);
void ask_free (struct scale *s, struct scale_ask *a);
void rank_cancel_child (struct scale_rank *r, uint32_t child, bool answer);

/* --- clients: host.c ------------------------------------------------------------------------------------------ */

void load_begin (struct scale *s);
void load_next (struct scale *s);
void load_burst (struct scale *s, uint64_t n);
void load_client (struct scale *s, const struct scale_event *e);
void load_request (struct scale_rank *r, struct scale_ask *a);
void load_answer (struct scale *s, struct scale_ask *a, bool good); /* the answer leaves the broker */
void load_answered (struct scale *s, struct scale_ask *a);
void load_drop (struct scale *s, struct scale_ask *a);
void load_probe (struct scale *s, uint32_t below);

/* --- start, loss, search for a parent: place.c ------------------------------------------------------------------ */

void rank_start (struct scale *s, const struct scale_event *e);
void rank_join (struct scale_rank *r);
void rank_retry (struct scale_rank *r, uint64_t link);
void rank_probe (struct scale_rank *r);
void rank_hello (struct scale_rank *r, const struct scale_message *m);
void rank_joined (struct scale_rank *r, const struct scale_message *m);
void rank_lost (struct scale_rank *r, uint64_t link);
void rank_kill (struct scale *s, uint32_t number);
void rank_end (struct scale_rank *r); /* free its memory */
void rank_stored (struct scale_rank *r);
void rank_wall (struct scale_rank *r);
bool rank_is_below (const struct scale *s, uint32_t number, uint32_t top); /* true also if the ranks are equal */

#endif /* SIM_SCALE_PRIVATE_H */
