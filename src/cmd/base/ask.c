/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ask.c - send one request and return its answer, or end the program with a message
 *
 * If no answer arrives, this file probes in order the broker that the command is connected to, the broker of the rank,
 * and the service on that rank.  The first one that does not answer is named in the message.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/base/ask.h"
#include "cmd/base/out.h"
#include "libutil/clock.h"

#define PROBE_MS 2000. /* timeout of a ping after another request timed out */

/* Every answer counts, also an error, except EHOSTUNREACH. */

static bool answers (const struct cmd *cmd, const char *service, uint32_t nodeid)
{
    char topic[CMD_SERVICE_MAX + 8];

    snprintf (topic, sizeof (topic), "%s.ping", service);
    idt_future_t *f = idt_rpc (cmd->h, topic, "{}", nodeid, 0);
    bool ok = f && idt_future_wait (f, PROBE_MS) == 0 && idt_future_errnum (f) != EHOSTUNREACH;
    idt_future_destroy (f);
    return ok;
}

/* Write into 'buf' a sentence that names the broker or service that does not answer. */
static void blame (const struct cmd *cmd, char *buf, size_t size)
{
    const char *service = cmd->asked.service;
    uint32_t rank = cmd->asked.nodeid;
    char where[32] = "there";

    if (rank != IDT_NODEID_ANY)
        snprintf (where, sizeof (where), "of rank %" PRIu32, rank);
    if (!answers (cmd, "broker", IDT_NODEID_ANY))
        snprintf (buf, size, "the broker at %s does not answer: is it stopped, or overloaded?", cmd_uri (cmd));
    else if (rank != IDT_NODEID_ANY && !answers (cmd, "broker", rank))
        snprintf (buf, size, "rank %" PRIu32 " or a broker on the way to it does not answer; the broker at %s does",
                  rank, cmd_uri (cmd));
    else if (!answers (cmd, service, rank))
        snprintf (buf, size, "the service %s %s does not answer, its broker does (%s)", service, where, cmd_uri (cmd));
    else
        snprintf (buf, size,
                  "the service %s %s runs (%s), but waits for other ranks or services itself: idtree health shows "
                  "which",
                  service, where, cmd_uri (cmd));
}

void ask_blame (const struct cmd *cmd, const char *what)
{
    char who[512];

    blame (cmd, who, sizeof (who));
    cmd_die (cmd, "%s: no answer within %g s: %s", what, cmd->timeout_ms / 1000, who);
}

double ask_left_ms (const struct cmd *cmd, uint64_t since_ms)
{
    double gone_ms = (double)(clock_ms (CLOCK_MONOTONIC) - since_ms);

    if (cmd->timeout_ms < 0)
        return -1;
    return gone_ms < cmd->timeout_ms ? cmd->timeout_ms - gone_ms : 0;
}

/* --- requests ------------------------------------------------------------------------------------ */

void ask_note (struct cmd *cmd, const char *topic, uint32_t nodeid)
{
    const char *dot = strrchr (topic, '.');

    snprintf (cmd->asked.service, sizeof (cmd->asked.service), "%.*s", dot ? (int)(dot - topic) : (int)strlen (topic),
              topic);
    cmd->asked.nodeid = nodeid;
}

static idt_future_t *send_new (struct cmd *cmd, const char *topic, uint32_t nodeid, json_t *request, int flags)
{
    char *s = request ? json_dumps (request, JSON_COMPACT) : NULL;
    idt_future_t *f = idt_rpc (cmd_connect_for (cmd, nodeid), topic, s, nodeid, flags);

    ask_note (cmd, topic, nodeid);
    json_decref (request);
    free (s);
    return f;
}

idt_future_t *ask_send (struct cmd *cmd, const char *topic, uint32_t nodeid, json_t *request)
{
    return send_new (cmd, topic, nodeid, request, 0);
}

idt_future_t *ask_stream (struct cmd *cmd, const char *topic, uint32_t nodeid, json_t *request)
{
    return send_new (cmd, topic, nodeid, request, IDT_RPC_STREAMING);
}

/* --- answers ------------------------------------------------------------------------------------- */

static idt_future_t *wait_for (const struct cmd *cmd, idt_future_t *f, double timeout_ms, const char *what)
{
    if (f && idt_future_wait (f, timeout_ms) == 0)
        return f;
    if (f && errno == ETIMEDOUT)
        ask_blame (cmd, what);
    if (f && errno == ECONNRESET)
        cmd_die (cmd, "%s: the broker at %s closed the connection", what, cmd_uri (cmd));
    cmd_die (cmd, "%s: %s", what, strerror (errno));
}

idt_future_t *ask_ready (const struct cmd *cmd, idt_future_t *f, const char *what)
{
    return wait_for (cmd, f, cmd->timeout_ms, what);
}

idt_future_t *ask_next (const struct cmd *cmd, idt_future_t *f, const char *what)
{
    return wait_for (cmd, f, -1, what);
}

void ask_check_flux (const struct cmd *cmd, const idt_future_t *f, const char *what)
{
    if (f && idt_future_errnum (f) == ENOSYS && cmd->h && cmd_is_flux (cmd))
        cmd_die (cmd, "%s: %s: the broker at %s belongs to Flux, where idtree serves " ASK_IN_FLUX, what,
                 idt_future_error (f), cmd_uri (cmd));
}

idt_future_t *ask_wait (const struct cmd *cmd, idt_future_t *f, const char *what)
{
    ask_ready (cmd, f, what);
    ask_check_flux (cmd, f, what);
    if (idt_future_errnum (f))
        cmd_die (cmd, "%s: %s", what, idt_future_error (f));
    return f;
}

