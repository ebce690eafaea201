/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* trace.c - idtree trace: show messages as they pass a broker */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include <idtree/rpc.h>

#include "cmd/base/ask.h"
#include "cmd/base/cmd.h"
#include "cmd/base/out.h"
#include "libutil/text.h"

#define WINDOW (256 * 1024) /* most bytes of lines that the broker sends before they are acknowledged */
#define LINE_SIZE 2048      /* most bytes that are printed of a message, without its payload */
#define LIST_SIZE 128       /* bytes that hold a list in a message; a longer list is cut, and ends with "..." */

struct trace_options {
    struct cmd *cmd;
    uint32_t rank;
    uint64_t count; /* 0: no limit */
    bool full;
    int types;        /* 0: all */
    const char *peer; /* NULL: any */
    const char *text; /* NULL: any */
};

/* --- lines -------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int type;
} types[] = {
    { "request", IDT_MSGTYPE_REQUEST },
    { "response", IDT_MSGTYPE_RESPONSE },
    { "event", IDT_MSGTYPE_EVENT },
    { "control", IDT_MSGTYPE_CONTROL },
};
#define NTYPES (sizeof (types) / sizeof (types[0]))

static const char *type_name (int type)
{
    for (size_t i = 0; i < NTYPES; i++)
        if (types[i].type == type)
            return types[i].name;
    return "?";
}

static const char *text_of (const json_t *line, const char *key)
{
    const char *s = json_string_value (json_object_get (line, key));

    return s ? s : "";
}

static json_int_t number_of (const json_t *line, const char *key)
{
    return json_integer_value (json_object_get (line, key));
}

/* Write the name of a peer: "client 1b2c3d4e", "module fluid", "rank 3". */
static void name_peer (const json_t *line, char *buf, size_t size)
{
    const char *peer = text_of (line, "peer"), *name = text_of (line, "name");

    if (number_of (line, "rank") >= 0)
        snprintf (buf, size, "rank %" JSON_INTEGER_FORMAT, number_of (line, "rank"));
    else if (!strcmp (peer, "broker"))
        snprintf (buf, size, "broker");
    else
        snprintf (buf, size, "%s %.*s", peer, !strcmp (peer, "client") ? 8 : 64, name);
}

/* Write the time by 'fmt' of strftime (3), followed by microseconds. */
static void write_time (const json_t *line, const char *fmt, bool utc, char *buf, size_t size)
{
    double t = json_number_value (json_object_get (line, "timestamp"));
    time_t seconds = (time_t)t;
    struct tm tm;
    size_t n = strftime (buf, size, fmt, utc ? gmtime_r (&seconds, &tm) : localtime_r (&seconds, &tm));

    snprintf (buf + n, size - n, ".%06d%s", (int)((t - (double)seconds) * 1E6), utc ? "Z" : "");
}

static json_t *date_of (const json_t *line)
{
    char date[64];

    write_time (line, "%Y-%m-%dT%H:%M:%S", true, date, sizeof (date));
    return json_string (date);
}

static void write_end (const json_t *line, char *buf, size_t size)
{
    int errnum = (int)number_of (line, "errnum");
    const char *why = text_of (line, "errstr");

    if (errnum)
        snprintf (buf, size, "error %d: %s", errnum, *why ? why : strerror (errnum));
    else
        snprintf (buf, size, "%" JSON_INTEGER_FORMAT " bytes", number_of (line, "payload_size"));
}

static void write_line (const json_t *line, char buf[LINE_SIZE])
{
    char when[32], peer[96], end[512];

    write_time (line, "%H:%M:%S", false, when, sizeof (when));
    name_peer (line, peer, sizeof (peer));
    write_end (line, end, sizeof (end));
    snprintf (buf, LINE_SIZE, "%s %-4s %-16s %-8s %s  %s", when,
              !strcmp (text_of (line, "prefix"), "rx") ? "from" : "to", peer, type_name ((int)number_of (line, "type")),
              text_of (line, "topic"), end);
    utf8_clean_printable (buf, strlen (buf)); /* clients, which may be guests, choose topics */
}

