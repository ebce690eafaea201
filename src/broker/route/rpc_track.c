/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rpc_track.c - requests that were passed on and are not answered yet
 *
 * There are two chained hash tables: one of entries, one of requesters.  A table doubles its buckets when it has more
 * entries than buckets.  It halves them when less than an eighth is used, but not below KEPT_BUCKETS, so that common
 * loads do not resize it all the time.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "libutil/errprintf.h"
#include "broker/route/rpc_track.h"
#include "libutil/queue/budget.h"
#include "libutil/queue/fifo.h"
#include "broker/base/uuid_key.h"

#define MIN_BUCKETS 16
#define KEPT_BUCKETS 1024
#define BYTES_PER_ENTRY 256 /* bytes of memory for each allowed entry */
#define MIN_BYTES ((uint64_t)64 << 10)
#define ENTRY_SIZE ((size_t)256) /* bytes of an entry with few routes and a short topic */

/* The first member of each object that is in a table. */
struct link {
    struct link *next;
    uint64_t hash;
};

struct table {
    struct link **buckets;
    size_t nbuckets; /* a power of two */
    size_t count;
};

struct track_requester {
    struct link link;
    char uuid[IDT_MSG_UUID_LEN];
    struct budget account;
    struct rpc_track_list entries;
};

struct rpc_track_entry {
    struct link link; /* also links removed entries in rpc_track_take () */
    LIST_ENTRY (rpc_track_entry) in_requester, in_asked, in_owes;
    struct track_requester *requester;
    struct rpc_track_party *from;
    struct rpc_track_party *to;
    uint32_t tag;
    uint32_t nodeid;
    struct idt_cred cred;
    uint8_t flags;
    uint16_t routes;
    uint16_t topic_len;
    char text[]; /* routes without NULs, newest first; the topic with its NUL */
};

struct rpc_track {
    struct table entries;
    struct table requesters;
    struct budget_pool pool;
    struct freelist spare_requesters;
    struct freelist spare_entries; /* spare entries have ENTRY_SIZE bytes each; longer entries are freed */
    uint64_t seed;                 /* random, so that clients cannot predict the bucket of an entry */
};

/* --- tables ------------------------------------------------------------------------------------ */

static int table_init (struct table *t)
{
    t->nbuckets = MIN_BUCKETS;
    t->buckets = calloc (t->nbuckets, sizeof (t->buckets[0]));
    return t->buckets ? 0 : -1;
}

static struct link **table_bucket (const struct table *t, uint64_t hash)
{
    return &t->buckets[hash & (t->nbuckets - 1)];
}

static void table_link (struct table *t, struct link *l)
{
    struct link **head = table_bucket (t, l->hash);

    l->next = *head;
    *head = l;
}

/* Without memory the table keeps its number of buckets and the chains get longer. */
static void table_resize (struct table *t, size_t n)
{
    struct link **old = t->buckets;
    size_t old_n = t->nbuckets;
    struct link **buckets = calloc (n, sizeof (buckets[0]));

    if (!buckets)
        return;
    t->buckets = buckets;
    t->nbuckets = n;
    for (size_t i = 0; i < old_n; i++) {
        for (struct link *l = old[i], *next; l; l = next) {
            next = l->next;
            table_link (t, l);
        }
    }
    free (old);
}

static void table_add (struct table *t, struct link *l)
{
    if (t->count++ >= t->nbuckets)
        table_resize (t, 2 * t->nbuckets);
    table_link (t, l);
}

static void table_remove (struct table *t, struct link *l)
{
    struct link **at = table_bucket (t, l->hash);

    assert (t->count > 0);
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    if (--t->count < t->nbuckets / 8 && t->nbuckets > KEPT_BUCKETS)
        table_resize (t, t->nbuckets / 2);
}

/* --- requesters ---------------------------------------------------------------------------------- */

static struct track_requester *find_requester (const struct rpc_track *p, const char *uuid, uint64_t hash)
{
    struct link *l = *table_bucket (&p->requesters, hash);

    while (l && (l->hash != hash || memcmp (((struct track_requester *)l)->uuid, uuid, IDT_MSG_UUID_LEN) != 0))
        l = l->next;
    return (struct track_requester *)l;
}

static struct track_requester *find_or_add_requester (struct rpc_track *p, const char *uuid, uint64_t hash)
{
    struct track_requester *a = find_requester (p, uuid, hash);

    if (a || !(a = freelist_get (&p->spare_requesters)))
        return a;
    *a = (struct track_requester){ .link.hash = hash };
    memcpy (a->uuid, uuid, sizeof (a->uuid));
    budget_init (&a->account, &p->pool, 0, 0, BUDGET_NEVER);
    LIST_INIT (&a->entries);
    table_add (&p->requesters, &a->link);
    return a;
}

static void forget_idle_requester (struct rpc_track *p, struct track_requester *a)
{
    if (!LIST_EMPTY (&a->entries))
        return;
    table_remove (&p->requesters, &a->link);
    freelist_put (&p->spare_requesters, a);
}

