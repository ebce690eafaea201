/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* way.c - the path of one request for ids, as text, JSON and spans */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cmd/base/ask.h"
#include "cmd/base/out.h"
#include "cmd/id/way.h"
#include "libutil/clock.h"

#define HEX "0123456789abcdef"
#define PARENT_SIZE 56 /* bytes of a traceparent, with its NUL */
#define KIND_CLIENT 3  /* value of OTLP's SpanKind */
#define KIND_SERVER 2
#define STATUS_UNSET 0

struct way {
    char trace[33];
    char parent[17];   /* "": no parent */
    char span[17];     /* the span of this command */
    uint64_t start_us; /* Unix microseconds */
    uint64_t took_us;
    uint32_t ids;
    json_t *answer;
    json_t *hops; /* the hops in 'answer' */
};

/* --- asking ------------------------------------------------------------------------------------------- */

static void make_hex (const struct cmd *cmd, char *buf, size_t len)
{
    uint8_t bits[16];

    if (getrandom (bits, len / 2, 0) != (ssize_t)(len / 2))
        cmd_die (cmd, "no random bits: %s", strerror (errno));
    for (size_t i = 0; i < len / 2; i++)
        snprintf (buf + 2 * i, 3, "%02x", bits[i]);
}

/* Parse TRACEPARENT: "00-TRACE-SPAN-FLAGS".  An invalid value is ignored, as the W3C recommendation requires. */
static void take_parent (const char *text, struct way *w)
{
    if (!text || strlen (text) != PARENT_SIZE - 1 || strncmp (text, "00-", 3) != 0 || strspn (text + 3, HEX) != 32
        || text[35] != '-' || strspn (text + 36, HEX) != 16 || text[52] != '-')
        return;
    snprintf (w->trace, sizeof (w->trace), "%.32s", text + 3);
    snprintf (w->parent, sizeof (w->parent), "%.16s", text + 36);
}

static void read_ids (const struct cmd *cmd, json_t *runs, uint32_t n, fluid_t *ids)
{
    uint32_t got = 0;
    size_t i;
    json_t *run;

    json_array_foreach (runs, i, run) {
        const char *text = json_string_value (json_array_get (run, 0));
        json_int_t left = json_integer_value (json_array_get (run, 1));
        fluid_t first;

        if (!text || fluid_parse (text, strlen (text), &first, NULL) < 0 || left < 1 || left > n - got)
            cmd_die (cmd, "the answer contains a value that is not an id");
        for (; left > 0; left--)
            ids[got++] = first++;
    }
    if (got != n)
        cmd_die (cmd, "%" PRIu32 " ids arrived instead of %" PRIu32, got, n);
}

struct way *way_ask (struct cmd *cmd, uint32_t rank, uint32_t n, fluid_t *ids)
{
    struct way *w = calloc (1, sizeof (*w));
    char parent[PARENT_SIZE];
    uint64_t since_us;

    if (!w)
        cmd_die (cmd, "out of memory");
    make_hex (cmd, w->trace, 32);
    make_hex (cmd, w->span, 16);
    take_parent (getenv ("TRACEPARENT"), w);
    snprintf (parent, sizeof (parent), "00-%s-%s-01", w->trace, w->span);
    ask_connect_for (cmd, rank);
    w->ids = n;
    w->start_us = clock_us (CLOCK_REALTIME);
    since_us = clock_us (CLOCK_MONOTONIC);
    w->answer = ask_new (cmd, "fluid.trace", rank,
                         json_pack ("{s:I s:s}", "count", (json_int_t)n, "traceparent", parent),
                         "the broker gave no ids");
    w->took_us = clock_us (CLOCK_MONOTONIC) - since_us;
    w->hops = json_object_get (w->answer, "trace");
    read_ids (cmd, json_object_get (w->answer, "runs"), n, ids);
    return w;
}

void way_destroy (struct way *w)
{
    if (w)
        json_decref (w->answer);
    free (w);
}

/* --- to read ------------------------------------------------------------------------------------------ */

static json_int_t number_of (const json_t *hop, const char *key)
{
    return json_integer_value (json_object_get (hop, key));
}

static const char *text_of (const json_t *hop, const char *key)
{
    const char *s = json_string_value (json_object_get (hop, key));

    return s ? s : "";
}

static const char *say_wait (const json_t *hop)
{
    static const struct {
        const char *key, *text;
    } waits[] = {
        { "turn", "its turn" },
        { "lease", "a lease of time" },
        { "forward", "the answer to an earlier request" },
        { "parent", "a parent" },
    };

    for (size_t i = 0; i < sizeof (waits) / sizeof (waits[0]); i++)
        if (!strcmp (text_of (hop, "waited_for"), waits[i].key))
            return waits[i].text;
    return "-";
}

static void print_hop (const json_t *hop)
{
    json_int_t took = number_of (hop, "took_us"), up = number_of (hop, "up_us"), ids = number_of (hop, "ids");
    json_int_t with = number_of (hop, "combined");

    out_error ("%6" JSON_INTEGER_FORMAT "  %-9s %9" JSON_INTEGER_FORMAT " %9" JSON_INTEGER_FORMAT
               " %9" JSON_INTEGER_FORMAT " %8" JSON_INTEGER_FORMAT " %6" JSON_INTEGER_FORMAT "  %s\n",
               number_of (hop, "rank"), text_of (hop, "state"), took, took - up, up, with > 0 ? with - 1 : 0,
               ids - number_of (hop, "ids_from_above"), say_wait (hop));
}

