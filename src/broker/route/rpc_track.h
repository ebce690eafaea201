/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rpc_track.h - requests that were passed on and are not answered yet; part of the core
 *
 * 1. An entry is identified by all routes of its request, the matchtag, and the party that the request was sent to.  A
 *    requester that uses one matchtag twice has two entries.
 * 2. An entry holds what an error response and a disconnect need, never a payload.
 * 3. Entries are counted for each requester (the oldest route).  A requester may have at most as many entries as are
 *    free.
 * 4. When a party ends, the work is proportional to the number of its entries.  For a disconnect, the work is
 *    proportional to the number of the requester's entries.
 */
#ifndef BROKER_RPC_TRACK_H
#define BROKER_RPC_TRACK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include <idtree/msg.h>

struct rpc_track;
struct rpc_track_entry;
LIST_HEAD (rpc_track_list, rpc_track_entry);

/* The part of a peer that links the entries of the peer. */
struct rpc_track_party {
    struct rpc_track_list asked; /* entries of requests that the party has sent */
    struct rpc_track_list owes;  /* entries of requests that the party has to answer */
    void *owner;
};

struct rpc_track *rpc_track_create (size_t max); /* NULL with errno ENOMEM */
void rpc_track_destroy (struct rpc_track *p);

/* Initialize a party that has no entries. */
void rpc_track_party_init (struct rpc_track_party *party, void *owner);

/* Remember that 'request' came from 'from' and was sent to 'to'.  Returns 0, or -1 with errno EXFULL (the requester's
 * share of the table is used up) or ENOMEM.
 */
int rpc_track_add (struct rpc_track *p, const idt_msg_t *request, struct rpc_track_party *from,
                   struct rpc_track_party *to);

/* 'from' has sent 'response'.  Forget the request that it answers, unless more responses will follow.  Returns whether
 * the request was known.
 */
bool rpc_track_answered (struct rpc_track *p, const idt_msg_t *response, const struct rpc_track_party *from);

/* Forget a request that was sent to 'to'.  Returns whether it was known. */
bool rpc_track_forget (struct rpc_track *p, const idt_msg_t *request, const struct rpc_track_party *to);

/* Forget the requests that the requester of 'disconnect' sent through 'from' to the same service. */
void rpc_track_disconnect (struct rpc_track *p, const idt_msg_t *disconnect, const struct rpc_track_party *from);

/* Remove every entry of a party's list.  'cb' gets each one as a request without payload (borrowed).  Entries that 'cb'
 * adds stay in the table.
 */
typedef void (*rpc_track_f) (const idt_msg_t *request, struct rpc_track_party *to, void *arg);
void rpc_track_take (struct rpc_track *p, struct rpc_track_list *list, rpc_track_f cb, void *arg);

size_t rpc_track_count (const struct rpc_track *p);
size_t rpc_track_buckets (const struct rpc_track *p); /* for tests; grows and shrinks with the number of entries */

#endif /* BROKER_RPC_TRACK_H */
