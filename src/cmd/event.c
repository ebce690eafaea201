/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* event.c - idtree event pub, sub; idtree dmesg, logger: events, and the log of brokers */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include <idtree/reactor.h>

#include "cmd/base/ask.h"
#include "cmd/base/out.h"
#include "libutil/clock.h"
#include "libutil/text.h"

#define LINE_MAX_PRINTED 4096
#define LOG_HEADER_MAX 320 /* bytes before the text of a line */

/* --- pub -------------------------------------------------------------------------------------- */

static void check_payload (struct cmd *cmd, const char *s)
{
    json_error_t error;
    json_t *o = json_loads (s, 0, &error);

    if (!o)
        cmd_usage (cmd, "the payload is not JSON: %s", error.text);
    if (!json_is_object (o))
        cmd_usage (cmd, "the payload is not a JSON object");
    json_decref (o);
}

struct pub_options {
    bool private;
    bool tell;
};

static int run_pub (struct cmd *cmd)
{
    struct pub_options o = { 0 };
    json_int_t seq;

    cmd_options (cmd, &o);
    const char *topic = cmd->argv[0], *payload = cmd->argc > 1 ? cmd->argv[1] : NULL;
    if (!*topic)
        cmd_usage (cmd, "the TOPIC is empty");
    if (payload)
        check_payload (cmd, payload);
    int flags = o.private ? IDT_MSGFLAG_PRIVATE : 0;
    ask_note (cmd, "event.publish", 0);
    idt_future_t *f = ask_wait (cmd, idt_event_publish (ask_connect (cmd), topic, flags, payload), topic);
    if (idt_rpc_get_unpack (f, "{s:I}", "seq", &seq) < 0)
        cmd_die (cmd, "%s: the answer has no seq", topic);
    if (cmd->json)
        out_print ("{\"seq\":%" JSON_INTEGER_FORMAT "}\n", seq);
    else if (o.tell)
        out_print ("seq=%" JSON_INTEGER_FORMAT "\n", seq);
    idt_future_destroy (f);
    return CMD_OK;
}

/* --- sub -------------------------------------------------------------------------------------- */

struct sub {
    struct cmd *cmd;
    uint64_t left; /* events to print; 0: no limit */
};

/* Print an event as JSON.  A payload that is not JSON becomes a string; a payload that is not UTF-8 is left out. */
static void print_event (const struct cmd *cmd, const char *topic, const char *payload)
{
    json_t *value = payload ? json_loads (payload, JSON_DECODE_ANY, NULL) : NULL;
    ask_print_new (cmd, json_pack ("{s:s s:o*}", "topic", topic, "payload",
                                   value     ? value
                                   : payload ? json_string (payload)
                                             : NULL));
}

static void event_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct sub *sub = arg;
    const char *payload = idt_msg_string (msg);

    if (sub->cmd->json)
        print_event (sub->cmd, idt_msg_topic (msg), payload);
    else
        out_print ("%s\t%s\n", idt_msg_topic (msg), payload ? payload : "");
    cmd_flush (sub->cmd);
    if (sub->left > 0 && --sub->left == 0)
        idt_reactor_stop (idt_get_reactor (h));
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_EVENT, "*", event_cb, 0 },
    IDT_HANDLERS_END,
};

static int run_sub (struct cmd *cmd)
{
    struct sub sub = { .cmd = cmd };

    cmd_options (cmd, &sub);
    idt_t *h = ask_connect (cmd);
    if (idt_handlers_add (h, handlers, &sub) < 0)
        cmd_die (cmd, "%s", strerror (errno));
    ask_note (cmd, "event.subscribe", IDT_NODEID_ANY);
    for (int i = 0; i < cmd->argc || i == 0; i++) {
        const char *prefix = cmd->argc > 0 ? cmd->argv[i] : "";

        idt_future_destroy (ask_wait (cmd, idt_event_subscribe (h, prefix), "cannot subscribe"));
    }
    if (idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_DEFAULT) < 0)
        cmd_die (cmd, "connection lost: %s", strerror (errno));
    return CMD_OK;
}

static const struct cmd_option pub_options[] = {
    { CMD_LETTERS (0, 'p'), "private", NULL, "only for the owner and the sender", cmd_take_flag,
      offsetof (struct pub_options, private) },
    { CMD_LETTERS (0, 's'), "sequence", NULL, "print its sequence number", cmd_take_flag,
      offsetof (struct pub_options, tell) },
    CMD_OPTIONS_END,
};

