/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_table.c - jobs of a group that were put in, found by id and by key
 *
 * Open addressing: a table has at least twice as many slots as the group has jobs, so it always has an empty slot.
 */
#include <stdlib.h>
#include <string.h>

#include "modules/ingest/root/job_table.h"

static size_t hash_id (const struct job_table *t, uint64_t id)
{
    return (size_t)((id * UINT64_C (0x9e3779b97f4a7c15)) >> 32) & (t->slots - 1);
}

/* FNV-1a of user and key. */
static size_t hash_key (const struct job_table *t, const struct job *job)
{
    const unsigned char *key = job->key;
    uint64_t h = UINT64_C (0xcbf29ce484222325) ^ job->userid;

    for (size_t i = 0; i < job->key_size; i++)
        h = (h ^ key[i]) * UINT64_C (0x100000001b3);
    return hash_id (t, h);
}

static bool same_key (const struct job *a, const struct job *b)
{
    return a->userid == b->userid && a->key_size == b->key_size && memcmp (a->key, b->key, a->key_size) == 0;
}

static int make_room (struct job_table *t, size_t n)
{
    size_t slots = 64;

    while (slots < 2 * n)
        slots *= 2;
    job_table_fini (t);
    t->order = malloc ((slots / 2) * sizeof (*t->order));
    t->ids = calloc (slots, sizeof (*t->ids));
    t->keys = calloc (slots, sizeof (*t->keys));
    t->slots = slots;
    t->room = slots / 2;
    if (t->order && t->ids && t->keys)
        return 0;
    job_table_fini (t);
    return -1;
}

int job_table_begin (struct job_table *t, const struct job *job, size_t n)
{
    if (n > t->room) {
        if (make_room (t, n) < 0)
            return -1;
    }
    else if (t->count > 0) {
        memset (t->ids, 0, t->slots * sizeof (*t->ids));
        memset (t->keys, 0, t->slots * sizeof (*t->keys));
    }
    t->job = job;
    t->count = 0;
    return 0;
}

void job_table_fini (struct job_table *t)
{
    free (t->order);
    free (t->ids);
    free (t->keys);
    *t = (struct job_table){ 0 };
}

static uint32_t *find_id (const struct job_table *t, uint64_t id)
{
    size_t at = hash_id (t, id);

    while (t->ids[at] > 0 && t->job[t->ids[at] - 1].id != id)
        at = (at + 1) & (t->slots - 1);
    return &t->ids[at];
}

static uint32_t *find_key (const struct job_table *t, const struct job *job)
{
    size_t at = hash_key (t, job);

    while (t->keys[at] > 0 && !same_key (&t->job[t->keys[at] - 1], job))
        at = (at + 1) & (t->slots - 1);
    return &t->keys[at];
}

void job_table_put (struct job_table *t, size_t i)
{
    t->order[t->count++] = (uint32_t)i;
    *find_id (t, t->job[i].id) = (uint32_t)i + 1;
    if (t->job[i].key_size > 0)
        *find_key (t, &t->job[i]) = (uint32_t)i + 1;
}

bool job_table_has_id (const struct job_table *t, size_t i)
{
    return t->count > 0 && *find_id (t, t->job[i].id) > 0;
}

uint64_t job_table_find_key (const struct job_table *t, size_t i)
{
    uint32_t place = t->count > 0 ? *find_key (t, &t->job[i]) : 0;

    return place > 0 ? t->job[place - 1].id : 0;
}
