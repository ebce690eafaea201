/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rpc_track.h - requests that were passed on and are not answered yet; a thinking part
 *
 * 1. An entry is known by all routes of its request, the matchtag, and whom it went to.  An asker that uses one tag
 *    twice gets two entries.
 * 2. Entries hold what an error's answer and a disconnect need, never a payload.
 * 3. What an asker (the oldest route) has in the table is an account: none takes more places than are free.
 * 4. Whatever ends costs what it has: a party its own entries, a disconnect those of its asker.
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

/* Part of whoever requests come from and go to. */
struct rpc_track_party {
    struct rpc_track_list asked; /* entries that came from it */
    struct rpc_track_list owes;  /* entries that went to it */
    void *owner;
};

struct rpc_track *rpc_track_create (size_t max); /* NULL with errno ENOMEM */
void rpc_track_destroy (struct rpc_track *p);

/* A party without entries. */
void rpc_track_party_init (struct rpc_track_party *party, void *owner);

/* Remember that 'request' came from 'from' and went to 'to'.  Returns 0, or -1 with errno EXFULL (the asker's share of
 * the table is used up) or ENOMEM.
 */
int rpc_track_add (struct rpc_track *p, const idt_msg_t *request, struct rpc_track_party *from,
                   struct rpc_track_party *to);

/* Forget the request that 'response', which came from 'from', answers for good.  Returns whether there
 * was one.
 */
bool rpc_track_answered (struct rpc_track *p, const idt_msg_t *response, const struct rpc_track_party *from);

/* Forget a request that went to 'to'.  Returns whether there was one. */
bool rpc_track_forget (struct rpc_track *p, const idt_msg_t *request, const struct rpc_track_party *to);

/* Forget what the asker of a disconnect, which came from 'from', waits for of the same service. */
void rpc_track_disconnect (struct rpc_track *p, const idt_msg_t *disconnect, const struct rpc_track_party *from);

/* Take out every entry of a party's list; 'cb' gets each as a request without its payload (borrowed).  Entries that it
 * adds stay in the table.
 */
typedef void (*rpc_track_f) (const idt_msg_t *request, struct rpc_track_party *to, void *arg);
void rpc_track_take (struct rpc_track *p, struct rpc_track_list *list, rpc_track_f cb, void *arg);

size_t rpc_track_count (const struct rpc_track *p);
size_t rpc_track_buckets (const struct rpc_track *p); /* grows and shrinks with that; for tests */

#endif /* BROKER_RPC_TRACK_H */
