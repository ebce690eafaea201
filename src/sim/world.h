/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* world.h - a simulated world: the declarations that its files share
 *
 *   life.c         a process of a broker: start, stop, links, and the promises that it must keep at any time
 *   life_events.c  the callbacks of a node, and the events of a life
 *   pager.c        processes that make ids by the page of a life
 *   sim.c          random numbers, events, messages, faults, and the course of a history
 *
 * A world is a heap of events, ordered by time. A 'life' is one process of a broker; several lives may claim the same
 * rank. A life has its own clock (CLOCK_BOOTTIME: any offset, wrong by up to 50 ppm), a node, and a link to a life of
 * an ancestor rank. A link has a number. If a life's link has another number when a message arrives than when it was
 * sent, the message is lost.
 *
 * Time 't' is real time in microseconds. Memory is never exhausted (must ()).
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libpage/page.h"
#include "modules/fluid/node/node.h"
#include "sim/sim_check.h"
#include "sim/sim.h"

#define MAX_LIVES 4096
#define MAX_RANKS 64
#define MS UINT64_C (1000)
#define EPOCH_MS INT64_C (1767225600000)
#define NTAGS 64
#define NPARTS 32
#define NCLIENTS 4 /* clients of each life */
#define NPAGERS 3  /* processes of each life that have its page */
#define NSENT 16   /* writes of a root that may arrive late */
#define BACKLOG_MS 100
#define SEEN_US \
    (CLOCK_CHECK_GRAIN_US + CLOCK_CHECK_GRAIN_US / 100) /* the clock check detects missed time from here on */
#define END_MS ((uint64_t)FLUID_TIMESTAMP_MAX + 1)

enum event_type {
    EV_TICK,    /* a node's deadline */
    EV_MESSAGE, /* a message arrives */
    EV_COMMIT,  /* a write of a root arrives at the store that several roots share */
    EV_STORED,  /* a commit has ended, with or without success */
    EV_ATTACH,  /* a life connects to a parent */
    EV_LOST,    /* a life notices that its link is broken */
    EV_HEARTBEAT,
    EV_CLIENT, /* a client sends a request */
    EV_PAGE,   /* a process makes ids by the page, or continues to */
    EV_RESUME, /* the pause of a life ends */
    EV_START,  /* a rank is started */
    EV_FAULT,  /* a random fault */
};

enum message_type { MSG_BLOCK, MSG_CANCEL, MSG_IDS, MSG_ERROR, MSG_LEASE, MSG_GRANTS, MSG_PING, MSG_PONG, MSG_REPORT };

struct message {
    enum message_type type;
    uint32_t from, to; /* numbers of lives */
    uint64_t link;
    uint32_t tag;
    uint32_t count; /* number of ids; in MSG_ERROR and MSG_GRANTS an errno, or 0 */
    fluid_t after;
    struct id_run *run;
    size_t nruns;
    struct lease_request req;
    struct lease_answer answer;
    struct idt_clock_sample sample;
    struct report report;
    unsigned refs; /* number of events with this message, which may arrive twice */
};

struct sim_event {
    uint64_t t;
    uint64_t order;
    enum event_type type;
    uint32_t life; /* a life; for EV_START a rank */
    uint64_t n;    /* the link, the horizon, ...; depends on the type */
    struct message *msg;
};

/* A request of a client or of a child that a node holds. */
struct ask {
    struct ask *next;
    bool client;
    uint32_t client_number; /* 0 ... NCLIENTS - 1 */
    uint64_t asked_us;      /* time of the request by the life's clock */
    uint64_t truth_us;      /* the instance's time of the request; 0: unknown */
    uint32_t life;          /* the life that holds the request */
    uint32_t count;
    fluid_t after;
    fluid_t paged_id; /* the newest id of the page when the request was sent */
    int answers;
    bool final;     /* sent after all faults were healed */
    uint32_t child; /* the life that sent the request */
    uint64_t link;
    uint32_t tag;
};

/* A part that a life holds. Ids up to 'made_ms' may leave late, because they were made before the part was over or was
 * extended.
 */
struct life_part {
    struct lease lease;
    uint64_t made_ms;
    bool over;
};

