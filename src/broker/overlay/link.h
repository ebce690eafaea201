/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* link.h - the two sides of the overlay, up to the parent and down to the children; private to the overlay */
#ifndef BROKER_LINK_H
#define BROKER_LINK_H

#include "broker/overlay/channel.h"
#include "broker/overlay/control.h"
#include "broker/overlay/overlay.h"
#include "broker/overlay/wire/wire.h"

/* The largest frame in bytes, which is larger than a part.  A peer without a valid key cannot make us store more. */
#define LINK_MAX_FRAME (2 * CHANNEL_PART)
#define LINK_RETRY_MS 5. /* milliseconds before a full wire is tried again */

struct keyring;
struct parent;
struct children;

/* State that all files of the overlay share. */
struct overlay {
    struct overlay_conf conf;
    const struct idt_overlay_ops *clock; /* callbacks of overlay_attach (); NULL: none attached */
    void *clock_arg;
    double timeout;     /* tbon.timeout, seconds */
    uint32_t owner;     /* user id of all brokers of the tree */
    bool root_owner;    /* access.allow-root-owner: user 0 is an owner, too */
    uint32_t hwm;       /* tbon.hwm, in messages */
    uint64_t max_queue; /* tbon.max-queue: bytes that may be queued for one link */
    struct wire_conf wire;
    char domain[OVERLAY_DOMAIN_SIZE];
    bool blocked;         /* a wire was full and must be tried again */
    bool due;             /* a heartbeat must be sent */
    bool judging;         /* a check for silent brokers is pending, until their messages are read */
    double beat;          /* link_now () of our last heartbeat */
    struct keyring *keys; /* public keys of our descendants */
    enum health health;   /* health of our subtree, which the worst health of the children proper determines */
    double since;         /* link_now () when 'health' changed */
    uint64_t below;       /* joined brokers below this one, as the children report them */
    uint32_t joined;      /* 'below' and this broker, but at most the size of the instance */
    enum health told;     /* health that hello or a heartbeat last reported to the parent */
    const struct bizcard *ancestors; /* bizcards, the parent's first; borrowed */
    uint32_t nancestors;
    struct resolver **addresses; /* one for each ancestor */
    struct parent *up;           /* exists at rank 0, too, but does not connect */
    struct children *down;
    idt_watcher_t *heart;
    idt_watcher_t *retry; /* timer for trying full wires again */
    bool retrying;
    double period;             /* seconds between heartbeats */
    double period_inside;      /* seconds between heartbeats to a parent in this process */
    double beat_period;        /* the period that began with the last heartbeat */
    enum health said;          /* health that was last reported to the followers */
    struct msglist *followers; /* streaming requests overlay.health */
    idt_t *h;
};

double link_now (void);       /* seconds, with an error of some ms; used to detect silence */
uint64_t link_boot_us (void); /* CLOCK_BOOTTIME, microseconds */

void link_start_timer (idt_watcher_t *w, double ms); /* fires once, after 'ms' */

/* Read the attached clock.  Returns false, and stores zeros, while the time is unknown. */
bool link_read_clock (struct overlay *ov, uint64_t *now_us, uint64_t *bound_us);

/* Pass on a message of another broker (steals the reference).  Of the sender's credentials, only those remain that a
 * link may claim (doc/design/access.md).  If the other broker does not take its responses, a request is refused.
 */
void link_received (struct overlay *ov, struct peer *from, struct channel *ch, idt_msg_t *msg);

/* Prepare the channel of one link.  Returns 0, or -1 with errno ENOMEM. */
int link_init_channel (const struct overlay *ov, struct channel *ch, const struct channel_ops *ops, void *arg);

/* Put a message on a wire, in the form that the other end of 'ch' takes, and show it to router_watch ().  'ch' and 'to'
 * are NULL if the other side has not joined, so its version is unknown.  Returns what wire_send () returns.
 */
