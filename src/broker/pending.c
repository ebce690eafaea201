/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pending.c - requests that were passed on and are not answered yet
 *
 * A chained hash table that doubles when it is full; entries are reused through a free list, so that steady
 * traffic allocates nothing.
 */
#include "config.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "broker/pending.h"

#define INITIAL_BUCKETS 256

struct entry {
    struct entry *next;
    const idt_msg_t *request;
    const void *to;
    uint32_t hash;
};

struct pending {
    struct entry **buckets;
    size_t nbuckets; /* a power of two */
    size_t count;
    size_t max;
    struct entry *unused;
};

/* FNV-1a over the asker's UUID, mixed with the tag. */
static uint32_t hash_of (const idt_msg_t *msg)
{
    const char *s = idt_msg_route_oldest (msg);
    uint32_t h = 2166136261U ^ idt_msg_matchtag (msg) * 2654435761U;

    while (s && *s)
        h = (h ^ (unsigned char)*s++) * 16777619U;
    return h ^ h >> 15;
}

static bool same_asker (const idt_msg_t *a, const idt_msg_t *b)
{
    const char *x = idt_msg_route_oldest (a);
    const char *y = idt_msg_route_oldest (b);

    return idt_msg_matchtag (a) == idt_msg_matchtag (b) && x && y && strcmp (x, y) == 0;
}

struct pending *pending_create (size_t max)
{
    struct pending *p = calloc (1, sizeof (*p));

    if (!p || !(p->buckets = calloc (INITIAL_BUCKETS, sizeof (p->buckets[0])))) {
        free (p);
        return NULL;
    }
    p->nbuckets = INITIAL_BUCKETS;
    p->max = max;
    return p;
}

static void free_chain (struct entry *e)
{
    while (e) {
        struct entry *next = e->next;

        idt_msg_unref (e->request);
        free (e);
        e = next;
    }
}

void pending_destroy (struct pending *p)
{
    int saved_errno = errno;

    if (!p)
        return;
    for (size_t i = 0; i < p->nbuckets; i++)
        free_chain (p->buckets[i]);
    free_chain (p->unused);
    free (p->buckets);
    free (p);
    errno = saved_errno;
}

static void link_entry (struct pending *p, struct entry *e)
{
    struct entry **head = &p->buckets[e->hash & (p->nbuckets - 1)];

    e->next = *head;
    *head = e;
}

/* Double the buckets.  Without memory the chains just get longer. */
static void grow (struct pending *p)
{
    struct entry **old = p->buckets;
    size_t n = p->nbuckets;
    struct entry **buckets = calloc (n * 2, sizeof (buckets[0]));

    if (!buckets)
        return;
    p->buckets = buckets;
    p->nbuckets = n * 2;
    for (size_t i = 0; i < n; i++) {
        while (old[i]) {
            struct entry *e = old[i];

            old[i] = e->next;
            link_entry (p, e);
        }
    }
    free (old);
}

int pending_add (struct pending *p, const idt_msg_t *request, const void *to)
{
    struct entry *e = p->unused;

    if (p->count >= p->max) {
        errno = ENOBUFS;
        return -1;
    }
    if (e)
        p->unused = e->next;
    else if (!(e = malloc (sizeof (*e))))
        return -1;
    if (p->count >= p->nbuckets)
        grow (p);
    *e = (struct entry){ .request = idt_msg_ref (request), .to = to, .hash = hash_of (request) };
    link_entry (p, e);
    p->count++;
    return 0;
}

static void release (struct pending *p, struct entry **link)
{
    struct entry *e = *link;

    *link = e->next;
    idt_msg_unref (e->request);
    e->request = NULL;
    e->next = p->unused;
    p->unused = e;
    p->count--;
}

/* A streaming request goes on until an error ends it (RFC 6). */
static bool is_final (const idt_msg_t *response)
{
    return !idt_msg_has_flag (response, IDT_MSGFLAG_STREAMING) || idt_msg_errnum (response) != 0;
}

bool pending_answered (struct pending *p, const idt_msg_t *response, const void *from)
{
    uint32_t hash = hash_of (response);
    struct entry **link = &p->buckets[hash & (p->nbuckets - 1)];

    for (; *link; link = &(*link)->next) {
        struct entry *e = *link;

        if (e->hash == hash && e->to == from && same_asker (e->request, response)) {
            if (is_final (response))
                release (p, link);
            return true;
        }
    }
    return false;
}

/* The picked entries are unlinked first: the callback may add to the table. */
void pending_take (struct pending *p, pending_match_f match, pending_f cb, void *arg)
{
    struct entry *taken = NULL;

    for (size_t i = 0; i < p->nbuckets; i++) {
        struct entry **link = &p->buckets[i];

        while (*link) {
            struct entry *e = *link;

            if (match (e->request, e->to, arg)) {
                *link = e->next;
                e->next = taken;
                taken = e;
                p->count--;
            } else
                link = &e->next;
        }
    }
    while (taken) {
        struct entry *e = taken;

        taken = e->next;
        cb (e->request, e->to, arg);
        idt_msg_unref (e->request);
        e->request = NULL;
        e->next = p->unused;
        p->unused = e;
    }
}

size_t pending_count (const struct pending *p)
{
    return p->count;
}