static const struct cmd_option sub_options[] = {
    { CMD_LETTERS ('n', 'c'), "count", "N", "end after N events (default: until interrupted)", cmd_take_count,
      offsetof (struct sub, left) },
    CMD_OPTIONS_END,
};

const struct command event_pub_command = {
    .name = "event pub",
    .operands = "TOPIC [JSON]",
    .flags = CMD_CONNECTS,
    .summary = "Publish an event",
    .example = "idtree event pub news.today '{\"a\":1}'",
    .json = "one object",
    .options = pub_options,
    .run = run_pub,
};

const struct command event_sub_command = {
    .name = "event sub",
    .operands = "[PREFIX]...",
    .flags = CMD_CONNECTS,
    .summary = "Print events whose topic begins with a prefix (default: all)",
    .example = "idtree event sub -n 1 news.",
    .json = "one object a line",
    .options = sub_options,
    .run = run_sub,
};

/* --- dmesg ------------------------------------------------------------------------------------ */

/* Print the fields of a line as JSON.  If the line is not in the format of brokers, the object has only "text". */
static void print_line (const struct cmd *cmd, const char *line)
{
    struct logline l;
    json_t *o;

    if (logline_parse (line, &l) == 0)
        o = json_pack ("{s:s s:I s:s s:s s:s}", "date", l.time, "rank", (json_int_t)strtoul (l.rank, NULL, 10), "name",
                       l.name, "severity", logline_level (l.level), "text", l.text);
    else
        o = json_pack ("{s:s}", "text", line);
    ask_print_new (cmd, o);
}

/* Print the line in a response, whose payload need not end with a NUL. */
static void print_response (const struct cmd *cmd, idt_future_t *f)
{
    const void *data;
    size_t size;
    char line[LINE_MAX_PRINTED], buf[LINE_MAX_PRINTED];

    if (idt_rpc_get_raw (f, &data, &size) == 0) {
        snprintf (line, sizeof (line), "%.*s", (int)size, (const char *)data);
        if (cmd->json)
            print_line (cmd, line);
        else
            out_print ("%s\n", logline_format (line, buf, sizeof (buf)) == 0 ? buf : line);
    }
}

struct dmesg_options {
    const char *ranks;
    uint32_t rank;
    bool follow;
    bool only_new;
    bool clear;
};

static idt_future_t *ask_for_log (struct cmd *cmd, const struct dmesg_options *o)
{
    return ask_stream (cmd, "log.dmesg", o->rank,
                       json_pack ("{s:b s:b}", "follow", o->follow, "nobacklog", o->only_new));
}

static void print_log (struct cmd *cmd, const struct dmesg_options *o)
{
    idt_future_t *f = ask_for_log (cmd, o);

    if (o->follow) /* lines may be rare, so a ping shows whether the rank answers */
        idt_future_destroy (ask_ready (cmd, ask_send (cmd, "broker.ping", o->rank, json_object ()), "log"));
    while (idt_future_errnum (o->follow ? ask_next (cmd, f, "log") : ask_ready (cmd, f, "log")) != ENODATA) {
        print_response (cmd, ask_wait (cmd, f, "log"));
        if (o->follow)
            cmd_flush (cmd);
        idt_future_reset (f);
    }
    idt_future_destroy (f);
}

/* --- dmesg of several ------------------------------------------------------------------------------- */

struct logs {
    struct cmd *cmd;
    const struct dmesg_options *o;
    struct ranks answer; /* the ranks that answered, with space for all */
    json_t *failed;      /* the ranks that failed, for ranks_note () */
};

static void take_rank (uint32_t rank, idt_future_t *f, void *arg)
{
    struct logs *l = arg;

    if (!ranks_note (l->failed, rank, f))
        l->answer.rank[l->answer.n++] = rank;
}

