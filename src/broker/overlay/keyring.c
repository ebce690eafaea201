/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* keyring.c - the public keys of a broker's descendants
 *
 * A broker gets the keys of its children at boot.  The children of a broker send the keys of all other descendants.
 * The broker passes on new keys.  Each change of a key has a number.  The keyring remembers the last few brokers that
 * this broker was attached to.  For each of them it stores a number: that broker knows all changes up to this number.
 * So keys are sent up once, and sent again only to a broker that does not have them.
 *
 * Entries are found by rank and by key, through lists in buckets.  There are as many buckets as allocated entries.
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <idtree/msg.h>

#include "broker/overlay/link.h"

#define NONE UINT32_MAX
#define KNOWERS 4 /* number of brokers that are remembered: the parent and its substitutes */

struct key_entry {
    struct control_key key;
    uint32_t next_rank, next_key; /* index of the next entry in the same bucket */
    uint64_t change;
};

struct knower {
    char uuid[IDT_MSG_UUID_LEN + 1];
    uint64_t change; /* the broker knows all changes up to this one */
};

struct keyring {
    struct key_entry *entries;
    uint32_t *by_rank, *by_key; /* index of the first entry in each bucket */
    uint32_t count;
    uint32_t size;   /* a power of two, or 0 */
    uint64_t change; /* number of the newest change */
    uint64_t known;  /* from the start, all ancestors know the changes up to this one */

    struct knower knowers[KNOWERS];
    unsigned joined; /* index in 'knowers' of the broker to which keys are sent */
    unsigned oldest;
    uint64_t taken;  /* all changes up to this one were taken for this broker */
    uint64_t taking; /* value of 'taken' after the current pass over all entries */
    uint32_t next;   /* next entry of the current pass; 0: there is no pass */
    uint64_t nsent;
};

struct keyring *keyring_create (void)
{
    return calloc (1, sizeof (struct keyring));
}

void keyring_destroy (struct keyring *kr)
{
    if (kr) {
        free (kr->entries);
        free (kr->by_rank);
        free (kr->by_key);
        free (kr);
    }
}

/* --- entries ---------------------------------------------------------------------------------------- */

static uint32_t *bucket_of_rank (const struct keyring *kr, uint32_t rank)
{
    return &kr->by_rank[rank & (kr->size - 1)];
}

/* The bytes of a key are random, so some of them are used as its hash. */
static uint32_t *bucket_of_key (const struct keyring *kr, const uint8_t key[CONTROL_KEY_SIZE])
{
    uint32_t x;

    memcpy (&x, key, sizeof (x));
    return &kr->by_key[x & (kr->size - 1)];
}

static struct key_entry *find_rank (const struct keyring *kr, uint32_t rank)
{
    for (uint32_t i = kr->size > 0 ? *bucket_of_rank (kr, rank) : NONE; i != NONE; i = kr->entries[i].next_rank)
        if (kr->entries[i].key.rank == rank)
            return &kr->entries[i];
    return NULL;
}

static void link_rank (struct keyring *kr, uint32_t i)
{
    uint32_t *bucket = bucket_of_rank (kr, kr->entries[i].key.rank);

    kr->entries[i].next_rank = *bucket;
    *bucket = i;
}

static void link_key (struct keyring *kr, uint32_t i)
{
    uint32_t *bucket = bucket_of_key (kr, kr->entries[i].key.key);

    kr->entries[i].next_key = *bucket;
    *bucket = i;
}

static void unlink_key (struct keyring *kr, uint32_t i)
{
    uint32_t *at = bucket_of_key (kr, kr->entries[i].key.key);

    while (*at != i)
        at = &kr->entries[*at].next_key;
    *at = kr->entries[i].next_key;
}

static void link_all (struct keyring *kr)
{
    memset (kr->by_rank, 0xff, kr->size * sizeof (kr->by_rank[0])); /* each entry becomes NONE */
    memset (kr->by_key, 0xff, kr->size * sizeof (kr->by_key[0]));
    for (uint32_t i = 0; i < kr->count; i++) {
        link_rank (kr, i);
        link_key (kr, i);
    }
}

