/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* stats.c - add up the counters of many ranks */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/base/out.h"
#include "cmd/base/ranks.h"
#include "cmd/inspect/stats.h"

/* --- adding ----------------------------------------------------------------------------------------- */

/* Whether the number under 'key' is a name, which is not added. */
static bool is_name (const char *key)
{
    static const char *const names[] = { "seq", "generator", "fingerprint", "drift" };
    size_t len = strlen (key);

    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++)
        if (!strcmp (key, names[i]))
            return true;
    return len >= 4 && !strcmp (key + len - 4, "rank");
}

static bool is_extreme (const char *key)
{
    return !strncmp (key, "longest", 7) || !strncmp (key, "max", 3);
}

static json_t *number_new (const char *key, const json_t *a, const json_t *b)
{
    double x = json_number_value (a), y = json_number_value (b);

    if (is_extreme (key))
        return json_copy ((json_t *)(x > y ? a : b));
    if (json_is_integer (a) && json_is_integer (b))
        return json_integer (json_integer_value (a) + json_integer_value (b));
    return json_real (x + y);
}

static void add_member (json_t *sum, const char *key, json_t *value)
{
    json_t *had = json_object_get (sum, key);

    if (json_is_object (value)) {
        if (!had)
            json_object_set_new (sum, key, had = json_object ());
        stats_add (had, value);
    }
    else if (!had)
        json_object_set_new (sum, key, json_copy (value));
    else if (json_is_number (had) && json_is_number (value) && !is_name (key))
        json_object_set_new (sum, key, number_new (key, had, value));
    else if (!json_equal (had, value))
        json_object_set_new (sum, key, json_null ());
}

void stats_add (json_t *sum, const json_t *o)
{
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)o, key, value)
        if (!json_is_array (value))
            add_member (sum, key, value);
}

/* --- asking ------------------------------------------------------------------------------------------ */

struct stats {
    json_t *sum;
    json_t *failed;   /* ranks_note () */
    json_t *answered; /* array of ranks */
};

static void take (uint32_t rank, idt_future_t *f, void *arg)
{
    struct stats *s = arg;
    json_t *o = NULL;
    const char *text;

    if (ranks_note (s->failed, rank, f))
        return;
    if (idt_rpc_get (f, &text) == 0 && text && (o = json_loads (text, 0, NULL)))
        stats_add (s->sum, o);
    json_array_append_new (s->answered, json_integer (rank));
    json_decref (o);
}

static json_t *report_new (struct cmd *cmd, const struct stats *s)
{
    json_t *o = json_pack ("{s:o s:O}", "ranks", ranks_text_new (cmd, s->answered), "sum", s->sum);

    if (json_object_size (s->failed) > 0)
        json_object_set_new (o, "failed", ranks_noted_new (cmd, s->failed));
    return o;
}

/* Print for people: the ranks, then the sums; a rank without an answer is a warning. */
static void print_text (const struct cmd *cmd, const json_t *report)
{
    json_t *o = json_pack ("{s:O}", "ranks", json_object_get (report, "ranks")), *ranks;
    const char *why;

    json_object_update (o, json_object_get (report, "sum"));
    ask_print_members (o, "", 0, ASK_REALS | JSON_COMPACT);
    json_object_foreach (json_object_get (report, "failed"), why, ranks)
        cmd_warn (cmd, "ranks %s: %s", json_string_value (ranks), why);
    json_decref (o);
}

int stats_print (struct cmd *cmd, const char *text, const char *topic, bool json)
{
    struct stats s = { .sum = json_object (), .failed = json_object (), .answered = json_array () };
    struct ranks ranks = ranks_read (cmd, text);

    ranks_ask (cmd, &ranks, topic, NULL, take, &s);
    json_t *o = report_new (cmd, &s);
    (json ? ask_print : print_text) (cmd, o);
    int status = json_object_size (s.failed) > 0 ? CMD_FAILED : CMD_OK;
    json_decref (o);
    json_decref (s.sum);
    json_decref (s.failed);
    json_decref (s.answered);
    ranks_fini (&ranks);
    return status;
}