static void print_line (const json_t *line, const char *text)
{
    json_t *payload = json_object_get (line, "payload");
    char *full = payload ? json_dumps (payload, JSON_ENCODE_ANY) : NULL;

    out_print ("%s\n", text);
    if (full) {
        utf8_clean_printable (full, strlen (full));
        out_print ("    %s\n", full);
    }
    else if (json_object_get (line, "data"))
        out_print ("    %s\n", text_of (line, "data"));
    free (full);
}

/* Print a message as JSON.  Numbers of the protocol become words, and fields that do not apply are left out. */
static void print_json (const struct cmd *cmd, const json_t *line)
{
    json_t *o = json_pack ("{s:o s:s s:s s:s s:s s:s s:I}", "date", date_of (line), "way",
                           !strcmp (text_of (line, "prefix"), "rx") ? "from" : "to", "peer", text_of (line, "peer"),
                           "name", text_of (line, "name"), "type", type_name ((int)number_of (line, "type")), "topic",
                           text_of (line, "topic"), "bytes", number_of (line, "payload_size"));
    static const char *const more[] = { "payload", "data" };

    if (number_of (line, "rank") >= 0)
        json_object_set_new (o, "rank", json_integer (number_of (line, "rank")));
    if (number_of (line, "errnum"))
        json_object_set_new (o, "errnum", json_integer (number_of (line, "errnum")));
    if (*text_of (line, "errstr"))
        json_object_set_new (o, "error", json_string (text_of (line, "errstr")));
    for (size_t i = 0; i < sizeof (more) / sizeof (more[0]); i++)
        if (json_object_get (line, more[i]))
            json_object_set (o, more[i], json_object_get (line, more[i]));
    ask_print (cmd, o);
    json_decref (o);
}

static void print_lost (const struct trace_options *o, const json_t *line)
{
    json_t *lost;

    if (!o->cmd->json) {
        cmd_warn (o->cmd,
                  "%" JSON_INTEGER_FORMAT " messages are missing here: they arrived faster than they were "
                  "read",
                  number_of (line, "lost"));
        return;
    }
    lost = json_pack ("{s:o s:I}", "date", date_of (line), "lost", number_of (line, "lost"));
    ask_print (o->cmd, lost);
    json_decref (lost);
}

/* Print a message.  Returns whether it counts for --count. */
static bool take (const struct trace_options *o, const json_t *line)
{
    char text[LINE_SIZE];

    if (json_object_get (line, "lost")) {
        print_lost (o, line);
        return false;
    }
    write_line (line, text);
    if (o->text && !strstr (text, o->text))
        return false;
    if (o->cmd->json)
        print_json (o->cmd, line);
    else
        print_line (line, text);
    return true;
}

/* --- peers: lists ------------------------------------------------------------------------------------ */

static bool has_rank (const json_t *list, uint32_t rank)
{
    size_t i;
    json_t *o;

    json_array_foreach (list, i, o)
        if (json_integer_value (json_object_get (o, "rank")) == (json_int_t)rank)
            return true;
    return false;
}

static bool has_name (const json_t *list, const char *name)
{
    size_t i;
    json_t *o;

    json_array_foreach (list, i, o)
        if (json_string_length (json_object_get (o, "name")) > 0
            && !strcmp (json_string_value (json_object_get (o, "name")), name))
            return true;
    return false;
}

/* Return the member 'key' of each element as "1, 2, 3", or "none". */
static const char *say_list (const json_t *list, const char *key, char buf[LIST_SIZE])
{
    size_t i, n = 0;
    json_t *o;

    snprintf (buf, LIST_SIZE, "none");
    json_array_foreach (list, i, o) {
        const json_t *value = json_object_get (o, key);
        char text[LIST_SIZE / 2];

        if (json_is_string (value))
            snprintf (text, sizeof (text), "%s", json_string_value (value));
        else
            snprintf (text, sizeof (text), "%" JSON_INTEGER_FORMAT, json_integer_value (value));
        if (n + strlen (text) + sizeof (", ...") > LIST_SIZE) {
            snprintf (buf + n, LIST_SIZE - n, ", ...");
            break;
        }
        n += (size_t)snprintf (buf + n, LIST_SIZE - n, "%s%s", i > 0 ? ", " : "", text);
    }
    return buf;
}

/* --- peers: who is there ----------------------------------------------------------------------------- */

static uint32_t rank_of (struct cmd *cmd, uint32_t rank)
{
    if (rank == IDT_NODEID_ANY && idt_get_rank (ask_connect (cmd), &rank) < 0)
        cmd_die (cmd, "trace: the broker does not report its rank");
    return rank;
}

