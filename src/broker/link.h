/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* link.h - the two sides of the overlay: up to the parent, down to the children; private to the overlay */
#ifndef BROKER_LINK_H
#define BROKER_LINK_H

#include "broker/control.h"
#include "broker/overlay.h"

#define LINK_MAX_MESSAGE ((size_t)128 << 20) /* bytes of a message between brokers */

/* What both sides share. */
struct keyring;

struct link_env {
    struct overlay_conf conf;
    const struct idt_overlay_ops *clock; /* NULL: none attached */
    void *clock_arg;
    double timeout; /* tbon.timeout, seconds */
    uint32_t hwm;   /* tbon.hwm, messages */
    struct keyring *keys; /* of our descendants */
};

double link_now (void);       /* seconds, CLOCK_MONOTONIC: silence is judged by it */
uint64_t link_boot_us (void); /* CLOCK_BOOTTIME, microseconds */

/* Read the attached clock.  Returns false (and zeros) while it is unknown. */
bool link_read_clock (struct link_env *env, uint64_t *now_us, uint64_t *bound_us);

/* A message that came from another broker (steals the reference): hand it on, without the role that says it is
 * local.  Control messages are for the link itself: 'control' gets them, borrowed.
 */
void link_received (struct link_env *env, struct peer *from, idt_msg_t *msg,
                    void (*control) (void *arg, const idt_msg_t *msg), void *arg);

/* Options of every overlay socket.  Returns 0, or -1 with errno set. */
int link_setup_socket (const struct link_env *env, void *sock);

/* Which brokers can be in one tree: those of one major version. */
bool link_same_version (const char *a, const char *b);

/* --- uplink: the DEALER to the parent, or to the ancestor that stands in for it ------------------- */

struct uplink;

struct uplink *uplink_create (struct link_env *env);
void uplink_destroy (struct uplink *up);
void uplink_set_ancestors (struct uplink *up, const struct card *ancestors, uint32_t count); /* borrowed */
void uplink_connect (struct uplink *up);
bool uplink_joined (const struct uplink *up);
bool uplink_leaving (const struct uplink *up);
void uplink_send_keys (struct uplink *up); /* those that are news */
uint32_t uplink_rank (const struct uplink *up); /* whom we are attached to; TOPO_NONE: nobody */
int uplink_send (struct uplink *up, const idt_msg_t *msg);
bool uplink_turn (struct uplink *up); /* whether there was anything to do */
void uplink_heartbeat (struct uplink *up, enum health health, bool was_asleep);
void uplink_goodbye (struct uplink *up);

/* --- downlink: the ROUTER for the children ------------------------------------------------------- */

struct downlink;

struct downlink *downlink_create (struct link_env *env);
void downlink_destroy (struct downlink *down);
int downlink_bind (struct downlink *down, const char *endpoint, idt_error_t *errp);
const char *downlink_endpoint (const struct downlink *down);
void downlink_accept (struct downlink *down, bool accept);
void downlink_send_all (struct downlink *down, const idt_msg_t *msg);
void downlink_send_position (struct downlink *down);
uint32_t downlink_online (const struct downlink *down);
enum health downlink_health (const struct downlink *down);
/* Since when the health is what it is, by link_now (). */
double downlink_since (const struct downlink *down);
void downlink_check_silence (struct downlink *down, bool was_asleep);
bool downlink_turn (struct downlink *down); /* whether there was anything to do */
json_t *downlink_describe (const struct downlink *down); /* the "children" of overlay.health */
uint32_t downlink_adopted (const struct downlink *down);  /* descendants attached here in place of a child */

/* Take in descendants whose parent is gone, as far as the budget goes; it is filled again at each beat. */
void downlink_adopt (struct downlink *down);
void downlink_refill (struct downlink *down);

/* --- keys: whom this broker may let in ------------------------------------------------------------ */

struct keyring;

struct keyring *keyring_create (void); /* NULL with errno ENOMEM */
void keyring_destroy (struct keyring *kr);

/* Set the key of a rank.  Returns whether that is news.  What is news waits for keyring_take_news (). */
bool keyring_put (struct keyring *kr, const struct control_key *key);

/* Whose key it is; TOPO_NONE: nobody's. */
uint32_t keyring_find (const struct keyring *kr, const uint8_t key[CONTROL_KEY_SIZE]);

/* A message with the keys that are news since the last call; with 'all' true with all of them.  NULL: none. */
idt_msg_t *keyring_take_news (struct keyring *kr, bool all);
const char *health_name (enum health health);

#endif /* BROKER_LINK_H */