struct life {
    bool alive;
    bool paused;
    bool misses; /* the clocks do not count the pause, which the clock check detects */
    uint64_t paused_t;
    uint32_t rank;
    char uuid[IDT_MSG_UUID_LEN + 1];
    struct node *node;
    struct authority *authority; /* NULL: the life is not a root */
    struct world *w;
    uint32_t id;
    uint64_t boot_offset;
    int64_t boot_ppm;
    uint32_t parent; /* number of the parent's life; 0: no parent */
    uint64_t link;   /* number of the link to the parent; 0: no link */
    bool told_up;
    unsigned spins;       /* number of ticks in a row that ended with an immediate deadline */
    uint64_t tick_t;      /* time of the next tick; UINT64_MAX: none is planned */
    uint32_t tags[NTAGS]; /* matchtags of lease requests to the parent */
    unsigned ntags;
    fluid_t last_id; /* newest id that was sent to any client, and to each client */
    fluid_t client_last_id[NCLIENTS];
    struct page *page;         /* the page that the life shares, or NULL */
    struct pager *pager;       /* NPAGERS processes that have the page */
    fluid_t paged_id;          /* the newest id that these processes made */
    uint64_t resumed_us;       /* end of the life's last pause */
    uint64_t last_reading;     /* last reading of the clock; 0: none yet */
    struct sim_event *waiting; /* events that wait until the pause ends */
    size_t nwaiting, waiting_size;
    struct ask *asks;              /* all requests that this node has not answered */
    struct life_part part[NPARTS]; /* the last parts of the life */
    unsigned nparts;
    uint32_t granter;     /* the life that sent the newest answer */
    uint64_t parts_noted; /* of the node's parts_received */
    uint64_t until_us;    /* at the last check: end of use of the life's ranges, and its newest timestamp */
    uint64_t cursor_ms;
    uint64_t made_ms;  /* ids up to this time may leave late */
    uint64_t bound_us; /* largest bound of the clock since a request waits */
    bool storing;
    struct lease_record record; /* record of the commit that is under way */

    /* with a standby: as in libpg/fenced.h, where the life is the term */
    uint64_t fence, serial;
    uint64_t late_ms;                /* newest timestamp when a replaced root last reported a watermark */
    struct lease_record sent[NSENT]; /* the last writes, by their serials */
};

/* The handover of an unloaded module. The broker keeps it for the next load, even if other lives had the rank
 * meanwhile.
 */
struct left {
    uint32_t life; /* the life that left the handover; 0: no handover */
    void *past;
    size_t size;
};

/* The memory of a page. It outlives its broker, because processes have mapped it. */
struct kept_page {
    struct page page;
    struct kept_page *next;
};

struct world {
    const struct sim_config *config;
    struct sim_result result;
    struct sim_check *check;
    struct sim_check *times; /* checks time for modules; each grant is a separate range */
    uint32_t ntimes;
    uint64_t random;
    uint64_t t;
    struct sim_event *heap;
    size_t nevents, heap_size;
    uint64_t order;

    uint32_t nranks, kary, max_generators;
    uint32_t lanes; /* number of lanes of each rank */
    uint64_t lease_ms, timeout_ms;
    bool mixed;            /* brokers differ in their options */
    bool sharing;          /* ranks without a generator hold parts */
    bool paging;           /* owner ranks share their generators with processes */
    unsigned loss, repeat; /* how many of 1,000 messages are lost, and repeated */
    uint64_t delay_us;
    bool gentle_root; /* the root is never stopped or killed, so bounds can be checked */
    bool healing;     /* no further faults begin */
    bool healed;      /* faults are healed, and all earlier requests have ended */

    struct life *life[MAX_LIVES];
    uint32_t nlives;
    uint32_t current[MAX_RANKS]; /* number of the newest life of each rank; 0: none */
    uint64_t last_link;

    struct left left[MAX_RANKS];
    struct kept_page *pages;

    struct lease_record disk; /* the record that the disk has stored durably */
    bool standby;             /* several roots share the disk, but only the last one may write */
    uint64_t fence, serial;   /* of that root */
    uint64_t old_mark_ms;     /* highest watermark that a replaced root has reported */
    uint64_t watermark_ms;    /* highest watermark that a root has reported */
    bool disk_failing;
    uint64_t disk_delay_us;
    int64_t wall_offset_us; /* of the root's host */
    int64_t ahead_us;       /* largest lead of a root's clock over real time */
};

