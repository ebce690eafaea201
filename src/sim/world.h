/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* world.h - a simulated world: what its parts share
 *
 *   world.c        chance, events, messages
 *   life.c         a process of a broker: start, stop, links; what must hold of it at any time
 *   life_ops.c     what a node wants done, and what its clients are answered
 *   life_events.c  what happens to a life
 *   pager.c        processes that make ids by the page of a life
 *   sim.c          faults, and the course of a history
 *
 * A world is a heap of events in order of time.  A 'life' is one process of a broker: it may be one of several that
 * claim its rank.  It has a clock of its own (CLOCK_BOOTTIME: any offset, up to 50 ppm wrong), a node, and a link to a
 * life of an ancestor's rank.  A link has a number; what was sent on a link is lost when that has another one.
 *
 * Time 't' is real time in microseconds.  There is always memory (must ()).
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libpage/page.h"
#include "modules/fluid/node/inspect.h"
#include "sim/sim_check.h"
#include "sim/sim.h"

#define MAX_LIVES 4096
#define MAX_RANKS 64
#define MS UINT64_C (1000)
#define EPOCH_MS INT64_C (1767225600000)
#define NTAGS 64
#define NAREAS 8
#define NCLIENTS 4 /* of each life */
#define NPAGERS 3  /* the same, processes with its page */
#define BACKLOG_MS 100
#define SEEN_US \
    (CLOCK_CHECK_GRAIN_US + CLOCK_CHECK_GRAIN_US / 100) /* from so much on witnesses see what a clock missed */
#define END_MS ((uint64_t)FLUID_TIMESTAMP_MAX + 1)

enum event_type {
    EV_TICK,    /* a node's deadline */
    EV_MESSAGE, /* arrives */
    EV_STORED,  /* the disk has done, or not */
    EV_ATTACH,  /* a life looks for a parent */
    EV_LOST,    /* a life notices that its link is gone */
    EV_HEARTBEAT,
    EV_CLIENT, /* a client asks */
    EV_PAGE,   /* a process asks by the page, or goes on with that */
    EV_RESUME, /* a life that was paused goes on */
    EV_START,  /* a rank is started */
    EV_FAULT,  /* the next one */
};

enum message_type {
    MSG_BLOCK,
    MSG_CANCEL,
    MSG_IDS,
    MSG_ERROR,
    MSG_LEASE,
    MSG_GRANTS,
    MSG_PING,
    MSG_PONG,
    MSG_REPORT,
    MSG_WANT,
    MSG_SHARE
};

struct message {
    enum message_type type;
    uint32_t from, to; /* lives */
    uint64_t link;
    uint32_t tag;
    uint32_t count; /* ids; errnum */
    fluid_t after;
    struct run *run;
    size_t nruns;
    struct lease_request req;
    struct lease_answer answer;
    struct idt_clock_sample sample;
    struct report report;
    struct share_want want;
    struct share share;
    bool has_share;
    unsigned refs; /* a message may arrive twice */
};

struct sim_event {
    uint64_t t;
    uint64_t order;
    enum event_type type;
    uint32_t life; /* or rank */
    uint64_t n;    /* link, horizon, ... */
    struct message *msg;
};

/* A request that a node has: of a client, or of a child. */
struct ask {
    struct ask *next;
    bool client;
    uint32_t client_number; /* 0 ... NCLIENTS - 1 */
    uint64_t asked_us;      /* the life's clock */
    uint64_t truth_us;      /* the instance's time when it was asked; 0: unknown */
    uint32_t life;          /* that was asked */
    uint32_t count;
    fluid_t after;
    fluid_t paged_id; /* the newest id of the page then */
    int answers;
    bool final;     /* asked after everything healed */
    uint32_t child; /* life that asked */
    uint64_t link;
    uint32_t tag;
};

/* What was made of it up to 'made_ms' may leave late: it may be used no more since, or until it was lent for longer. */
struct lent_area {
    struct area area;
    uint64_t made_ms;
    bool over;
};

struct life {
    bool alive;
    bool paused;
    bool misses; /* its clocks do not count the pause, and it is told so when it goes on */
    uint64_t paused_t;
    uint32_t rank;
    char uuid[IDT_MSG_UUID_LEN + 1];
    struct node *node;
    struct authority *authority; /* NULL: it is no root */
    struct world *w;
    uint32_t id;
    uint64_t boot_offset;
    int64_t boot_ppm;
    uint32_t parent; /* life; 0: none */
    uint64_t link;   /* number of the link to it; 0: none */
    bool told_up;
    unsigned spins;       /* ticks in a row that asked for another one at once */
    uint64_t tick_t;      /* next tick that is planned; UINT64_MAX: none */
    uint32_t tags[NTAGS]; /* of lease requests that went up */
    unsigned ntags;
    fluid_t last_id; /* newest that left this node to clients, and to each */
    fluid_t client_last_id[NCLIENTS];
    struct page *page;         /* that it shares; NULL: none */
    struct pager *pager;       /* who have it, NPAGERS */
    fluid_t paged_id;          /* the newest that they made */
    uint64_t resumed_us;       /* after its last pause */
    uint64_t last_reading;     /* of its clock; 0: unknown yet */
    struct sim_event *waiting; /* while paused */
    size_t nwaiting, waiting_size;
    struct ask *asks;              /* all that this node was asked and has not answered */
    struct lent_area area[NAREAS]; /* what it was lent last */
    unsigned nareas;
    uint64_t until_us; /* when it may not use its ranges any more, and its newest timestamp, as last seen */
    uint64_t cursor_ms;
    uint64_t made_ms;  /* what it made up to here may leave late */
    uint64_t bound_us; /* how far its clock may have been off since a request waits, by its own account */
    bool storing;
    struct lease_record record; /* a commit that is under way */
};