json_t *ask_take_new (const struct cmd *cmd, idt_future_t *f, const char *what)
{
    const char *answer;
    json_error_t error;
    json_t *o;

    if (idt_rpc_get (ask_wait (cmd, f, what), &answer) < 0)
        cmd_die (cmd, "%s: %s", what, strerror (errno));
    if (!(o = answer ? json_loads (answer, 0, &error) : json_object ()))
        cmd_die (cmd, "%s: the answer is not a JSON object: %s", what, error.text);
    idt_future_destroy (f);
    return o;
}

json_t *ask_new (struct cmd *cmd, const char *topic, uint32_t nodeid, json_t *request, const char *what)
{
    return ask_take_new (cmd, ask_send (cmd, topic, nodeid, request), what);
}

void ask_print (const struct cmd *cmd, const json_t *answer)
{
    if (out_json (answer, JSON_COMPACT | ASK_REALS) < 0)
        cmd_die (cmd, "out of memory");
    out_print ("\n");
    if (ferror (stdout))
        cmd_flush (cmd);
}

void ask_print_lines (const struct cmd *cmd, const json_t *array)
{
    size_t i;
    json_t *one;

    json_array_foreach ((json_t *)array, i, one)
        ask_print (cmd, one);
}

/* --- for people ------------------------------------------------------------------------------- */

#define LABEL_MAX 96

static bool is_scalar (const json_t *value)
{
    return !json_is_object (value) && !json_is_array (value);
}

/* Whether 'value' is an array with objects, which is printed as a table. */
static bool is_table (const json_t *value)
{
    return json_is_array (value) && json_is_object (json_array_get (value, 0));
}

/* A scalar as text, or a list of scalars joined with commas.  The caller frees it with free (). */
static char *text_new (const json_t *value, size_t flags)
{
    char *text = NULL;
    size_t size, i;
    json_t *one;

    if (json_is_string (value))
        return strdup (json_string_value (value));
    if (!value || json_is_null (value)
        || (!is_scalar (value) && json_array_size (value) + json_object_size (value) == 0))
        return strdup ("-");
    if (!json_is_array (value) || !is_scalar (json_array_get (value, 0)))
        return json_dumps (value, JSON_ENCODE_ANY | flags);
    FILE *f = open_memstream (&text, &size);
    json_array_foreach ((json_t *)value, i, one) {
        char *s = text_new (one, flags);

        if (f)
            fprintf (f, "%s%s", i > 0 ? ", " : "", s ? s : "?");
        free (s);
    }
    if (f)
        fclose (f);
    return text;
}

/* The width of a column in letters: its title or its longest value. */
static int column_width (const json_t *rows, const char *key, size_t flags)
{
    size_t width = strlen (key), i;
    json_t *row;

    json_array_foreach ((json_t *)rows, i, row) {
        char *s = text_new (json_object_get (row, key), flags);

        if (s && strlen (s) > width)
            width = strlen (s);
        free (s);
    }
    return (int)width;
}

/* Print one line of a table.  'row' NULL: print the titles. */
static void print_row (const json_t *rows, const json_t *keys, const json_t *row, size_t flags)
{
    const char *key, *between = "  ";
    json_t *value;

    json_object_foreach ((json_t *)keys, key, value) {
        int width = column_width (rows, key, flags);
        char *s = row ? text_new (json_object_get (row, key), flags) : strdup (key);

        out_print ("%s%*s", between, json_is_number (value) ? width : -width, s ? s : "?");
        free (s);
    }
    out_print ("\n");
}

static void print_table (const char *label, const json_t *rows, size_t flags)
{
    json_t *keys = json_object (), *row;
    size_t i;

    json_array_foreach ((json_t *)rows, i, row)
        json_object_update_missing (keys, row);
    out_print ("\n%s:\n", label);
    print_row (rows, keys, NULL, flags);
    json_array_foreach ((json_t *)rows, i, row)
        print_row (rows, keys, row, flags);
    json_decref (keys);
}

static bool is_nested (const json_t *value)
{
    return json_is_object (value) && json_object_size (value) > 0;
}

/* The number of columns that the longest label of an object needs. */
static int label_columns (const json_t *o, size_t prefix_len)
{
    const char *key;
    json_t *value;
    int most = 0;

    json_object_foreach ((json_t *)o, key, value) {
        size_t len = prefix_len + strlen (key);
        int columns = is_nested (value) ? label_columns (value, len + 1) : is_table (value) ? 0 : (int)len + 2;

        most = columns > most ? columns : most;
    }
    return most;
}

/* Print the scalars and lists of an object or, with 'tables', its tables, which are printed last. */
static void print_members (const json_t *o, const char *prefix, int columns, size_t flags, bool tables)
{
    char label[LABEL_MAX];
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)o, key, value) {
        snprintf (label, sizeof (label), "%s%s%s", prefix, key, is_nested (value) ? " " : "");
        if (is_nested (value))
            print_members (value, label, columns, flags, tables);
        else if (is_table (value) && tables)
            print_table (label, value, flags);
        else if (!is_table (value) && !tables) {
            char *s = text_new (value, flags);

            out_print ("%-*s %s\n", columns - 1, label, s ? s : "?");
            free (s);
        }
    }
}

void ask_print_members (const json_t *o, const char *prefix, int columns, size_t flags)
{
    if (columns == 0)
        columns = label_columns (o, strlen (prefix));
    print_members (o, prefix, columns, flags, false);
    print_members (o, prefix, columns, flags, true);
}