/* --- random numbers, events, messages: sim.c --------------------------------------------------- */

uint64_t world_below (struct world *w, uint64_t n); /* 0 ... n - 1 */
bool world_chance (struct world *w, unsigned of_1000);

void world_push (struct world *w, struct sim_event e);

/* Schedule an event of a life or a rank 'us' microseconds from now. */
void world_later (struct world *w, uint64_t us, enum event_type type, uint32_t life, uint64_t n);

/* Print an event if the history is verbose. */
void world_say (struct world *w, const struct life *l, const char *what);

/* message_send (): send a copy of the message. It arrives once, twice, or never. */
void message_send (struct world *w, const struct message *msg);
void message_unref (struct message *msg);

/* --- lives: life.c ------------------------------------------------------------------------------- */

uint64_t life_boot_us (const struct life *l);  /* CLOCK_BOOTTIME of the life */
int64_t world_wall_us (const struct world *w); /* wall clock of the root's host */

struct life *life_start (struct world *w, uint32_t rank); /* NULL: too many lives */
/* Reload the module: the next life continues with the handover of this one. */
void life_reload (struct life *l);
/* Reload in two steps. Between these, children send requests to other ancestors, and another life may claim the rank.
 */
void life_unload (struct life *l);
void life_load (struct world *w, uint32_t rank);
void life_kill (struct life *l);
void life_stop (struct life *l);
void life_attach (struct life *l);
void life_lose (struct life *l); /* its link to the parent breaks */
void life_forget_child (struct life *parent, uint32_t child);
void life_drop_asks (struct life *l); /* forget all requests */

/* Call this after each call into the life's node: it checks the life, and plans its next tick. */
void life_look (struct life *l);

/* Whether another root has taken over the store. */
bool life_is_replaced (const struct life *l);

/* life_bound_us (): largest error of the life's clock now. life_note_bound (): note it; called before ids leave the
 * node, and after each call into the node.
 */
void life_note_bound (struct life *l);
uint64_t life_bound_us (const struct life *l);
void life_note_lead (struct life *l); /* note how far the clocks of roots have been ahead of real time */

/* Check that no other life holds what this node holds. Called before ids leave the node, and after each call into it.
 */
void life_look_at_ranges (struct life *l);

/* life_makes (): whether the life makes such ids itself. life_may_be_late (): whether such an id may leave the life
 * now, although it is below a watermark.
 */
bool life_makes (const struct life *l, const struct fluid_fields *f);
bool life_may_be_late (const struct life *l, const struct fluid_fields *f);

/* Check that no clock differs from the root's by more than its own bound. The root's clock is right by definition. */
void world_check_bounds (struct world *w);

/* Return what the root's clock reads, if the root lives throughout the history; 0: unknown. */
uint64_t world_truth_us (const struct world *w);

/* --- callbacks of a node: life_events.c -------------------------------------------------------------- */

extern const struct node_ops life_ops; /* 'arg': the life */
extern const struct authority_ops life_root_ops;

void ask_destroy (struct life *l, struct ask *a);

/* --- events of a life: life_events.c ---------------------------------------------------------------------- */

void life_event (struct life *l, const struct sim_event *e);
void life_commit (struct life *l, const struct sim_event *e);
void life_stored (struct life *l, const struct sim_event *e);
void life_ask (struct life *l); /* a client sends a request */
void life_ask_watermark (struct life *l);
void life_wait (struct life *l, const struct sim_event *e); /* keep an event until its pause ends */
void life_resume (struct life *l);

/* --- processes with a page: pager.c --------------------------------------------------------------------------- */

void pagers_start (struct life *l);
void pager_event (struct life *l, uint64_t number);

/* Write the present terms into the page. Called after each call into the node. */
void life_publish (struct life *l);

/* Advance the clocks of the host by these amounts in one moment, and notify the node of what the clock check finds. */
void life_clocks_went (struct life *l, uint64_t boot_us, uint64_t raw_us, uint64_t wall_us);

#endif /* SIM_WORLD_H */
