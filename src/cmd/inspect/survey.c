/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* survey.c - get the merged report of a subtree with one request */
#include <errno.h>
#include <stdlib.h>

#include "cmd/inspect/survey.h"

#define LONGEST_MS 600000.      /* the longest that a broker waits for the ranks below it */
#define PART_OF_TIMEOUT 7. / 8. /* the rest is left for the answer's way back */

json_t *survey_question_new (const struct cmd *cmd, uint32_t rank)
{
    double ms = cmd->timeout_ms * PART_OF_TIMEOUT;

    ms = ms < 0 || ms > LONGEST_MS ? LONGEST_MS : ms < 1 ? 1 : ms;
    json_t *question = json_pack ("{s:I s:I}", "rank", (json_int_t)rank, "timeout_ms", (json_int_t)ms);
    if (!question)
        cmd_die (cmd, "out of memory");
    return question;
}

/* A broker that does not know the request answers a guest with EPERM, as for requests of the owner only. */
json_t *survey_new (struct cmd *cmd, json_t *question, const char *what)
{
    idt_future_t *f = ask_ready (cmd, ask_send (cmd, "metrics.get", IDT_NODEID_ANY, question), what);

    if (idt_future_errnum (f) != ENOSYS && idt_future_errnum (f) != EPERM)
        return ask_take_new (cmd, f, what);
    idt_future_destroy (f);
    return NULL;
}

json_t *survey_topology_new (struct cmd *cmd, uint32_t rank)
{
    return ask_new (cmd, "overlay.topology", IDT_NODEID_ANY, json_pack ("{s:I}", "rank", (json_int_t)rank), "topology");
}

static void add_subtree (struct ranks *ranks, size_t room, const json_t *o)
{
    json_t *child;
    size_t i;

    if (ranks->n < room)
        ranks->rank[ranks->n++] = (uint32_t)json_integer_value (json_object_get (o, "rank"));
    json_array_foreach (json_object_get (o, "children"), i, child)
        add_subtree (ranks, room, child);
}

static int by_number (const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

struct ranks survey_subtree (struct cmd *cmd, uint32_t rank)
{
    json_t *o = survey_topology_new (cmd, rank);
    size_t size = (size_t)json_integer_value (json_object_get (o, "size"));
    struct ranks ranks = { .rank = calloc (size + 1, sizeof (ranks.rank[0])) };

    if (!ranks.rank)
        cmd_die (cmd, "out of memory");
    add_subtree (&ranks, size, o);
    qsort (ranks.rank, ranks.n, sizeof (ranks.rank[0]), by_number);
    json_decref (o);
    return ranks;
}
