/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* window.c - both ends of a link's credit */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "broker/overlay/window.h"
#include "libutil/be.h"

void window_open (struct window *w, bool credits, uint64_t bytes, uint32_t messages)
{
    memset (w, 0, sizeof (*w));
    w->credits = credits;
    w->size[CLASS_ANSWER] = (struct total){ messages * 4 / 9, bytes / 2 };
    w->size[CLASS_EVENT] = (struct total){ messages * 4 / 9, bytes / 4 };
    w->size[CLASS_ASK] = (struct total){ messages / 9, bytes / 4 };
}

/* Whether a total is below a limit. */
static bool is_below (const struct total *t, const struct total *limit)
{
    return (int32_t)(limit->messages - t->messages) > 0 && t->bytes < limit->bytes;
}

static void add (struct total *t, size_t bytes)
{
    t->messages++;
    t->bytes += bytes;
}

bool window_may_send (const struct window *w, enum link_class c)
{
    return !w->credits || c == CLASS_CONTROL || is_below (&w->sent[c], &w->limit[c]);
}

void window_sent (struct window *w, enum link_class c, size_t bytes)
{
    add (&w->sent[c], bytes);
}

int window_received (struct window *w, enum link_class c, size_t bytes)
{
    if (w->credits && c != CLASS_CONTROL && !is_below (&w->received[c], &w->granted[c]))
        return errset (EPROTO);
    add (&w->received[c], bytes);
    return 0;
}

/* Classes of a newer version are ignored. */
static int take_record (struct window *w, const uint8_t *p)
{
    struct total t = { (uint32_t)get_be (p + 4, 4), get_be (p + 8, 8) };
    struct total *limit = p[0] < CLASS_COUNT ? &w->limit[p[0]] : NULL;

    if (!limit)
        return 0;
    if ((int32_t)(t.messages - limit->messages) < 0 || t.bytes < limit->bytes)
        return errset (EPROTO);
    *limit = t;
    return 0;
}

int window_granted (struct window *w, const void *payload, size_t size)
{
    const uint8_t *p = payload;

    if (size % WINDOW_RECORD != 0)
        return errset (EPROTO);
    for (; size > 0; p += WINDOW_RECORD, size -= WINDOW_RECORD)
        if (take_record (w, p) < 0)
            return -1;
    return 0;
}

/* Whether a quarter of a window is used up. */
static bool is_due (const struct window *w, enum link_class c)
{
    const struct total *size = &w->size[c], *received = &w->received[c], *granted = &w->granted[c];

    return (int32_t)(received->messages + size->messages - granted->messages) >= (int32_t)(size->messages / 4 + 1)
           || received->bytes + size->bytes - granted->bytes >= size->bytes / 4 + 1;
}

size_t window_grant (struct window *w, uint8_t payload[WINDOW_GRANT_SIZE])
{
    uint8_t *p = payload;

    for (enum link_class c = CLASS_CONTROL + 1; w->credits && c < CLASS_COUNT; c++) {
        if (!is_due (w, c))
            continue;
        w->granted[c].messages = w->received[c].messages + w->size[c].messages;
        w->granted[c].bytes = w->received[c].bytes + w->size[c].bytes;
        memset (p, 0, WINDOW_RECORD);
        p[0] = c;
        put_be (p + 4, 4, w->granted[c].messages);
        put_be (p + 8, 8, w->granted[c].bytes);
        p += WINDOW_RECORD;
    }
    return p - payload;
}
