/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* params.c - parameters of a statement, in PostgreSQL's binary form
 *
 * An integer has 8 bytes, big-endian. An array has a header and then its elements, each after its size (-1: NULL). All
 * numbers are 32 bits, big-endian:
 *   dimensions (1; 0 if the array is empty), whether there may be NULLs, type of the elements, count, first index (1)
 * An empty array ends after the type.
 */
#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "libpg/params.h"

#define HEADER_SIZE 20
#define EMPTY_SIZE 12

static void put_u32 (char *at, uint32_t n)
{
    for (int i = 0; i < 4; i++)
        at[i] = (char)(n >> (24 - 8 * i));
}

static void put_u64 (char *at, uint64_t n)
{
    put_u32 (at, (uint32_t)(n >> 32));
    put_u32 (at + 4, (uint32_t)n);
}

/* --- parameters ---------------------------------------------------------------------------------------- */

static void put (struct pg_params *p, unsigned type, const void *value, size_t size)
{
    if (p->count == PG_PARAMS_MAX || size > INT_MAX) {
        p->failed = true;
        return;
    }
    p->value[p->count] = value;
    p->size[p->count] = (int)size;
    p->binary[p->count] = 1;
    p->type[p->count] = type;
    p->count++;
}

void pg_put_int (struct pg_params *p, int64_t value)
{
    if (p->count < PG_PARAMS_MAX)
        put_u64 (p->number[p->count], (uint64_t)value);
    put (p, PG_INT8, p->number[p->count < PG_PARAMS_MAX ? p->count : 0], 8);
}

void pg_put_text (struct pg_params *p, const char *text)
{
    put (p, PG_TEXT, text, text ? strlen (text) : 0);
}

void pg_put_bytes (struct pg_params *p, const void *bytes, size_t size)
{
    put (p, PG_BYTEA, bytes ? bytes : "", size);
}

/* --- arrays -------------------------------------------------------------------------------------------- */

/* The type of an array of 'type'. */
static unsigned array_type (enum pg_type type)
{
    switch (type) {
    case PG_BOOL:
        return 1000;
    case PG_BYTEA:
        return 1001;
    case PG_INT8:
        return 1016;
    case PG_TEXT:
        return 1009;
    }
    assert (0);
    return 0;
}

/* Make room for 'size' more bytes, and return the place; NULL if memory was short, now or before. */
static char *extend (struct pg_array *a, size_t size)
{
    size_t capacity = a->capacity ? a->capacity : 256;
    char *data;

    if (a->failed)
        return NULL;
    while (capacity - a->size < size)
        capacity *= 2;
    if (capacity > a->capacity) {
        if (!(data = realloc (a->data, capacity))) {
            a->failed = true;
            return NULL;
        }
        a->data = data;
        a->capacity = capacity;
    }
    data = a->data + a->size;
    a->size += size;
    return data;
}

void pg_array_init (struct pg_array *a, enum pg_type type)
{
    *a = (struct pg_array){ .type = type };
    extend (a, HEADER_SIZE);
}

void pg_array_fini (struct pg_array *a)
{
    free (a->data);
    *a = (struct pg_array){ 0 };
}

/* Add an element of 'size' bytes, and return their place; NULL if memory was short. */
static char *add (struct pg_array *a, size_t size)
{
    char *at;

    if (size > INT_MAX) {
        a->failed = true;
        return NULL;
    }
    if (!(at = extend (a, 4 + size)))
        return NULL;
    a->count++;
    put_u32 (at, (uint32_t)size);
    return at + 4;
}

void pg_array_int (struct pg_array *a, int64_t value)
{
    char *at;

    assert (a->type == PG_INT8 || a->type == PG_BOOL);
    if (!(at = add (a, a->type == PG_BOOL ? 1 : 8)))
        return;
    if (a->type == PG_BOOL)
        *at = value != 0;
    else
        put_u64 (at, (uint64_t)value);
}

void pg_array_bytes (struct pg_array *a, const void *bytes, size_t size)
{
    char *at;

    assert (a->type == PG_BYTEA || a->type == PG_TEXT);
    if ((at = add (a, size)) && size > 0)
        memcpy (at, bytes, size);
}

void pg_array_null (struct pg_array *a)
{
    char *at = extend (a, 4);

    if (!at)
        return;
    a->count++;
    put_u32 (at, UINT32_MAX);
}

void pg_put_array (struct pg_params *p, struct pg_array *a)
{
    if (a->failed) {
        p->failed = true;
        return;
    }
    put_u32 (a->data, a->count > 0);
    put_u32 (a->data + 4, 1);
    put_u32 (a->data + 8, a->type);
    put_u32 (a->data + 12, a->count);
    put_u32 (a->data + 16, 1);
    put (p, array_type (a->type), a->data, a->count > 0 ? a->size : EMPTY_SIZE);
}
