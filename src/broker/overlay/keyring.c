/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* keyring.c - the public keys of a broker's descendants
 *
 * A broker learns its children's keys at boot and the others' from its children; it passes on what is news.  Ranks
 * below it are few in most brokers and at most all in the root: an array, searched when a connection is made.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "broker/overlay/link.h"

struct entry {
    struct control_key key;
    bool is_news;
};

struct keyring {
    struct entry *entries;
    size_t count;
    size_t size;
    size_t news; /* entries that are */
};

struct keyring *keyring_create (void)
{
    return calloc (1, sizeof (struct keyring));
}

void keyring_destroy (struct keyring *kr)
{
    if (kr) {
        free (kr->entries);
        free (kr);
    }
}

static struct entry *find_rank (struct keyring *kr, uint32_t rank)
{
    for (size_t i = 0; i < kr->count; i++)
        if (kr->entries[i].key.rank == rank)
            return &kr->entries[i];
    return NULL;
}

static struct entry *add (struct keyring *kr)
{
    if (kr->count == kr->size) {
        size_t size = kr->size ? kr->size * 2 : 64;
        struct entry *entries = realloc (kr->entries, size * sizeof (entries[0]));

        if (!entries)
            return NULL;
        kr->entries = entries;
        kr->size = size;
    }
    memset (&kr->entries[kr->count], 0, sizeof (kr->entries[0]));
    return &kr->entries[kr->count++];
}

bool keyring_put (struct keyring *kr, const struct control_key *key)
{
    struct entry *e = find_rank (kr, key->rank);

    if (e && memcmp (e->key.key, key->key, CONTROL_KEY_SIZE) == 0)
        return false;
    if (!e && !(e = add (kr)))
        return false;
    e->key = *key;
    kr->news += !e->is_news;
    e->is_news = true;
    return true;
}

uint32_t keyring_find (const struct keyring *kr, const uint8_t key[CONTROL_KEY_SIZE])
{
    for (size_t i = 0; i < kr->count; i++)
        if (memcmp (kr->entries[i].key.key, key, CONTROL_KEY_SIZE) == 0)
            return kr->entries[i].key.rank;
    return TOPO_NONE;
}

void keyring_renew (struct keyring *kr)
{
    for (size_t i = 0; i < kr->count; i++)
        kr->entries[i].is_news = true;
    kr->news = kr->count;
}

idt_msg_t *keyring_take_news (struct keyring *kr)
{
    struct control_key keys[KEYRING_MESSAGE];
    size_t n = 0;

    for (size_t i = 0; kr->news > 0 && n < KEYRING_MESSAGE && i < kr->count; i++) {
        if (!kr->entries[i].is_news)
            continue;
        keys[n++] = kr->entries[i].key;
        kr->entries[i].is_news = false;
        kr->news--;
    }
    return n > 0 ? control_encode_keys (keys, n) : NULL;
}
