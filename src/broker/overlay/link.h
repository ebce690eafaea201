/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* link.h - the two sides of the overlay: up to the parent, down to the children; private to the overlay */
#ifndef BROKER_LINK_H
#define BROKER_LINK_H

#include "broker/overlay/channel.h"
#include "broker/overlay/control.h"
#include "broker/overlay/overlay.h"
#include "broker/overlay/wire/wire.h"

/* Bytes of a frame: more than a part, and all that one without a key can make us hold. */
#define LINK_MAX_FRAME (2 * CHANNEL_PART)
#define LINK_RETRY_MS 5. /* until a wire that takes nothing is tried again */

struct keyring;
struct parent;
struct children;

/* What all files share. */
struct overlay {
    struct overlay_conf conf;
    const struct idt_overlay_ops *clock; /* NULL: none attached */
    void *clock_arg;
    double timeout;     /* tbon.timeout, seconds */
    uint32_t owner;     /* user id: brokers of one tree have one */
    bool root_owner;    /* access.allow-root-owner: so is root */
    uint32_t hwm;       /* tbon.hwm, messages */
    uint64_t max_queue; /* tbon.max-queue, bytes that may wait for one link */
    struct wire_conf wire;
    char domain[OVERLAY_DOMAIN_SIZE];
    bool blocked;                    /* a wire took nothing: it is to be tried again */
    bool due;                        /* a beat is */
    bool judging;                    /* whether others are silent, which is known when what they sent was read */
    double beat;                     /* link_now () of our last beat */
    struct keyring *keys;            /* of our descendants */
    enum health health;              /* of our subtree: what the worst of the children makes of it */
    double since;                    /* link_now () of the last change of that */
    uint64_t below;                  /* brokers that children say are in the tree, themselves included */
    enum health told;                /* as the parent knows it: by our hello, or a beat */
    const struct bizcard *ancestors; /* parent first; borrowed */
    uint32_t nancestors;
    struct resolver **addresses; /* of the ancestors */
    struct parent *up;           /* of the root: there is nobody that it could join */
    struct children *down;
    idt_watcher_t *heart;
    idt_watcher_t *retry; /* of wires that took nothing */
    bool retrying;
    double period;             /* of the heart, seconds */
    double period_inside;      /* the same where the parent is in this process */
    double beat_period;        /* the one that the last beat began */
    enum health said;          /* health that the followers know */
    struct msglist *followers; /* of overlay.health */
    idt_t *h;
};

double link_now (void);       /* seconds, to some ms: silence is judged by it */
uint64_t link_boot_us (void); /* CLOCK_BOOTTIME, microseconds */

/* Read the attached clock.  Returns false (and zeros) while it is unknown. */
bool link_read_clock (struct overlay *ov, uint64_t *now_us, uint64_t *bound_us);

/* A message that came from another broker (steals the reference): hand it on with what a link may claim of its sender
 * (doc/design/access.md).  An ask of one that does not take its answers is
 * refused.
 */
void link_received (struct overlay *ov, struct peer *from, struct channel *ch, idt_msg_t *msg);

/* Prepare the channel of one link.  Returns 0, or -1 with errno ENOMEM. */
int link_init_channel (const struct overlay *ov, struct channel *ch, const struct channel_ops *ops, void *arg);

/* Put a message on a wire, as the other end of 'ch' takes it; NULL: of whom nothing is known.  Returns as wire_send ().
 */
int link_send (struct overlay *ov, struct wire *w, const char *identity, const struct channel *ch,
               const idt_msg_t *msg);

/* Events and control do not pass the router: who looks at messages sees them on the wire. */
void link_show (const struct overlay *ov, enum router_way way, const struct peer *p, const idt_msg_t *msg);

/* Whether one who was heard last at 'heard' is silent: for tbon.timeout, and all that came by this wire was read.
 * Where so much comes that it never is, after twice that time.
 */
bool link_is_silent (const struct overlay *ov, double heard, const struct wire *w);

/* Give a message (stolen; NULL: no memory) the text of 'o' (stolen, too).  Returns it, or NULL. */
idt_msg_t *link_add_json (idt_msg_t *msg, json_t *o);

/* What carries a link, and waits for it, as overlay.stats-get tells it; a new reference. */
json_t *link_describe (uint32_t rank, const struct wire *w, const struct channel *ch);

/* Add what waits for a link. */
void link_add_load (const struct channel *ch, struct overlay_load *load);

/* Which brokers can be in one tree: those of one major version. */
bool link_same_version (const char *a, const char *b);

