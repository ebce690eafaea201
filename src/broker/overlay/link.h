/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* link.h - the two sides of the overlay: up to the parent, down to the children; private to the overlay */
#ifndef BROKER_LINK_H
#define BROKER_LINK_H

#include "broker/overlay/channel.h"
#include "broker/overlay/control.h"
#include "broker/overlay/overlay.h"
#include "broker/overlay/wire/wire.h"

/* The largest frame in bytes: more than a part.  A peer without a key cannot make us store more. */
#define LINK_MAX_FRAME (2 * CHANNEL_PART)
#define LINK_RETRY_MS 5. /* before a full wire is tried again */

struct keyring;
struct parent;
struct children;

/* State that all files of the overlay share. */
struct overlay {
    struct overlay_conf conf;
    const struct idt_overlay_ops *clock; /* NULL: none attached */
    void *clock_arg;
    double timeout;     /* tbon.timeout, seconds */
    uint32_t owner;     /* user id of all brokers of the tree */
    bool root_owner;    /* access.allow-root-owner: root is an owner, too */
    uint32_t hwm;       /* tbon.hwm, messages */
    uint64_t max_queue; /* tbon.max-queue, bytes queued for one link */
    struct wire_conf wire;
    char domain[OVERLAY_DOMAIN_SIZE];
    bool blocked;                    /* a wire was full and must be tried again */
    bool due;                        /* a heartbeat is due */
    bool judging;                    /* silence of others is being checked, after their messages were read */
    double beat;                     /* link_now () of our last heartbeat */
    struct keyring *keys;            /* of our descendants */
    enum health health;              /* of our subtree: the worst health of the children determines it */
    double since;                    /* link_now () of its last change */
    uint64_t below;                  /* joined brokers below, as the children report */
    uint32_t joined;                 /* 'below' and this one, at most the size of the instance */
    enum health told;                /* as reported to the parent by hello or heartbeat */
    const struct bizcard *ancestors; /* parent first; borrowed */
    uint32_t nancestors;
    struct resolver **addresses; /* of the ancestors */
    struct parent *up;           /* at rank 0 without a broker to join */
    struct children *down;
    idt_watcher_t *heart;
    idt_watcher_t *retry; /* timer for full wires */
    bool retrying;
    double period;             /* of the heartbeat, seconds */
    double period_inside;      /* of the heartbeat to a parent in this process */
    double beat_period;        /* period that the last heartbeat began */
    enum health said;          /* health last reported to the followers */
    struct msglist *followers; /* requests that stream overlay.health */
    idt_t *h;
};

double link_now (void);       /* seconds, to some ms: used to detect silence */
uint64_t link_boot_us (void); /* CLOCK_BOOTTIME, microseconds */

void link_start_timer (idt_watcher_t *w, double ms); /* once, from now on */

/* Read the attached clock.  Returns false (and zeros) while it is unknown. */
bool link_read_clock (struct overlay *ov, uint64_t *now_us, uint64_t *bound_us);

/* Pass on a message that came from another broker (steals the reference), with the credentials that a link may claim
 * for its sender (doc/design/access.md).  A request of a broker that does not take its responses is refused.
 */
void link_received (struct overlay *ov, struct peer *from, struct channel *ch, idt_msg_t *msg);

/* Prepare the channel of one link.  Returns 0, or -1 with errno ENOMEM. */
int link_init_channel (const struct overlay *ov, struct channel *ch, const struct channel_ops *ops, void *arg);

/* Put a message on a wire in the form that the other end of 'ch' takes, and show it.  'ch' and 'to' NULL: the other
 * side has not joined, its version is unknown.  Returns as wire_send ().
 */
int link_send (struct overlay *ov, struct wire *w, const char *identity, const struct channel *ch,
               const struct peer *to, const idt_msg_t *msg);

/* Whether a broker that was heard last at 'heard' is silent: nothing came for tbon.timeout, and everything that arrived
 * on this wire was read.  On a wire that is never read empty the limit is twice that time.
 */
bool link_is_silent (const struct overlay *ov, double heard, const struct wire *w);

/* The wire and the queues of a link for overlay.stats-get; a new reference. */
json_t *link_describe (uint32_t rank, const struct wire *w, const struct channel *ch);

/* Add the queues of a link. */
void link_add_load (const struct channel *ch, struct overlay_load *load);

/* --- parent: the wire to the parent, or to the ancestor that stands in for it --------------------- */

#define RETRY_MIN_MS 20.
#define RETRY_MAX_MS 500.
#define REFUSED_MAX_MS 10e3 /* longest pause after a refusal */
#define PROBE_MS 1000.      /* between attempts to return */

enum conn_state { CONN_IDLE, CONN_HELLO, CONN_JOINED, CONN_LEAVING };

struct conn {
    struct parent *up;
    enum conn_state state;
    uint32_t target; /* index in the ancestors */
    struct peer peer;
    struct channel channel;
    struct wire *wire;
    char identity[IDT_MSG_UUID_LEN + 1]; /* of the connection: its messages have it in their routes */
    bool late;                           /* the time for a response to its hello is over; one may be unread */
    bool refused;                        /* it was refused since the last pause */
    double heard;                        /* link_now () of its last message */
    uint64_t hello_us;                   /* link_boot_us () of our hello */
    uint64_t doubt_us;                   /* ... since when the parent may have given us up; 0: no doubt */
    uint32_t joined;                     /* joined brokers of our subtree, as last reported to it */
    uint64_t keys_us;                    /* ... of the last keys sent, until it answers a later heartbeat; 0: none */
};