/* Print the log of one rank.  If the rank is lost meanwhile, it is added to 'failed'. */
static void print_one_of (struct logs *l, uint32_t rank)
{
    struct dmesg_options o = *l->o;

    o.rank = rank;
    idt_future_t *f = ask_for_log (l->cmd, &o);
    if (!f)
        cmd_die (l->cmd, "cannot send: %s", strerror (errno));
    int rc;
    while ((rc = idt_future_wait (f, l->cmd->timeout_ms)) == 0 && !idt_future_errnum (f)) {
        print_response (l->cmd, f);
        idt_future_reset (f);
    }
    if (rc < 0 || idt_future_errnum (f) != ENODATA)
        ranks_note (l->failed, rank, rc < 0 ? NULL : f);
    idt_future_destroy (f);
}

/* Print the logs of several ranks one after the other, because lines cannot be put in order: the clocks of ranks may
 * differ.  First send a request to all ranks concurrently, to find the ranks that do not answer.
 */
static int run_on_many (struct cmd *cmd, const struct dmesg_options *o)
{
    struct logs l = { .cmd = cmd, .o = o, .failed = json_object () };

    if (o->follow)
        cmd_usage (cmd, "-f follows the log of one rank");
    struct ranks ranks = ranks_read (cmd, o->ranks);
    if (!(l.answer.rank = calloc (ranks.n + 1, sizeof (ranks.rank[0]))))
        cmd_die (cmd, "out of memory");
    ranks_ask (cmd, &ranks, o->clear ? "log.clear" : "state-machine.get", NULL, take_rank, &l);
    for (size_t i = 0; i < l.answer.n && !o->clear; i++)
        print_one_of (&l, l.answer.rank[i]);
    int status = ranks_warn (cmd, l.failed, "of ranks");
    json_decref (l.failed);
    ranks_fini (&l.answer);
    ranks_fini (&ranks);
    return status;
}

static int run_dmesg (struct cmd *cmd)
{
    struct dmesg_options o = { .rank = IDT_NODEID_ANY };

    cmd_options (cmd, &o);
    if (o.only_new && !o.follow)
        cmd_usage (cmd, "--new leaves out all lines logged so far: it needs --follow");
    if (ranks_are_many (o.ranks))
        return run_on_many (cmd, &o);
    if (o.ranks)
        o.rank = cmd_rank (cmd, o.ranks);
    if (o.clear)
        json_decref (ask_new (cmd, "log.clear", o.rank, NULL, "log"));
    else
        print_log (cmd, &o);
    return CMD_OK;
}

#define DMESG_AT(member) offsetof (struct dmesg_options, member)

static const struct cmd_option dmesg_options[] = {
    { 'r', "rank", "RANKS", "of ranks such as 3 or 0-3,17, one after the other, or all", cmd_take_text,
      DMESG_AT (ranks) },
    { 'f', "follow", NULL, "continue with new lines as they are logged", cmd_take_flag, DMESG_AT (follow) },
    { CMD_LETTERS (0, 'n'), "new", NULL, "only lines logged from now on (with -f)", cmd_take_flag,
      DMESG_AT (only_new) },
    { 'C', "clear", NULL, "clear the log instead of printing it", cmd_take_flag, DMESG_AT (clear) },
    CMD_OPTIONS_END,
};

const struct command dmesg_command = {
    .name = "dmesg",
    .flags = CMD_CONNECTS,
    .summary = "Print a broker's log",
    .example = "idtree dmesg -f",
    .json = "one object a line",
    .options = dmesg_options,
    .run = run_dmesg,
};

/* --- logger ----------------------------------------------------------------------------------- */

struct logger_options {
    uint32_t rank; /* IDT_NODEID_ANY: the connected broker */
    int level;
    const char *name;
};

static void take_level (struct cmd *cmd, const char *arg, void *to)
{
    int *level = to;

    if ((*level = logline_level_parse (arg)) < 0)
        cmd_usage (cmd,
                   "'%.64s' is no severity, as emerg, alert, crit, err, warning, notice, info "
                   "or debug",
                   arg);
}

/* Return all arguments with a blank between them, for free (). */
static char *join (const struct cmd *cmd)
{
    size_t size = 1, n = 0;

    for (int i = 0; i < cmd->argc; i++)
        size += strlen (cmd->argv[i]) + 1;
    char *buf = calloc (1, size);
    if (!buf)
        cmd_die (cmd, "out of memory");
    for (int i = 0; i < cmd->argc; i++)
        n += snprintf (buf + n, size - n, "%s%s", i > 0 ? " " : "", cmd->argv[i]);
    return buf;
}