/* --- parent: the wire to the parent, or to the ancestor that stands in for it --------------------- */

/* It joins whom overlay_set_bizcards () told, or who stands in for it, from overlay_connect () to overlay_goodbye ().
 * NULL with errno set.
 */
struct parent *parent_create (struct overlay *ov);
void parent_destroy (struct parent *up);

uint32_t parent_rank (const struct parent *up);        /* whom we are attached to; TOPO_NONE: nobody */
bool parent_is_inside (const struct parent *up);       /* attached to a broker of this process */
const char *parent_identity (const struct parent *up); /* under what UUID it knows us; NULL: nobody does */

/* Tell the keys of our descendants that are news. */
void parent_send_keys (struct parent *up);

/* Our beat: tells ov->health.  Where it was we who slept, the parent was not silent. */
void parent_heartbeat (struct parent *up, bool was_asleep);

/* Give up a parent that is silent.  Returns whether that is known: all that it sent was read. */
bool parent_check_silence (struct parent *up);

/* We may have been stopped for so long that the parent has given us up: then what it sent before waits until it answers
 * a beat.
 */
void parent_doubt (struct parent *up);

/* Give up a connection that was found broken, or a hello that nobody answers.  Returns whether one was broken. */
bool parent_turn (struct parent *up);

/* Try again what the wire did not take. */
void parent_retry (struct parent *up);

/* Add what waits for the parent. */
void parent_describe (const struct parent *up, json_t *links);
void parent_add_load (const struct parent *up, struct overlay_load *load);

/* --- children: the wires of the children ---------------------------------------------------------- */

struct children *children_create (struct overlay *ov); /* NULL with errno set */
void children_destroy (struct children *down);         /* children are told to say hello elsewhere */

/* As overlay_bind (). */
int children_bind (struct children *down, const char *endpoint, bool others, idt_error_t *errp);

/* Take in descendants whose parent is gone: some of them.  Returns whether others wait for their turn. */
bool children_adopt (struct children *down);

/* Our beat: what they sent is looked for.  Where it was we who slept, nobody was silent. */
void children_heartbeat (struct children *down, bool was_asleep);

/* Remove who is silent.  Returns whether that is known: all that they sent was read. */
bool children_check_silence (struct children *down);

/* Remove those that were found broken, adopt some of those that wait.  Returns whether it is to be called again. */
bool children_turn (struct children *down);

/* Try again what the wire did not take. */
void children_retry (struct children *down);

/* Add what waits for each. */
void children_describe_links (const struct children *down, json_t *links);
void children_add_load (const struct children *down, struct overlay_load *load);

uint32_t children_adopted (const struct children *down); /* descendants that are connected */
json_t *children_describe (const struct children *down); /* the "children" of overlay.health; a new reference */

void children_name_missing (const struct children *down, char *buf, size_t size); /* see overlay_name_missing () */

const char *health_name (enum health health); /* "full", ... */

/* --- keys: whom this broker may let in ------------------------------------------------------------ */

struct keyring *keyring_create (void); /* NULL with errno ENOMEM */
void keyring_destroy (struct keyring *kr);

/* Set the key of a rank.  Returns whether that is news: not where it has it already, or another rank does, which keeps
 * it.  What is news waits for keyring_take_news ().
 */
bool keyring_put (struct keyring *kr, const struct control_key *key);

/* Whose key it is; TOPO_NONE: nobody's. */
uint32_t keyring_find (const struct keyring *kr, const uint8_t key[CONTROL_KEY_SIZE]);

/* All that is there now is known above without being told. */
void keyring_known (struct keyring *kr);

/* A broker ('uuid': its incarnation) is joined: all is news that has not arrived there. */
void keyring_join (struct keyring *kr, const char uuid[IDT_MSG_UUID_LEN + 1]);

/* A message with keys that are news, which they are no more; at most KEYRING_MESSAGE.  NULL: none, or no memory. */
#define KEYRING_MESSAGE 1024
idt_msg_t *keyring_take_news (struct keyring *kr);

/* What was taken could not be sent: all is news again that has not arrived. */
void keyring_again (struct keyring *kr);

/* All that was taken has arrived. */
void keyring_arrived (struct keyring *kr);

uint32_t keyring_count (const struct keyring *kr);
uint64_t keyring_sent (const struct keyring *kr); /* keys that were taken, ever */
uint64_t
keyring_pending (const struct keyring *kr); /* changes of keys that have not arrived at the one that is joined */

#endif /* BROKER_LINK_H */
