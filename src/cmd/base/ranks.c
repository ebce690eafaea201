/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ranks.c - read the ranks that an option names, and send a request to each */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/base/ranks.h"
#include "libutil/clock.h"
#include "libutil/text.h"

#define WINDOW 512 /* requests in flight */

bool ranks_are_many (const char *text)
{
    return text && strspn (text, "0123456789") != strlen (text);
}

static bool names (const char *text, uint32_t rank)
{
    return !strcmp (text, "all") || ranges_have (text, rank) > 0;
}

/* Check that 'text' is a list of ranks, or "all", of this instance; ends the program if not.  Returns the size of the
 * instance.
 */
static uint32_t check (struct cmd *cmd, const char *text)
{
    char quoted[CMD_QUOTE_MAX];
    uint32_t size, last = 0;
    int any = strcmp (text, "all") ? ranges_last (text, &last) : 1;

    if (any <= 0)
        cmd_usage (cmd, "'%s': ranks such as 0-3,17 are needed, or all", cmd_quote (text, strlen (text), quoted));
    if (idt_get_size (cmd_connect_for (cmd, last), &size) < 0)
        cmd_die (cmd, "size: %s", strerror (errno));
    return size;
}

struct ranks ranks_read (struct cmd *cmd, const char *text)
{
    uint32_t size = check (cmd, text);
    struct ranks r = { .rank = calloc (size, sizeof (r.rank[0])) };

    if (!r.rank)
        cmd_die (cmd, "out of memory");
    for (uint32_t rank = 0; rank < size; rank++)
        if (names (text, rank))
            r.rank[r.n++] = rank;
    return r;
}

void ranks_fini (struct ranks *r)
{
    free (r->rank);
}

/* --- questions ------------------------------------------------------------------------------------ */

struct asked_rank {
    idt_future_t *f;
    uint64_t at_ms;
};

static void ask (struct cmd *cmd, struct asked_rank *a, const char *topic, json_t *request, uint32_t rank)
{
    a->at_ms = clock_ms (CLOCK_MONOTONIC);
    if (!(a->f = ask_send (cmd, topic, rank, json_incref (request))))
        cmd_die (cmd, "cannot send: %s", strerror (errno));
}

void ranks_ask (struct cmd *cmd, const struct ranks *r, const char *topic, json_t *request, ranks_f take, void *arg)
{
    struct asked_rank window[WINDOW];
    size_t sent = 0;

    for (size_t i = 0; i < r->n; i++) {
        for (; sent < r->n && sent < i + WINDOW; sent++)
            ask (cmd, &window[sent % WINDOW], topic, request, r->rank[sent]);
        struct asked_rank *a = &window[i % WINDOW];
        take (r->rank[i], idt_future_wait (a->f, ask_left_ms (cmd, a->at_ms)) == 0 ? a->f : NULL, arg);
        idt_future_destroy (a->f);
    }
}

/* --- ranks that failed ------------------------------------------------------------------------------ */

bool ranks_note (json_t *failed, uint32_t rank, const idt_future_t *f)
{
    const char *why = !f ? "no answer" : idt_future_errnum (f) ? idt_future_error (f) : NULL;
    json_t *ranks = why ? json_object_get (failed, why) : NULL;

    if (why && !ranks)
        json_object_set_new (failed, why, ranks = json_array ());
    if (why)
        json_array_append_new (ranks, json_integer (rank));
    return why != NULL;
}

json_t *ranks_text_new (struct cmd *cmd, const json_t *ranks)
{
    size_t n = json_array_size (ranks);
    uint32_t *rank = calloc (n + 1, sizeof (rank[0]));

    for (size_t i = 0; rank && i < n; i++)
        rank[i] = (uint32_t)json_integer_value (json_array_get (ranks, i));
    char *ranges = rank ? ranges_format (rank, n) : NULL;
    json_t *text = ranges ? json_string (ranges) : NULL;
    if (!text)
        cmd_die (cmd, "out of memory");
    free (ranges);
    free (rank);
    return text;
}

json_t *ranks_noted_new (struct cmd *cmd, const json_t *failed)
{
    json_t *noted = json_object (), *ranks;
    const char *why;

    json_object_foreach ((json_t *)failed, why, ranks)
        json_object_set_new (noted, why, ranks_text_new (cmd, ranks));
    return noted;
}