/* Send a line to another rank's log, in the format of idt_log (). */
static void send_to_rank (const struct cmd *cmd, const struct logger_options *o, uint32_t from, const char *text)
{
    char line[LOG_HEADER_MAX + IDT_LOG_TEXT_MAX + 1], stamp[CLOCK_STAMP_SIZE];
    int size = snprintf (line, sizeof (line), "<%d>1 %s %u %.128s %d - - %.*s", LOG_PRI (o->level) << 3,
                         clock_stamp (stamp), from, o->name, (int)getpid (), IDT_LOG_TEXT_MAX, text);
    idt_future_t *f = idt_rpc_raw (cmd->h, "log.append", line, (size_t)size, o->rank, IDT_RPC_NORESPONSE);

    if (!f)
        cmd_die (cmd, "cannot send: %s", strerror (errno));
    idt_future_destroy (f);
}

static void send_line (const struct cmd *cmd, const struct logger_options *o, uint32_t from, const char *text)
{
    if (o->rank == IDT_NODEID_ANY)
        idt_log (cmd->h, o->level, "%s", text);
    else
        send_to_rank (cmd, o, from, text);
}

/* Send one request for each line of 'text'.  Warn if the log keeps only the beginning of a line. */
static void send_lines (const struct cmd *cmd, const struct logger_options *o, uint32_t from, char *text)
{
    unsigned number = 1;

    for (char *line = text; line; number++) {
        char *next = strchr (line, '\n');

        if (next)
            *next++ = '\0';
        if (strlen (line) > IDT_LOG_TEXT_MAX)
            cmd_warn (cmd, "line %u has %zu bytes: the log keeps the first %d", number, strlen (line),
                      IDT_LOG_TEXT_MAX);
        if (*line || (number == 1 && !next))
            send_line (cmd, o, from, line);
        line = next;
    }
}

/* End the program if this user may not write to the log.  Lines of the log are not answered, but an error is.  So send
 * an empty line, then a ping: a refusal of the line arrives before the answer to the ping.
 */
static void check_may_log (struct cmd *cmd, idt_t *h, uint32_t rank)
{
    idt_future_t *f = idt_rpc_raw (h, "log.append", "", 0, rank, 0);

    json_decref (ask_take_new (cmd, ask_send (cmd, "broker.ping", rank, json_object ()), "broker.ping"));
    if (f && idt_future_is_ready (f))
        ask_wait (cmd, f, "log.append");
    idt_future_destroy (f);
}

static int run_logger (struct cmd *cmd)
{
    struct logger_options o = { .rank = IDT_NODEID_ANY, .level = LOG_NOTICE, .name = "logger" };
    struct guard guard;
    uint32_t rank;

    cmd_options (cmd, &o);
    idt_t *h = ask_connect_for (cmd, o.rank);
    rank = ask_own_rank (cmd); /* the lines contain this rank */
    guard_begin (&guard, cmd);
    check_may_log (cmd, h, o.rank);
    idt_log_set_name (h, o.name);
    char *text = join (cmd);
    send_lines (cmd, &o, rank, text);
    free (text);
    if (idt_flush (h) < 0)
        cmd_die (cmd, "cannot send: %s", strerror (errno));
    if (o.rank != IDT_NODEID_ANY) /* when this ping is answered, the rank has the lines */
        json_decref (ask_new (cmd, "broker.ping", o.rank, json_object (), "broker.ping"));
    guard_end (&guard);
    return CMD_OK;
}

#define LOGGER_AT(member) offsetof (struct logger_options, member)

static const struct cmd_option logger_options[] = {
    { 'r', "rank", "R", "to the log of rank R (default: the broker of the URI)", cmd_take_rank, LOGGER_AT (rank) },
    { CMD_LETTERS (0, 's'), "severity", "LEVEL", "emerg, alert, crit, err, warning, notice (default), info, debug",
      take_level, LOGGER_AT (level) },
    { CMD_LETTERS (0, 'n'), "name", "NAME", "name of the sender (default: logger)", cmd_take_text, LOGGER_AT (name) },
    CMD_OPTIONS_END,
};

const struct command logger_command = {
    .name = "logger",
    .operands = "TEXT...",
    .flags = CMD_CONNECTS | CMD_SILENT,
    .summary = "Write each line of TEXT to the broker's log",
    .example = "idtree logger -s warning disk is nearly full",
    .options = logger_options,
    .run = run_logger,
};
