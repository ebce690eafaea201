/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* hops.c - the ranks that a request went through
 *
 * No broker knows the UUIDs of all brokers, and each broker's parent knows it by another UUID.  But all hops are
 * ancestors of one end of the route or of the other, as they are attached now.  So each rank on the two lines up to
 * rank 0 gets a request, unless it has answered one before.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <idtree/msg.h>
#include <idtree/rpc.h>

#include "cmd/hops.h"

#define TIMEOUT_MS 1000 /* for a broker that was on the route a moment ago */
#define HOPS_MAX 1024   /* ranks on two lines up to rank 0 */

struct hop {
    char uuid[IDT_MSG_UUID_LEN + 1]; /* the broker's UUID as its children know it */
    char up[IDT_MSG_UUID_LEN + 1];   /* and as its parent knows it */
    uint32_t rank;
};

struct hops {
    idt_t *h;
    struct hop known[HOPS_MAX];
    size_t count;
};

struct hops *hops_create (idt_t *h)
{
    struct hops *hops = calloc (1, sizeof (*hops));

    if (hops)
        hops->h = h;
    return hops;
}

void hops_destroy (struct hops *hops)
{
    free (hops);
}

/* --- asking --------------------------------------------------------------------------------- */

static const struct hop *find_rank (const struct hops *hops, uint32_t rank)
{
    for (size_t i = 0; i < hops->count; i++)
        if (hops->known[i].rank == rank)
            return &hops->known[i];
    return NULL;
}

/* Get the UUIDs and the parent of a rank (-1: none).  Returns false if it does not answer. */
static bool ask (struct hops *hops, uint32_t rank, json_int_t *parent)
{
    struct hop *hop = &hops->known[hops->count];
    idt_future_t *uuid = idt_rpc_pack (hops->h, "attr.get", rank, 0, "{s:s}", "name", "broker.uuid");
    idt_future_t *up = idt_rpc (hops->h, "overlay.stats-get", NULL, rank, 0);
    json_t *o = NULL, *name = NULL;
    const char *s;
    bool answered = uuid && up && idt_future_wait (uuid, TIMEOUT_MS) == 0 && idt_future_wait (up, TIMEOUT_MS) == 0
                    && idt_rpc_get_unpack (uuid, "{s:s}", "value", &s) == 0
                    && idt_rpc_get_unpack (up, "{s:o s:o}", "parent-rank", &o, "parent-hop", &name) == 0;

    if (answered) {
        snprintf (hop->uuid, sizeof (hop->uuid), "%s", s);
        snprintf (hop->up, sizeof (hop->up), "%s", json_is_string (name) ? json_string_value (name) : "-");
        hop->rank = rank;
        hops->count++;
        *parent = json_is_integer (o) ? json_integer_value (o) : -1;
    }
    idt_future_destroy (uuid);
    idt_future_destroy (up);
    return answered;
}

static void ask_line (struct hops *hops, uint32_t rank)
{
    json_int_t parent;

    while (hops->count < HOPS_MAX && !find_rank (hops, rank) && ask (hops, rank, &parent) && parent >= 0)
        rank = (uint32_t)parent;
}

/* --- text ----------------------------------------------------------------------------------- */

static const struct hop *find_uuid (const struct hops *hops, const char *s, size_t len)
{
    for (size_t i = 0; i < hops->count; i++)
        if (strncmp (hops->known[i].uuid, s, len) == 0 || strncmp (hops->known[i].up, s, len) == 0)
            return &hops->known[i];
    return NULL;
}

static size_t append (char text[HOPS_TEXT], size_t n, const char *s, size_t len)
{
    int more = snprintf (text + n, HOPS_TEXT - n, "%.*s!", (int)len, s);

    return more > 0 && n + (size_t)more < HOPS_TEXT ? n + (size_t)more : n;
}

/* Returns whether all hops are known. */
static bool write_text (const struct hops *hops, const char *route, uint32_t rank, char text[HOPS_TEXT])
{
    const char *s = route + strcspn (route, "!");
    bool all = true;
    size_t n = 0;
    char number[16];

    while (*s == '!') {
        size_t len = strcspn (++s, "!");
        const struct hop *hop = find_uuid (hops, s, len);

        if (hop)
            snprintf (number, sizeof (number), "%" PRIu32, hop->rank);
        n = hop ? append (text, n, number, strlen (number)) : append (text, n, s, len);
        all = all && hop;
        s += len;
    }
    snprintf (number, sizeof (number), "%" PRIu32, rank);
    n = append (text, n, number, strlen (number));
    text[n > 0 ? n - 1 : 0] = '\0';
    return all;
}

const char *hops_text (struct hops *hops, const char *route, uint32_t rank, char text[HOPS_TEXT])
{
    uint32_t own;

    if (write_text (hops, route, rank, text) || idt_get_rank (hops->h, &own) < 0)
        return text;
    hops->count = 0; /* a changed tree: ask all again */
    ask_line (hops, own);
    ask_line (hops, rank);
    write_text (hops, route, rank, text);
    return text;
}