/* Whether 'child' is below 'parent' in the topology that was configured. */
static bool is_child (struct cmd *cmd, uint32_t at, uint32_t child, uint32_t parent)
{
    json_t *o = ask_new (cmd, "overlay.topology", at, json_pack ("{s:I}", "rank", (json_int_t)parent), "trace");
    bool is = has_rank (json_object_get (o, "children"), child);

    json_decref (o);
    return is;
}

static void check_link (struct cmd *cmd, uint32_t at, const json_t *links, uint32_t peer)
{
    char list[LIST_SIZE];

    if (has_rank (links, peer))
        return;
    ask_connect_for (cmd, peer);
    if (peer == at)
        cmd_die (cmd, "rank %" PRIu32 " is the traced rank itself: give one at the other end of a link: %s", at,
                 say_list (links, "rank", list));
    if (!is_child (cmd, at, peer, at) && !is_child (cmd, at, at, peer))
        cmd_die (cmd,
                 "rank %" PRIu32 " is not a neighbour of rank %" PRIu32 ", which has links with ranks: %s (-r %" PRIu32
                 " shows the messages there)",
                 peer, at, say_list (links, "rank", list), peer);
    cmd_warn (cmd, "rank %" PRIu32 " has no link with rank %" PRIu32 " now: waiting for one", peer, at);
}

static void check_kind (struct cmd *cmd, uint32_t at, const json_t *stats, const char *kind)
{
    const json_t *children = json_object_get (stats, "child-count");

    if (!strcmp (kind, "parent") && at == 0)
        cmd_die (cmd, "rank 0 has no parent");
    if (!strcmp (kind, "child") && children && json_integer_value (children) == 0)
        cmd_die (cmd, "rank %" PRIu32 " has no children", at);
}

static void check_module (struct cmd *cmd, uint32_t at, const char *name)
{
    json_t *o = ask_new (cmd, "module.list", at, NULL, "trace"), *loaded = json_object_get (o, "mods");
    char list[LIST_SIZE], quoted[CMD_QUOTE_MAX];

    if (!has_name (loaded, name))
        cmd_warn (cmd, "no module '%s' is loaded at rank %" PRIu32 " now: waiting for it (loaded: %s)",
                  cmd_quote (name, strlen (name), quoted), at, say_list (loaded, "name", list));
    json_decref (o);
}

/* --- peers: the filter ------------------------------------------------------------------------------- */

static bool is_kind (const char *peer)
{
    static const char *const kinds[] = { "client", "module", "broker", "child", "parent" };

    for (size_t i = 0; i < sizeof (kinds) / sizeof (kinds[0]); i++)
        if (!strcmp (peer, kinds[i]))
            return true;
    return false;
}

static bool is_number (const char *peer)
{
    return *peer && peer[strspn (peer, "0123456789")] == '\0';
}

/* Put 'peer' into the request: a kind of peer, a rank at the other end of a link, or the name of a module. A trace of a
 * peer that does not exist would look like a trace of a silent peer. So if there can never be such a peer, the program
 * ends with a message. If the peer may appear later, a warning is printed, and the trace waits for the peer. Connects
 * to the broker.
 */
static void choose_peer (struct cmd *cmd, uint32_t rank, const char *peer, json_t *request)
{
    uint32_t other = is_number (peer) ? cmd_rank (cmd, peer) : 0;

    ask_connect_for (cmd, rank);
    uint32_t at = rank_of (cmd, rank);
    if (!is_kind (peer) && !is_number (peer)) {
        check_module (cmd, at, peer);
        json_object_set_new (request, "names", json_pack ("[s]", peer));
        return;
    }
    json_t *stats = ask_new (cmd, "overlay.stats-get", at, NULL, "trace");
    if (is_kind (peer)) {
        check_kind (cmd, at, stats, peer);
        json_object_set_new (request, "peers", json_pack ("[s]", peer));
    }
    else {
        check_link (cmd, at, json_object_get (stats, "links"), other);
        json_object_set_new (request, "nodeid", json_integer ((json_int_t)other));
    }
    json_decref (stats);
}

/* --- the stream --------------------------------------------------------------------------------------- */

