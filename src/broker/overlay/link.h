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

/* Read the attached clock.  Returns false (and zeros) while it is unknown. */
bool link_read_clock (struct overlay *ov, uint64_t *now_us, uint64_t *bound_us);

/* Pass on a message that came from another broker (steals the reference), with the credentials that a link may claim
 * for its sender (doc/design/access.md).  A request of a broker that does not take its responses is refused.
 */
void link_received (struct overlay *ov, struct peer *from, struct channel *ch, idt_msg_t *msg);

/* Prepare the channel of one link.  Returns 0, or -1 with errno ENOMEM. */
int link_init_channel (const struct overlay *ov, struct channel *ch, const struct channel_ops *ops, void *arg);

/* Put a message on a wire in the form that the other end of 'ch' takes; 'ch' NULL: its version is unknown.  Returns as
 * wire_send ().
 */
int link_send (struct overlay *ov, struct wire *w, const char *identity, const struct channel *ch,
               const idt_msg_t *msg);

/* Show an event or control message to the router's watcher: they do not pass the router. */
void link_show (const struct overlay *ov, enum router_way way, const struct peer *p, const idt_msg_t *msg);

/* Whether a broker that was heard last at 'heard' is silent: nothing came for tbon.timeout, and everything that arrived
 * on this wire was read.  On a wire that is never read empty the limit is twice that time.
 */
bool link_is_silent (const struct overlay *ov, double heard, const struct wire *w);

/* Set the text of 'o' (stolen) as payload of a message (stolen; may be NULL).  Returns the message, or NULL without
 * memory.
 */
idt_msg_t *link_add_json (idt_msg_t *msg, json_t *o);

/* The wire and the queues of a link for overlay.stats-get; a new reference. */
json_t *link_describe (uint32_t rank, const struct wire *w, const struct channel *ch);

/* Add the queues of a link. */
void link_add_load (const struct channel *ch, struct overlay_load *load);

/* Whether brokers of these versions can be in one tree: their major versions are equal. */
bool link_same_version (const char *a, const char *b);

/* --- parent: the wire to the parent, or to the ancestor that stands in for it --------------------- */

/* The parent joins the ancestors that overlay_set_bizcards () gave, from overlay_connect () to overlay_goodbye ().
 * parent_create () returns NULL with errno set.
 */
struct parent *parent_create (struct overlay *ov);
void parent_destroy (struct parent *up);

uint32_t parent_rank (const struct parent *up);        /* the broker we are attached to, or TOPO_NONE */
bool parent_is_inside (const struct parent *up);       /* attached to a broker of this process */
const char *parent_identity (const struct parent *up); /* our UUID in its routes; NULL if not attached */

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

/* Send what a full wire did not take before. */
void parent_retry (struct parent *up);

/* Add the parent's link and queues. */
void parent_describe (const struct parent *up, json_t *links);
void parent_add_load (const struct parent *up, struct overlay_load *load);

/* --- children: the wires of the children ---------------------------------------------------------- */

struct children *children_create (struct overlay *ov); /* NULL with errno set */
void children_destroy (struct children *down);         /* the children get a disconnect and connect elsewhere */

/* As overlay_bind (). */
int children_bind (struct children *down, const char *endpoint, bool others, idt_error_t *errp);

/* Adopt some of the waiting descendants whose parent is lost.  Returns whether others still wait. */
bool children_adopt (struct children *down);

/* A heartbeat is due: look for messages of the children.  'was_asleep': this broker was stopped, so no child was
 * silent.
 */
void children_heartbeat (struct children *down, bool was_asleep);

/* Remove silent children.  Returns whether silence is decided for all: everything that they sent was read. */
bool children_check_silence (struct children *down);

/* Remove the children that are marked as doomed, and adopt some waiting descendants.  Returns whether to call it again.
 */
bool children_turn (struct children *down);

/* Send what full wires did not take before. */
void children_retry (struct children *down);

/* Add the links and queues of the children. */
void children_describe_links (const struct children *down, json_t *links);
void children_add_load (const struct children *down, struct overlay_load *load);

uint32_t children_adopted (const struct children *down); /* connected adopted descendants */
json_t *children_describe (const struct children *down); /* the "children" of overlay.health; a new reference */

void children_name_missing (const struct children *down, char *buf, size_t size); /* see overlay_name_missing () */

const char *health_name (enum health health); /* "full", ... */

/* --- keys: the brokers that may connect ------------------------------------------------------------ */

struct keyring *keyring_create (void); /* NULL with errno ENOMEM */
void keyring_destroy (struct keyring *kr);

/* Set the key of a rank.  Returns whether that is new: not if the rank has this key already, or if another rank has it
 * and keeps it.  A new key waits for keyring_take_news ().
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