int link_send (struct overlay *ov, struct wire *w, const char *identity, const struct channel *ch,
               const struct peer *to, const idt_msg_t *msg);

/* Whether a broker whose last message arrived at 'heard' is silent: nothing has arrived for tbon.timeout, and all
 * messages that have arrived on this wire were read.  On a wire that is never read empty, the limit is twice
 * tbon.timeout.
 */
bool link_is_silent (const struct overlay *ov, double heard, const struct wire *w);

/* Describe the wire and the queues of a link for overlay.stats-get.  Returns a new reference. */
json_t *link_describe (uint32_t rank, const struct wire *w, const struct channel *ch);

/* Add the queues of a link to '*load'. */
void link_add_load (const struct channel *ch, struct overlay_load *load);

/* --- parent: the wire to the parent, or to the ancestor that substitutes for it ------------------- */

#define RETRY_MIN_MS 20.
#define RETRY_MAX_MS 500.
#define REFUSED_MAX_MS 10e3 /* longest pause between attempts after a refusal */
#define PROBE_MS 1000.      /* between attempts to return to a nearer ancestor */

enum conn_state { CONN_IDLE, CONN_HELLO, CONN_JOINED, CONN_LEAVING };

struct conn {
    struct parent *up;
    enum conn_state state;
    uint32_t target; /* index in 'ancestors' of the broker that the connection leads to */
    struct peer peer;
    struct channel channel;
    struct wire *wire;
    char identity[IDT_MSG_UUID_LEN + 1]; /* identity of the connection, which the routes of its messages contain */
    bool late;    /* the time for an answer to its hello is over, but an answer may have arrived and not been read */
    bool refused; /* an ancestor has refused this broker since the last pause was chosen */
    double heard; /* link_now () when the last message arrived over the connection */
    uint64_t hello_us; /* link_boot_us () when our hello was sent */
    uint64_t doubt_us; /* link_boot_us () since when the parent may have given this broker up; 0: no doubt */
    uint32_t joined;   /* joined brokers of our subtree, as last reported over this connection */
    uint64_t keys_us;  /* link_boot_us () of the last keys sent, until a later heartbeat is answered; 0: none */
};

struct parent {
    struct overlay *ov;
    struct conn conn[2];
    struct conn *used;
    struct conn *probe;
    idt_watcher_t *retry; /* in state IDLE: the next attempt; in state HELLO: the timeout */
    idt_watcher_t *probe_timer;
    double probe_ms; /* pause before the next probe */
    double retry_ms;
    unsigned seed;   /* state of the random numbers for pauses */
    bool has_joined; /* this broker has joined at least once */
    int attempts;    /* failed attempts since the last refusal */
    /* The index of the ancestor that last reported that another broker serves our rank, or TOPO_NONE. */
    uint32_t served_at;
    bool stopping;
};

/* From overlay_connect () to overlay_goodbye () this broker tries to join one of its ancestors, which
 * overlay_set_bizcards () has set, and to stay joined. parent_create () returns NULL with errno set.
 */
struct parent *parent_create (struct overlay *ov);
void parent_destroy (struct parent *up);

/* Send the keys of descendants that the parent does not know. */
void parent_send_keys (struct parent *up);

/* Send a heartbeat with ov->health.  'was_asleep': this broker was stopped, so the parent does not count as silent. */
void parent_heartbeat (struct parent *up, bool was_asleep);

/* If the parent is silent, give it up.  Returns whether the check is complete, because all that the parent sent was
 * read.
 */
bool parent_check_silence (struct parent *up);

/* Call this when this broker may have been stopped for so long that the parent has given it up.  Messages of the parent
 * are then held until the parent answers a heartbeat.
 */
void parent_doubt (struct parent *up);

/* Give up a broken connection, or a hello that was not answered in time.  Returns whether a connection was broken. */
bool parent_turn (struct parent *up);

/* --- children: the wires of the children ---------------------------------------------------------- */