/* Warn about a topic such as "fluid", because the user usually means "fluid.*".  It is only a warning, because an event
 * may have such a topic.
 */
static void check_topic (const struct cmd *cmd, const char *topic)
{
    char quoted[CMD_QUOTE_MAX];

    if (*topic && !strpbrk (topic, ".*?[ "))
        cmd_warn (cmd, "shows only the topic '%s'; the topics of a service are '%s.*'",
                  cmd_quote (topic, strlen (topic), quoted), quoted);
}

static json_t *make_request (const struct trace_options *o)
{
    json_t *request = json_pack ("{s:i s:b s:i}", "typemask", o->types ? o->types : IDT_MSGTYPE_ANY, "full", o->full,
                                 "window", WINDOW);

    if (o->cmd->argc > 0) {
        check_topic (o->cmd, o->cmd->argv[0]);
        json_object_set_new (request, "topic_glob", json_string (o->cmd->argv[0]));
    }
    if (o->peer)
        choose_peer (o->cmd, o->rank, o->peer, request);
    return request;
}

/* Acknowledge the lines that were read, before the broker's window is full. */
static void acknowledge (const struct trace_options *o, size_t *read)
{
    if (*read < WINDOW / 4)
        return;
    idt_future_destroy (idt_rpc_pack (o->cmd->h, "broker.trace-more", o->rank, IDT_RPC_NORESPONSE, "{s:I}", "bytes",
                                      (json_int_t)*read));
    *read = 0;
}

static int run (struct cmd *cmd)
{
    struct trace_options o = { .cmd = cmd, .rank = IDT_NODEID_ANY };
    uint64_t n = 0;
    size_t read = 0;

    cmd_options (cmd, &o);
    ask_connect_for (cmd, o.rank);
    idt_future_t *f = ask_stream (cmd, "broker.trace", o.rank, make_request (&o));
    while (o.count == 0 || n < o.count) {
        const char *text = NULL;
        json_t *line;

        ask_next (cmd, f, "trace");
        ask_wait (cmd, f, "trace");
        idt_rpc_get (f, &text);
        if ((line = text ? json_loads (text, 0, NULL) : NULL)) {
            n += take (&o, line);
            read += strlen (text) + 1;
        }
        json_decref (line);
        cmd_flush (cmd);
        idt_future_reset (f);
        acknowledge (&o, &read);
    }
    idt_future_destroy (f);
    return CMD_OK;
}

/* --- options ------------------------------------------------------------------------------------------ */

static void take_types (struct cmd *cmd, const char *arg, void *to)
{
    char list[64], *save = NULL;

    snprintf (list, sizeof (list), "%s", arg);
    for (char *name = strtok_r (list, ",", &save); name; name = strtok_r (NULL, ",", &save)) {
        size_t i = 0;

        while (i < NTYPES && strcmp (types[i].name, name) != 0)
            i++;
        if (i == NTYPES)
            cmd_usage (cmd, "'%.32s' is not a type of messages, as request, response, event or control", name);
        *(int *)to |= types[i].type;
    }
}

#define AT(member) offsetof (struct trace_options, member)

static const struct cmd_option options[] = {
    { 'r', "rank", "R", "at rank R (default: the broker of the URI)", cmd_take_rank, AT (rank) },
    { CMD_LETTERS (0, 't'), "type", "TYPES", "a list of request, response, event, control (default: all)", take_types,
      AT (types) },
    { 0, "peer", "PEER", "client, module, broker, child, parent, a module's name, or a neighbour's rank", cmd_take_text,
      AT (peer) },
    { CMD_LETTERS (0, 'g'), "grep", "TEXT", "only lines with this text", cmd_take_text, AT (text) },
    { CMD_LETTERS ('n', 'c'), "count", "N", "end after N messages (default: until interrupted)", cmd_take_count,
      AT (count) },
    { CMD_LETTERS (0, 'F'), "full", NULL, "with payloads and texts of errors", cmd_take_flag, AT (full) },
    CMD_OPTIONS_END,
};

const struct command trace_command = {
    .name = "trace",
    .operands = "[TOPIC]",
    .flags = CMD_CONNECTS,
    .summary = "Print messages as they pass a broker; TOPIC may have * and ?",
    .example = "idtree trace -r 3 'fluid.*'",
    .json = "one object a line",
    .options = options,
    .run = run,
};