/* What a module that was unloaded has left on its broker, for when it is loaded again, whoever had the rank since. */
struct left {
    uint32_t life; /* that left it; 0: none */
    void *past;
    size_t size;
};

/* A page lives longer than its broker, for those who have it. */
struct kept_page {
    struct page page;
    struct kept_page *next;
};

struct world {
    const struct sim_config *config;
    struct sim_result result;
    struct sim_check *check;
    struct sim_check *loans; /* each a range of its own */
    uint32_t nloans;
    uint64_t random;
    uint64_t t;
    struct sim_event *heap;
    size_t nevents, heap_size;
    uint64_t order;

    uint32_t nranks, kary, max_generators;
    uint32_t lanes; /* of each rank */
    uint64_t lease_ms, timeout_ms;
    bool mixed;            /* lives have options of their own */
    bool sharing;          /* idle ranks borrow */
    bool spilling;         /* owners pass on what is too much for them */
    bool paging;           /* owners share their generators with processes */
    unsigned loss, repeat; /* of 1000 messages */
    uint64_t delay_us;
    bool gentle_root; /* the root lives through: bounds are checked */
    bool healing;     /* no more faults */
    bool healed;      /* and what was under way is over */

    struct life *life[MAX_LIVES];
    uint32_t nlives;
    uint32_t current[MAX_RANKS]; /* newest life of a rank; 0: none */
    uint64_t last_link;

    struct left left[MAX_RANKS];
    struct kept_page *pages;

    struct lease_record disk; /* durable */
    uint64_t watermark_ms;    /* highest that a root told */
    bool disk_failing;
    uint64_t disk_delay_us;
    int64_t wall_offset_us; /* of the root's host */
    int64_t ahead_us;       /* of real time: the most that a root's clock was */
};

/* --- chance, events, messages: world.c --------------------------------------------------------- */

uint64_t world_below (struct world *w, uint64_t n); /* 0 ... n - 1 */
bool world_chance (struct world *w, unsigned of_1000);

void world_push (struct world *w, struct sim_event e);
struct sim_event world_pop (struct world *w);

/* Something happens to a life (or a rank) in 'us' microseconds. */
void world_later (struct world *w, uint64_t us, enum event_type type, uint32_t life, uint64_t n);

/* Print what happens, if that is wanted. */
void world_say (struct world *w, const struct life *l, const char *what);

/* Send a copy: it arrives once, twice, or never. */
void message_send (struct world *w, const struct message *msg);
void message_unref (struct message *msg);

/* --- lives: life.c ------------------------------------------------------------------------------- */

uint64_t life_boot_us (const struct life *l);  /* its CLOCK_BOOTTIME */
int64_t world_wall_us (const struct world *w); /* the root's wall clock */

struct life *life_start (struct world *w, uint32_t rank); /* NULL: there were too many */
/* Its module is loaded anew: the next life goes on with what it leaves. */
void life_reload (struct life *l);
/* So it is, but later: its children ask others meanwhile, and another one may have the rank. */
void life_unload (struct life *l);
void life_load (struct world *w, uint32_t rank);
void life_kill (struct life *l);
void life_stop (struct life *l);
void life_attach (struct life *l);
void life_lose (struct life *l); /* its link */
void life_forget_child (struct life *parent, uint32_t child);
void life_drop_asks (struct life *l); /* requests that nobody will answer any more */

/* Judge it, and plan its next tick.  After each word with its node. */
void life_look (struct life *l);

/* How far its clock may be off now is seen.  Before ids leave it, and after each word with it. */
void life_note_bound (struct life *l);
uint64_t life_bound_us (const struct life *l);
void life_note_lead (struct life *l);

/* What a node holds now is its alone.  Before ids leave it. */
void life_look_at_ranges (struct life *l);

/* Whether it makes ids like that itself; and whether one may leave it now though it is below a watermark. */
bool life_makes (const struct life *l, const struct fluid_fields *f);
bool life_may_be_late (const struct life *l, const struct fluid_fields *f);

/* The root's clock is right; others know theirs as well as they say. */
void world_check_bounds (struct world *w);

/* What the root's clock reads, in histories whose root lives through; 0: unknown. */
uint64_t world_truth_us (const struct world *w);

/* --- a node's requests and wishes: life_ops.c --------------------------------------------------------- */

extern const struct node_ops life_ops; /* 'arg': the life */
extern const struct authority_ops life_root_ops;

struct ask *ask_create (struct life *l, bool client, uint32_t count, fluid_t after);
void ask_destroy (struct life *l, struct ask *a);

/* --- what happens to a life: life_events.c ---------------------------------------------------------------- */

void life_event (struct life *l, const struct sim_event *e);
void life_stored (struct life *l);
void life_ask (struct life *l); /* as a client */
void life_ask_watermark (struct life *l);
void life_lend (struct life *l);
void life_wait (struct life *l, const struct sim_event *e); /* it is paused: until it goes on */
void life_resume (struct life *l);

/* --- processes with a page: pager.c --------------------------------------------------------------------------- */

void pagers_start (struct life *l);
void pager_event (struct life *l, uint64_t number);

/* The page of a life says what is so now.  After each word with its node. */
void life_publish (struct life *l);

/* The clocks of its host go that far in one moment: its witness tells it what is wrong. */
void life_clocks_went (struct life *l, uint64_t boot_us, uint64_t raw_us, uint64_t wall_us);

#endif /* SIM_WORLD_H */