static bool grow (struct keyring *kr)
{
    uint32_t size = kr->size > 0 ? kr->size * 2 : 64;
    struct key_entry *entries = realloc (kr->entries, size * sizeof (entries[0]));
    uint32_t *by_rank = malloc (size * sizeof (by_rank[0])), *by_key = malloc (size * sizeof (by_key[0]));

    if (entries)
        kr->entries = entries;
    if (!entries || !by_rank || !by_key) {
        free (by_rank);
        free (by_key);
        return false;
    }
    free (kr->by_rank);
    free (kr->by_key);
    kr->by_rank = by_rank;
    kr->by_key = by_key;
    kr->size = size;
    link_all (kr);
    return true;
}

static void add (struct keyring *kr, const struct control_key *key)
{
    assert (kr->count < kr->size);
    kr->entries[kr->count] = (struct key_entry){ .key = *key, .change = ++kr->change };
    link_rank (kr, kr->count);
    link_key (kr, kr->count++);
}

static void replace (struct keyring *kr, struct key_entry *e, const struct control_key *key)
{
    uint32_t i = (uint32_t)(e - kr->entries);

    unlink_key (kr, i);
    e->key = *key;
    e->change = ++kr->change;
    link_key (kr, i);
}

/* A key belongs to one rank only.  Otherwise a broker could report the key of one rank as the key of a second rank, and
 * so lock out the first rank.
 */
bool keyring_put (struct keyring *kr, const struct control_key *key)
{
    struct key_entry *e = find_rank (kr, key->rank);

    if (keyring_find (kr, key->key) != TOPO_NONE)
        return false;
    if (!e && kr->count == kr->size && !grow (kr))
        return false;
    if (e)
        replace (kr, e, key);
    else
        add (kr, key);
    return true;
}

uint32_t keyring_find (const struct keyring *kr, const uint8_t key[CONTROL_KEY_SIZE])
{
    for (uint32_t i = kr->size > 0 ? *bucket_of_key (kr, key) : NONE; i != NONE; i = kr->entries[i].next_key)
        if (memcmp (kr->entries[i].key.key, key, CONTROL_KEY_SIZE) == 0)
            return kr->entries[i].key.rank;
    return TOPO_NONE;
}

uint32_t keyring_count (const struct keyring *kr)
{
    return kr->count;
}

uint64_t keyring_sent (const struct keyring *kr)
{
    return kr->nsent;
}

uint64_t keyring_pending (const struct keyring *kr)
{
    return kr->change - kr->knowers[kr->joined].change;
}

/* --- brokers above ----------------------------------------------------------------------------------- */

static unsigned find_knower (struct keyring *kr, const char *uuid)
{
    for (unsigned i = 0; i < KNOWERS; i++)
        if (strcmp (kr->knowers[i].uuid, uuid) == 0)
            return i;
    unsigned i = kr->oldest++ % KNOWERS;
    kr->knowers[i].change = kr->known;
    memcpy (kr->knowers[i].uuid, uuid, sizeof (kr->knowers[i].uuid));
    return i;
}

void keyring_known (struct keyring *kr)
{
    kr->known = kr->change;
    for (unsigned i = 0; i < KNOWERS; i++)
        kr->knowers[i].change = kr->known;
}

void keyring_join (struct keyring *kr, const char uuid[IDT_MSG_UUID_LEN + 1])
{
    kr->joined = find_knower (kr, uuid);
    keyring_again (kr);
}

idt_msg_t *keyring_take_news (struct keyring *kr)
{
    struct control_key keys[KEYRING_MESSAGE];
    idt_msg_t *msg;
    size_t n = 0;

    if (kr->next == 0 && kr->taken == kr->change)
        return NULL;
    if (kr->next == 0)
        kr->taking = kr->change;
    for (; n < KEYRING_MESSAGE && kr->next < kr->count; kr->next++)
        if (kr->entries[kr->next].change > kr->taken && kr->entries[kr->next].change <= kr->taking)
            keys[n++] = kr->entries[kr->next].key;
    if (kr->next == kr->count) {
        kr->next = 0;
        kr->taken = kr->taking;
    }
    assert (kr->taken <= kr->change && kr->next <= kr->count);
    if (n == 0)
        return NULL;
    if (!(msg = control_encode_keys (keys, n))) {
        keyring_again (kr);
        return NULL;
    }
    kr->nsent += n;
    return msg;
}

void keyring_again (struct keyring *kr)
{
    kr->taken = kr->knowers[kr->joined].change;
    kr->next = 0;
}

void keyring_arrived (struct keyring *kr)
{
    assert (kr->knowers[kr->joined].change <= kr->taken && kr->taken <= kr->change);
    kr->knowers[kr->joined].change = kr->taken;
}