static void print_table (const struct way *w)
{
    json_int_t took = number_of (json_array_get (w->hops, 0), "took_us");
    size_t i;
    json_t *hop;

    out_error ("trace %s: %" PRIu32 " id%s in %" PRIu64 " us\n", w->trace, w->ids, w->ids == 1 ? "" : "s", w->took_us);
    out_error ("%6s  %-9s %9s %9s %9s %8s %6s  %s\n", "RANK", "STATE", "US", "HERE", "ABOVE", "WITH", "MADE",
               "WAITED FOR");
    out_error ("%6s  %-9s %9" PRIu64 " %9" JSON_INTEGER_FORMAT " %9" JSON_INTEGER_FORMAT "\n", "-", "client",
               w->took_us, (json_int_t)w->took_us - took, took);
    json_array_foreach (w->hops, i, hop)
        print_hop (hop);
}

void way_print (const struct cmd *cmd, const struct way *w)
{
    json_t *o;

    if (!cmd->json) {
        cmd_flush (cmd);
        print_table (w);
        return;
    }
    o = json_pack ("{s:s s:s s:s s:I s:O}", "trace_id", w->trace, "span", w->span, "parent", w->parent, "took_us",
                   (json_int_t)w->took_us, "hops", w->hops);
    ask_print_new (cmd, o);
}

/* --- spans -------------------------------------------------------------------------------------------- */

static json_t *attribute (const char *key, json_t *value)
{
    return json_pack ("{s:s s:o}", "key", key, "value", value);
}

/* Numbers of 64 bits are strings in OTLP's JSON. */
static json_t *number (const char *key, json_int_t n)
{
    char text[24];

    snprintf (text, sizeof (text), "%" JSON_INTEGER_FORMAT, n);
    return attribute (key, json_pack ("{s:s}", "intValue", text));
}

static json_t *text (const char *key, const char *s)
{
    return attribute (key, json_pack ("{s:s}", "stringValue", s));
}

static json_t *nanoseconds (uint64_t us)
{
    char digits[32];

    snprintf (digits, sizeof (digits), "%" PRIu64 "000", us);
    return json_string (digits);
}

static json_t *make_span (const struct way *w, const char *name, int kind, const char *span, const char *parent,
                          uint64_t start_us, uint64_t took_us, json_t *attributes)
{
    json_t *o = json_pack ("{s:s s:s s:s s:i s:o s:o s:o s:{s:i}}", "traceId", w->trace, "spanId", span, "name", name,
                           "kind", kind, "startTimeUnixNano", nanoseconds (start_us), "endTimeUnixNano",
                           nanoseconds (start_us + took_us), "attributes", attributes, "status", "code", STATUS_UNSET);

    if (o && *parent)
        json_object_set_new (o, "parentSpanId", json_string (parent));
    return o;
}

static json_t *span_of_hop (const struct way *w, const json_t *hop)
{
    json_t *attributes = json_pack ("[o,o,o,o,o,o]", number ("idtree.rank", number_of (hop, "rank")),
                                    text ("idtree.state", text_of (hop, "state")),
                                    text ("idtree.waited_for", text_of (hop, "waited_for")),
                                    number ("idtree.above_us", number_of (hop, "up_us")),
                                    number ("idtree.combined", number_of (hop, "combined")),
                                    number ("idtree.ids", number_of (hop, "ids")));

    return make_span (w, "fluid.trace", KIND_SERVER, text_of (hop, "span"), text_of (hop, "parent"),
                      strtoull (text_of (hop, "start_us"), NULL, 10), (uint64_t)number_of (hop, "took_us"), attributes);
}

static json_t *make_spans (const struct way *w)
{
    json_t *spans = json_array ();
    size_t i;
    json_t *hop;

    json_array_append_new (spans, make_span (w, "idtree id new", KIND_CLIENT, w->span, w->parent, w->start_us,
                                             w->took_us, json_pack ("[o]", number ("idtree.ids", w->ids))));
    json_array_foreach (w->hops, i, hop)
        json_array_append_new (spans, span_of_hop (w, hop));
    return json_pack ("{s:[{s:{s:[o]} s:[{s:{s:s} s:o}]}]}", "resourceSpans", "resource", "attributes",
                      text ("service.name", "idtree"), "scopeSpans", "scope", "name", "idtree", "spans", spans);
}

void way_write_spans (const struct cmd *cmd, const struct way *w, const char *file)
{
    FILE *f = fopen (file, "a");
    json_t *o = f ? make_spans (w) : NULL;
    char *line = o ? json_dumps (o, JSON_COMPACT) : NULL;
    int errnum = !f ? errno : !line ? ENOMEM : fprintf (f, "%s\n", line) > 0 ? 0 : errno;

    if (f && fclose (f) != 0 && errnum == 0)
        errnum = errno;
    if (errnum != 0)
        cmd_die (cmd, "spans cannot be written to %s: %s", file, strerror (errnum));
    free (line);
    json_decref (o);
}