/* --- entries ------------------------------------------------------------------------------------- */

static size_t entry_size (const struct rpc_track_entry *e)
{
    return sizeof (*e) + e->routes * IDT_MSG_UUID_LEN + e->topic_len + 1;
}

static struct rpc_track_entry *entry_create (struct rpc_track *p, const idt_msg_t *request)
{
    unsigned routes = idt_msg_route_count (request);
    size_t topic_len = strlen (idt_msg_topic (request));
    size_t size = sizeof (struct rpc_track_entry) + routes * IDT_MSG_UUID_LEN + topic_len + 1;
    struct rpc_track_entry *e = size <= ENTRY_SIZE ? freelist_get (&p->spare_entries) : malloc (size);
    char *s;

    if (!e)
        return NULL;
    e->tag = idt_msg_matchtag (request);
    e->nodeid = idt_msg_nodeid (request);
    e->cred = idt_msg_cred (request);
    e->flags = idt_msg_flags (request) & (IDT_MSGFLAG_UPSTREAM | IDT_MSGFLAG_STREAMING);
    e->routes = routes;
    e->topic_len = topic_len;
    s = e->text;
    for (unsigned i = 0; i < routes; i++, s += IDT_MSG_UUID_LEN)
        memcpy (s, idt_msg_route_at (request, i), IDT_MSG_UUID_LEN);
    memcpy (s, idt_msg_topic (request), topic_len + 1);
    return e;
}

static void entry_free (struct rpc_track *p, struct rpc_track_entry *e)
{
    if (e && entry_size (e) <= ENTRY_SIZE)
        freelist_put (&p->spare_entries, e);
    else
        free (e);
}

static const char *entry_topic (const struct rpc_track_entry *e)
{
    return e->text + e->routes * IDT_MSG_UUID_LEN;
}

static idt_msg_t *entry_request (const struct rpc_track_entry *e)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);
    char uuid[IDT_MSG_UUID_LEN + 1] = "";

    if (!msg || idt_msg_set_topic (msg, entry_topic (e)) < 0)
        goto error;
    idt_msg_set_matchtag (msg, e->tag);
    idt_msg_set_nodeid (msg, e->nodeid);
    idt_msg_set_cred (msg, e->cred);
    if (e->flags)
        idt_msg_set_flag (msg, e->flags);
    idt_msg_route_clear (msg);
    for (unsigned i = e->routes; i > 0; i--) {
        memcpy (uuid, e->text + (i - 1) * IDT_MSG_UUID_LEN, IDT_MSG_UUID_LEN);
        if (idt_msg_route_push (msg, uuid) < 0)
            goto error;
    }
    return msg;
error:
    idt_msg_unref (msg);
    return NULL;
}

static bool same_routes (const struct rpc_track_entry *e, const idt_msg_t *msg)
{
    if (e->routes != idt_msg_route_count (msg))
        return false;
    for (unsigned i = 0; i < e->routes; i++)
        if (memcmp (e->text + i * IDT_MSG_UUID_LEN, idt_msg_route_at (msg, i), IDT_MSG_UUID_LEN) != 0)
            return false;
    return true;
}

/* Remove an entry from its table and lists. */
static void unlink_entry (struct rpc_track *p, struct rpc_track_entry *e)
{
    table_remove (&p->entries, &e->link);
    LIST_REMOVE (e, in_requester);
    LIST_REMOVE (e, in_asked);
    LIST_REMOVE (e, in_owes);
    budget_release (&e->requester->account, 1, entry_size (e), 0);
    forget_idle_requester (p, e->requester);
}

static struct rpc_track_entry *find (struct rpc_track *p, const idt_msg_t *msg, const struct rpc_track_party *to)
{
    const char *oldest = idt_msg_route_oldest (msg);
    uint32_t tag = idt_msg_matchtag (msg);
    uint64_t hash;
    struct link *l;

    if (!oldest)
        return NULL;
    hash = uuid_key_mix (uuid_key (p->seed, oldest), tag);
    for (l = *table_bucket (&p->entries, hash); l; l = l->next) {
        struct rpc_track_entry *e = (struct rpc_track_entry *)l;

        if (l->hash == hash && e->tag == tag && e->to == to && same_routes (e, msg))
            return e;
    }
    return NULL;
}

/* --- the table ----------------------------------------------------------------------------------- */

int rpc_track_add (struct rpc_track *p, const idt_msg_t *request, struct rpc_track_party *from,
                   struct rpc_track_party *to)
{
    const char *oldest = idt_msg_route_oldest (request);
    uint64_t hash = uuid_key (p->seed, oldest);
    struct track_requester *a = find_or_add_requester (p, oldest, hash);
    struct rpc_track_entry *e = entry_create (p, request);
    int errnum = ENOMEM;