struct children *children_create (struct overlay *ov); /* NULL with errno set */
/* If overlay_accept (false) was called before, the children get a disconnect.  Otherwise their connections are closed
 * without a message.
 */
void children_destroy (struct children *down);

/* A heartbeat is due: check for messages of the children.  'was_asleep': this broker was stopped, so no child counts as
 * silent.
 */
void children_heartbeat (struct children *down, bool was_asleep);

/* Remove silent children.  Returns whether the check is complete, because all that the children sent was read. */
bool children_check_silence (struct children *down);

/* Remove children whose channel is broken or that said goodbye, and adopt some waiting descendants.  Returns whether
 * children_turn () must be called again.
 */
bool children_turn (struct children *down);

/* Send messages that full wires did not take before. */
void children_retry (struct children *down);

/* children_describe_links (): add the links of the children to 'links'.  children_add_load (): add their queues to
 * '*load'.
 */
void children_describe_links (const struct children *down, json_t *links);
void children_add_load (const struct children *down, struct overlay_load *load);

uint32_t children_adopted (const struct children *down); /* number of adopted descendants that are connected */
json_t *children_describe (const struct children *down); /* the member "children" of overlay.health; a new reference */

const char *health_name (enum health health); /* "full", ... */

/* --- hello: a broker joins ------------------------------------------------------------------------ */

/* Make our hello to an ancestor.  NULL without memory. */
idt_msg_t *hello_request (struct overlay *ov, uint32_t to);

/* The version of the messages between brokers, such as fluid.lease. Brokers of a tree must have the same. A broker that
 * does not state it has version 1.
 */
#define HELLO_PROTOCOL 2

/* An ancestor's answer to a hello. */
struct welcome {
    json_t *o; /* owns the strings */
    const char *uuid, *stream;
    const char *instance, *name; /* NULL: not given */
    uint64_t seq;
    int link;                       /* version for channel_open () */
    struct idt_clock_sample sample; /* times of the ancestor; 0: not given */
};

/* Read an answer that has no error.  Returns 0, or -1 with 'errp' filled.  The caller frees 'w->o' in both cases. */
int hello_welcome (const idt_msg_t *msg, struct welcome *w, idt_error_t *errp);

/* --- keys: the brokers that may connect ------------------------------------------------------------ */

struct keyring *keyring_create (void); /* NULL with errno ENOMEM */
void keyring_destroy (struct keyring *kr);

/* Set the key of a rank.  keyring_take_news () then returns it as new.  Returns false, and changes nothing, if this
 * rank or another one already has this key, or without memory.
 */
bool keyring_put (struct keyring *kr, const struct control_key *key);

/* The rank with this key, or TOPO_NONE. */
uint32_t keyring_find (const struct keyring *kr, const uint8_t key[CONTROL_KEY_SIZE]);

/* Mark all present keys as known to all ancestors, so that none of them is sent. */
void keyring_known (struct keyring *kr);

/* This broker is now attached to the broker with incarnation 'uuid'.  All changes that have not arrived at that broker
 * are new again.
 */
void keyring_join (struct keyring *kr, const char uuid[IDT_MSG_UUID_LEN + 1]);

/* Take at most KEYRING_MESSAGE new keys.  Returns a message with them, or NULL if there are no new keys, or without
 * memory.
 */
#define KEYRING_MESSAGE 1024
idt_msg_t *keyring_take_news (struct keyring *kr);

/* The taken keys could not be sent: all changes that have not arrived are new again. */
void keyring_again (struct keyring *kr);

/* All keys that were taken have arrived. */
void keyring_arrived (struct keyring *kr);

uint32_t keyring_count (const struct keyring *kr);
uint64_t keyring_sent (const struct keyring *kr);    /* number of keys taken in total */
uint64_t keyring_pending (const struct keyring *kr); /* number of changes that have not arrived at the broker above */

#endif /* BROKER_LINK_H */