struct parent {
    struct overlay *ov;
    struct conn conn[2];
    struct conn *used;
    struct conn *probe;
    idt_watcher_t *retry; /* IDLE: next attempt; HELLO: timeout */
    idt_watcher_t *probe_timer;
    double probe_ms; /* pause before the next probe */
    double retry_ms;
    unsigned seed;   /* of the jitter */
    bool has_joined; /* at least once */
    int attempts;    /* failed since a broker answered */
    /* The index of the ancestor that last reported another broker of our rank, or TOPO_NONE. */
    uint32_t served_at;
    bool stopping;
};

/* From overlay_connect () to overlay_goodbye () this broker joins one of the ancestors that overlay_set_bizcards ()
 * gave. parent_create () returns NULL with errno set.
 */
struct parent *parent_create (struct overlay *ov);
void parent_destroy (struct parent *up);

/* Send the keys of descendants that the parent does not know. */
void parent_send_keys (struct parent *up);

/* Send a heartbeat with ov->health.  'was_asleep': this broker was stopped, so the parent was not silent. */
void parent_heartbeat (struct parent *up, bool was_asleep);

/* Give up a silent parent.  Returns whether its silence is decided: everything that it sent was read. */
bool parent_check_silence (struct parent *up);

/* This broker may have been stopped for so long that the parent has given it up.  Hold the parent's messages until it
 * answers a heartbeat.
 */
void parent_doubt (struct parent *up);

/* Give up a broken connection, or a hello without response.  Returns whether a connection was broken. */
bool parent_turn (struct parent *up);

/* --- children: the wires of the children ---------------------------------------------------------- */

struct children *children_create (struct overlay *ov); /* NULL with errno set */
/* After overlay_accept (false) the children get a disconnect; otherwise they only see that the connection is closed. */
void children_destroy (struct children *down);

/* A heartbeat is due: look for messages of the children.  'was_asleep': this broker was stopped, so no child was
 * silent.
 */
void children_heartbeat (struct children *down, bool was_asleep);

/* Remove silent children.  Returns whether silence is decided for all: everything that they sent was read. */
bool children_check_silence (struct children *down);

/* Remove the children whose channel is broken, and adopt some waiting descendants.  Returns whether to call it again.
 */
bool children_turn (struct children *down);

/* Send what full wires did not take before. */
void children_retry (struct children *down);

/* Add the links and queues of the children. */
void children_describe_links (const struct children *down, json_t *links);
void children_add_load (const struct children *down, struct overlay_load *load);

uint32_t children_adopted (const struct children *down); /* connected adopted descendants */
json_t *children_describe (const struct children *down); /* the "children" of overlay.health; a new reference */

const char *health_name (enum health health); /* "full", ... */

/* --- hello: a broker joins ------------------------------------------------------------------------ */

/* Our hello to an ancestor.  NULL without memory. */
idt_msg_t *hello_request (struct overlay *ov, uint32_t to);

/* An ancestor's response to it. */
struct welcome {
    json_t *o; /* owns the texts */
    const char *uuid, *stream;
    const char *instance, *name; /* NULL: not given */
    uint64_t seq;
    int link;                       /* version, as channel_open () */
    struct idt_clock_sample sample; /* the ancestor's part; 0: not given */
};

/* Read a response without an error.  Returns 0, or -1 with 'errp' filled.  The caller frees 'w->o' in both cases. */
int hello_welcome (const idt_msg_t *msg, struct welcome *w, idt_error_t *errp);

/* --- keys: the brokers that may connect ------------------------------------------------------------ */

struct keyring *keyring_create (void); /* NULL with errno ENOMEM */
void keyring_destroy (struct keyring *kr);

/* Set the key of a rank.  A new key waits for keyring_take_news ().  Returns false, and changes nothing, if the rank
 * has this key already, if another rank has it, or without memory.
 */
bool keyring_put (struct keyring *kr, const struct control_key *key);

/* The rank with this key, or TOPO_NONE. */
uint32_t keyring_find (const struct keyring *kr, const uint8_t key[CONTROL_KEY_SIZE]);

/* The ancestors know all present keys without a message. */
void keyring_known (struct keyring *kr);

/* This broker is attached to the broker with incarnation 'uuid'.  Changes that have not arrived there are new. */
void keyring_join (struct keyring *kr, const char uuid[IDT_MSG_UUID_LEN + 1]);

/* A message with at most KEYRING_MESSAGE new keys, which are then taken.  NULL if there are no new keys, or no memory.
 */
#define KEYRING_MESSAGE 1024
idt_msg_t *keyring_take_news (struct keyring *kr);

/* The taken keys could not be sent: everything that has not arrived is new again. */
void keyring_again (struct keyring *kr);

/* All taken keys have arrived. */
void keyring_arrived (struct keyring *kr);

uint32_t keyring_count (const struct keyring *kr);
uint64_t keyring_sent (const struct keyring *kr);    /* keys taken in total */
uint64_t keyring_pending (const struct keyring *kr); /* changes that have not arrived above */

#endif /* BROKER_LINK_H */
