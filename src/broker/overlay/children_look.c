/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* children_look.c - descriptions of the children for overlay.health and messages */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "broker/overlay/children_private.h"
#include "libidtree/json_build.h"
#include "libutil/text.h"

#define MISSING_SHOWN 32 /* ranks of a kind */

static json_t *describe_link (const struct child *c)
{
    return link_describe (c->peer.rank, c->wire, &c->channel);
}

void children_describe_links (const struct children *down, json_t *links)
{
    for (uint32_t i = 0; i < down->total; i++)
        if (child_is_online (down->children[i]))
            json_array_append_new (links, describe_link (down->children[i]));
}

void children_add_load (const struct children *down, struct overlay_load *load)
{
    for (uint32_t i = 0; i < down->total; i++)
        if (child_is_online (down->children[i]))
            link_add_load (&down->children[i]->channel, load);
    load->adopted += children_adopted (down);
}

json_t *children_describe (const struct children *down)
{
    json_t *a = json_array ();

    for (uint32_t i = 0; i < down->count; i++) {
        const struct child *c = down->children[i];

        json_add_new (&a, json_pack ("{s:I s:s s:f}", "rank", (json_int_t)c->peer.rank, "status",
                                     health_name (c->health), "duration", link_now () - c->since));
    }
    return a;
}

static int compare_rank (const void *rank, const void *child)
{
    uint32_t a = *(const uint32_t *)rank, b = (*(struct child *const *)child)->peer.rank;

    return (a > b) - (a < b);
}

const char *overlay_child_status (const struct overlay *ov, uint32_t rank)
{
    const struct children *down = ov->down;
    struct child **c = bsearch (&rank, down->children, down->count, sizeof (down->children[0]), compare_rank);

    return c ? health_name ((*c)->health) : NULL;
}

/* Append the children of a kind to a sentence, at most MISSING_SHOWN: "rank 3", "ranks below [1,4-7] and 20 more". */
static size_t name_kind (const struct children *down, bool online, const char *what, char *buf, size_t size)
{
    uint32_t ranks[MISSING_SHOWN], count = 0, shown;
    char more[32] = "", *set;
    int n;

    for (uint32_t i = 0; i < down->count; i++) {
        const struct child *c = down->children[i];

        if (c->health != HEALTH_FULL && child_is_online (c) == online && count++ < MISSING_SHOWN)
            ranks[count - 1] = c->peer.rank;
    }
    shown = count < MISSING_SHOWN ? count : MISSING_SHOWN;
    if (count == 0 || !(set = ranges_format (ranks, shown)))
        return 0;
    if (count > shown)
        snprintf (more, sizeof (more), " and %u more", count - shown);
    n = snprintf (buf, size, "%s%s %s%s", count > 1 || online ? "ranks" : "rank", what, set, more);
    free (set);
    return n;
}

void children_name_missing (const struct children *down, char *buf, size_t size)
{
    char below[256];
    size_t n = name_kind (down, true, " below", below, sizeof (below)), len;

    buf[0] = '\0';
    len = name_kind (down, false, "", buf, size);
    if (n > 0 && len < size)
        snprintf (buf + len, size - len, "%s%s", len > 0 ? ", " : "", below);
}
