/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ping.c - idtree ping: the round trip time of a request to a rank or a service, and its route */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <idtree/reactor.h>
#include <idtree/rpc.h>

#include "cmd/base/ask.h"
#include "cmd/base/commands.h"
#include "cmd/base/out.h"
#include "cmd/hops.h"
#include "libutil/clock.h"

#define TOPIC_MAX 256
#define PAD_MAX (1024 * 1024) /* bytes */
#define COUNT_UNSAID UINT64_MAX
#define COUNT_OF_SCRIPTS 4 /* default of --count if stdout is not a terminal */

struct ping {
    struct cmd *cmd;
    uint64_t count; /* 0: no limit */
    double interval_ms;
    size_t pad_size;
    char *pad;
    uint32_t nodeid;
    char topic[TOPIC_MAX];
    uint64_t sent;
    uint64_t ended; /* requests answered or failed */
    uint64_t failed;
    idt_watcher_t *timer;
    struct hops *hops;
};

/* --- target ----------------------------------------------------------------------------------- */

static bool all_digits (const char *s, size_t len)
{
    return len > 0 && strspn (s, "0123456789") >= len;
}

/* Parse RANK, SERVICE or RANK!SERVICE; "any" is a RANK, too. */
static void parse_target (struct ping *p, const char *target)
{
    size_t len = strcspn (target, "!");
    bool any = len == 3 && !strncmp (target, "any", len), is_rank = any || all_digits (target, len);
    const char *service = target[len] ? target + len + 1 : is_rank ? "broker" : target;
    char rank[32], quoted[CMD_QUOTE_MAX];

    if ((target[len] && !is_rank) || !*service || snprintf (p->topic, TOPIC_MAX, "%s.ping", service) >= TOPIC_MAX)
        cmd_usage (p->cmd, "'%s' is not RANK, SERVICE or RANK!SERVICE", cmd_quote (target, strlen (target), quoted));
    snprintf (rank, sizeof (rank), "%.*s", (int)len, target);
    p->nodeid = is_rank && !any ? cmd_rank (p->cmd, rank) : IDT_NODEID_ANY;
}

/* --- answers ---------------------------------------------------------------------------------- */

static void print_json (struct ping *p, json_int_t rank, json_int_t seq, int64_t ns, const char *way)
{
    json_t *o = json_pack ("{s:I s:s s:I s:f s:s}", "rank", rank, "topic", p->topic, "seq", seq, "time",
                           (double)(ns / 1000) / 1e6, "route", way);

    ask_print (p->cmd, o);
    json_decref (o);
}

static void print_answer (struct ping *p, idt_future_t *f)
{
    int64_t now = (int64_t)clock_ns (CLOCK_MONOTONIC);
    json_int_t seq, sec, nsec, rank;
    const char *route;
    char way[HOPS_TEXT];

    if (idt_rpc_get_unpack (f, "{s:I s:I s:I s:s s:I}", "seq", &seq, "time.tv_sec", &sec, "time.tv_nsec", &nsec,
                            "route", &route, "rank", &rank)
        < 0) {
        cmd_warn (p->cmd, "%s: %s", p->topic,
                  idt_future_errnum (f) ? idt_future_error (f) : "malformed answer to a ping");
        p->failed++;
        return;
    }
    int64_t ns = now - (sec * INT64_C (1000000000) + nsec);
    hops_text (p->hops, route, (uint32_t)rank, way);
    if (p->cmd->json)
        print_json (p, rank, seq, ns, way);
    else
        out_print ("%" JSON_INTEGER_FORMAT "!%s seq=%" JSON_INTEGER_FORMAT " time=%.3f ms (%s)\n", rank, p->topic, seq,
                   ns / 1e6, way);
    cmd_flush (p->cmd);
}

/* End: later requests would not find the service either. */
static void die_without_service (const struct ping *p, const idt_future_t *f)
{
    if (p->nodeid == IDT_NODEID_ANY)
        cmd_die (p->cmd, "%s (idtree module list shows the services)", idt_future_error (f));
    cmd_die (p->cmd, "rank %u: %s (idtree module list -r %u shows the services)", p->nodeid, idt_future_error (f),
             p->nodeid);
}

