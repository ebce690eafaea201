/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rpc_track.h - requests that were passed on and are not answered yet; a thinking part
 *
 * 1. An entry is known by all routes of its request, the matchtag, and whom it went to.  An asker that uses one tag twice
 *    gets two entries.
 * 2. Entries hold what an error's answer and a disconnect need, never a payload.
 * 3. What an asker (the oldest route) has in the table is an account: none takes more places than are free.
 * 4. Whatever ends costs what it has: a party its own entries, a disconnect those of its asker.
 */
#ifndef BROKER_PENDING_H
#define BROKER_PENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include <idtree/msg.h>

struct pending;
struct pending_entry;
LIST_HEAD (pending_list, pending_entry);

/* Part of whoever requests come from and go to. */
struct pending_party {
    struct pending_list asked; /* entries that came from it */
    struct pending_list owes;  /* entries that went to it */
    void *owner;
};

struct pending *pending_create (size_t max); /* NULL with errno ENOMEM */
void pending_destroy (struct pending *p);

/* A party without entries. */
void pending_party_init (struct pending_party *party, void *owner);

/* Remember that 'request' came from 'from' and went to 'to'.  Returns 0, or -1 with errno EXFULL (the asker's share of the
 * table is used up) or ENOMEM.
 */
int pending_add (struct pending *p, const idt_msg_t *request, struct pending_party *from, struct pending_party *to);

/* Forget the request that 'response', which came from 'from', answers for good.  Returns whether there
 * was one.
 */
bool pending_answered (struct pending *p, const idt_msg_t *response, const struct pending_party *from);

/* Forget a request that went to 'to'.  Returns whether there was one. */
bool pending_forget (struct pending *p, const idt_msg_t *request, const struct pending_party *to);

/* Forget what the asker of a disconnect, which came from 'from', waits for of the same service. */
void pending_disconnect (struct pending *p, const idt_msg_t *disconnect, const struct pending_party *from);

/* Take out every entry that came from, or went to, a party; 'cb' gets each as a request without its payload (borrowed).
 * Entries that it adds stay in the table.
 */
typedef void (*pending_f) (const idt_msg_t *request, struct pending_party *to, void *arg);
void pending_take_asked (struct pending *p, struct pending_party *from, pending_f cb, void *arg);
void pending_take_owed (struct pending *p, struct pending_party *to, pending_f cb, void *arg);

size_t pending_count (const struct pending *p);
size_t pending_buckets (const struct pending *p); /* grows and shrinks with that */

#endif /* BROKER_PENDING_H */