    assert (oldest);
    if (!a || !e)
        goto error;
    if (budget_charge (&a->account, entry_size (e), 0) == BUDGET_FULL) {
        errnum = EXFULL;
        goto error;
    }
    e->requester = a;
    e->from = from;
    e->to = to;
    e->link.hash = uuid_key_mix (hash, e->tag);
    table_add (&p->entries, &e->link);
    LIST_INSERT_HEAD (&a->entries, e, in_requester);
    LIST_INSERT_HEAD (&from->asked, e, in_asked);
    LIST_INSERT_HEAD (&to->owes, e, in_owes);
    return 0;
error:
    if (a)
        forget_idle_requester (p, a);
    entry_free (p, e);
    return errset (errnum);
}

static bool remove_found (struct rpc_track *p, struct rpc_track_entry *e)
{
    if (!e)
        return false;
    unlink_entry (p, e);
    entry_free (p, e);
    return true;
}

/* Whether 'response' is the last one.  The last response to a streaming request has an error (RFC 6) or no STREAMING
 * flag.
 */
static bool is_final (const struct rpc_track_entry *e, const idt_msg_t *response)
{
    return !(e->flags & idt_msg_flags (response) & IDT_MSGFLAG_STREAMING) || idt_msg_errnum (response) != 0;
}

bool rpc_track_answered (struct rpc_track *p, const idt_msg_t *response, const struct rpc_track_party *from)
{
    struct rpc_track_entry *e = find (p, response, from);

    if (e && !is_final (e, response))
        return true;
    return remove_found (p, e);
}

bool rpc_track_forget (struct rpc_track *p, const idt_msg_t *request, const struct rpc_track_party *to)
{
    return remove_found (p, find (p, request, to));
}

static bool same_service (const char *topic, const char *service, size_t len)
{
    return strncmp (topic, service, len) == 0 && (topic[len] == '.' || topic[len] == '\0');
}

void rpc_track_disconnect (struct rpc_track *p, const idt_msg_t *disconnect, const struct rpc_track_party *from)
{
    const char *oldest = idt_msg_route_oldest (disconnect), *topic = idt_msg_topic (disconnect);
    struct track_requester *a = find_requester (p, oldest, uuid_key (p->seed, oldest));
    struct rpc_track_entry *e = a ? LIST_FIRST (&a->entries) : NULL, *next;

    for (; e; e = next) {
        next = LIST_NEXT (e, in_requester);
        if (e->from == from && same_service (entry_topic (e), topic, strcspn (topic, ".")))
            remove_found (p, e);
    }
}

/* All entries are removed before the first callback.  The removed entries are a list that uses the member 'link'. */
void rpc_track_take (struct rpc_track *p, struct rpc_track_list *list, rpc_track_f cb, void *arg)
{
    struct link *taken = NULL;
    struct rpc_track_entry *e;

    while ((e = LIST_FIRST (list))) {
        unlink_entry (p, e);
        e->link.next = taken;
        taken = &e->link;
    }
    while ((e = (struct rpc_track_entry *)taken)) {
        idt_msg_t *request = cb ? entry_request (e) : NULL;

        taken = taken->next;
        if (request)
            cb (request, e->to, arg);
        idt_msg_unref (request);
        entry_free (p, e);
    }
}

/* --- life ---------------------------------------------------------------------------------------- */

void rpc_track_party_init (struct rpc_track_party *party, void *owner)
{
    LIST_INIT (&party->asked);
    LIST_INIT (&party->owes);
    party->owner = owner;
}

struct rpc_track *rpc_track_create (size_t max)
{
    struct rpc_track *p = calloc (1, sizeof (*p));

    if (!p || table_init (&p->entries) < 0 || table_init (&p->requesters) < 0) {
        rpc_track_destroy (p);
        return errset_null (ENOMEM);
    }
    freelist_init (&p->spare_requesters, sizeof (struct track_requester));
    freelist_init (&p->spare_entries, ENTRY_SIZE);
    p->pool.max_items = max;
    p->pool.max_bytes = max * BYTES_PER_ENTRY + MIN_BYTES;
    if (getrandom (&p->seed, sizeof (p->seed), GRND_NONBLOCK) < 0)
        p->seed = (uintptr_t)p;
    return p;
}

static void table_fini (struct table *t)
{
    for (size_t i = 0; t->buckets && i < t->nbuckets; i++) {
        for (struct link *l = t->buckets[i], *next; l; l = next) {
            next = l->next;
            free (l);
        }
    }
    free (t->buckets);
}

void rpc_track_destroy (struct rpc_track *p)
{
    if (!p)
        return;
    table_fini (&p->entries);
    table_fini (&p->requesters);
    freelist_fini (&p->spare_requesters);
    freelist_fini (&p->spare_entries);
    free (p);
}

size_t rpc_track_count (const struct rpc_track *p)
{
    return p->entries.count;
}

size_t rpc_track_buckets (const struct rpc_track *p)
{
    return p->entries.nbuckets;
}