static void answer_cb (idt_future_t *f, void *arg)
{
    struct ping *p = arg;

    if (idt_future_errnum (f) == ENOSYS && p->ended == 0)
        die_without_service (p, f);
    print_answer (p, f);
    idt_future_destroy (f);
    if (++p->ended == p->count)
        idt_reactor_stop (idt_get_reactor (p->cmd->h));
}

static void send_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct ping *p = arg;
    int64_t now = (int64_t)clock_ns (CLOCK_MONOTONIC);
    idt_future_t *f = idt_rpc_pack (p->cmd->h, p->topic, p->nodeid, 0, "{s:I s:I s:I s:s}", "seq", (json_int_t)p->sent,
                                    "time.tv_sec", (json_int_t)(now / 1000000000), "time.tv_nsec",
                                    (json_int_t)(now % 1000000000), "pad", p->pad);

    if (!f || idt_future_then (f, p->cmd->timeout_ms, answer_cb, p) < 0)
        cmd_die (p->cmd, "cannot send: %s", strerror (errno));
    if (++p->sent == p->count)
        idt_watcher_stop (w);
}

static void run_pings (struct ping *p)
{
    idt_reactor_t *r = idt_get_reactor (cmd_connect_for (p->cmd, p->nodeid));

    if (!(p->hops = hops_create (p->cmd->h)))
        cmd_die (p->cmd, "out of memory");
    if (!r || !(p->timer = idt_timer_watcher_create (r, 0, p->interval_ms, send_cb, p)))
        cmd_die (p->cmd, "%s", strerror (errno));
    idt_watcher_start (p->timer);
    if (idt_reactor_run (r, IDT_REACTOR_DEFAULT) < 0)
        cmd_die (p->cmd, "connection lost: %s", strerror (errno));
    idt_watcher_destroy (p->timer);
    hops_destroy (p->hops);
}

static void take_pad (struct cmd *cmd, const char *arg, void *to)
{
    *(size_t *)to = cmd_number (cmd, "pad", arg, 0, PAD_MAX);
}

static void take_count (struct cmd *cmd, const char *arg, void *to)
{
    *(uint64_t *)to = cmd_number (cmd, "count", arg, 0, UINT32_MAX);
}

static void take_interval (struct cmd *cmd, const char *arg, void *to)
{
    *(double *)to = cmd_seconds (cmd, "interval", arg);
}

static int run (struct cmd *cmd)
{
    struct ping p = { .cmd = cmd, .count = COUNT_UNSAID, .interval_ms = 1000 };

    cmd_options (cmd, &p);
    if (p.count == COUNT_UNSAID)
        p.count = isatty (STDOUT_FILENO) ? 0 : COUNT_OF_SCRIPTS;
    parse_target (&p, cmd->argv[0]);
    if (!(p.pad = malloc (p.pad_size + 1)))
        cmd_die (cmd, "out of memory");
    memset (p.pad, 'p', p.pad_size);
    p.pad[p.pad_size] = '\0';
    run_pings (&p);
    free (p.pad);
    return p.failed ? CMD_FAILED : CMD_OK;
}

static const struct cmd_option options[] = {
    { CMD_LETTERS ('n', 'c'), "count", "N", "requests; 0: until interrupted (default: 0 on a terminal, else 4)",
      take_count, offsetof (struct ping, count) },
    { 'i', "interval", "S", "seconds between two requests (default 1)", take_interval,
      offsetof (struct ping, interval_ms) },
    { 'p', "pad", "BYTES", "enlarge requests by this many bytes", take_pad, offsetof (struct ping, pad_size) },
    CMD_OPTIONS_END,
};

const struct command ping_command = {
    .name = "ping",
    .operands = "RANK|SERVICE|RANK!SERVICE",
    .flags = CMD_CONNECTS,
    .summary = "Measure the round trip time to a rank or a service, and show the route",
    .details = "The ranks on the route are in parentheses.  RANK may be any: the nearest rank that has the service.",
    .example = "idtree ping -n 3 5!fluid",
    .json = "one object a line",
    .options = options,
    .run = run,
};
