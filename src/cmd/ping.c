/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ping.c - idtree ping: the round trip time of a request to a rank or a service, and its route
 *
 * The route of a message has UUIDs, and is printed as ranks.  No broker knows the UUIDs of all brokers, and a broker's
 * parent knows it by another UUID than its children do.  But as the tree is attached now, all hops are ancestors of one
 * end of the route, or these ends themselves.  So the command sends a request to each rank on the two lines from the
 * ends up to rank 0, unless the rank has already answered one.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <idtree/msg.h>
#include <idtree/reactor.h>

#include "cmd/base/ask.h"
#include "cmd/base/out.h"
#include "libutil/clock.h"

#define TOPIC_MAX 256
#define PAD_MAX (1024 * 1024) /* bytes */
#define COUNT_UNSAID UINT64_MAX
#define COUNT_OF_SCRIPTS 4  /* default of --count if stdout is not a terminal */
#define HOPS_TEXT 8192      /* bytes of a route as text, with its NUL */
#define HOPS_MAX 1024       /* ranks on two lines up to rank 0 */
#define HOP_TIMEOUT_MS 1000 /* a broker on the route answers soon, because it was connected a moment ago */

/* --- the route as ranks ---------------------------------------------------------------------- */

struct hop {
    char uuid[IDT_MSG_UUID_LEN + 1]; /* the broker's UUID as its children know it */
    char up[IDT_MSG_UUID_LEN + 1];   /* the broker's UUID as its parent knows it */
    uint32_t rank;
};

struct hops {
    idt_t *h;
    struct hop known[HOPS_MAX];
    size_t count;
};

static const struct hop *find_rank (const struct hops *hops, uint32_t rank)
{
    for (size_t i = 0; i < hops->count; i++)
        if (hops->known[i].rank == rank)
            return &hops->known[i];
    return NULL;
}

/* Get the UUIDs of a rank, and its parent (-1: none).  Returns false if the rank does not answer. */
static bool ask_hop (struct hops *hops, uint32_t rank, json_int_t *parent)
{
    assert (hops->count < HOPS_MAX);
    struct hop *hop = &hops->known[hops->count];
    idt_future_t *uuid = idt_rpc_pack (hops->h, "attr.get", rank, 0, "{s:s}", "name", "broker.uuid");
    idt_future_t *up = idt_rpc (hops->h, "overlay.stats-get", NULL, rank, 0);
    json_t *o = NULL, *name = NULL;
    const char *s;
    bool answered = uuid && up && idt_future_wait (uuid, HOP_TIMEOUT_MS) == 0
                    && idt_future_wait (up, HOP_TIMEOUT_MS) == 0 && idt_rpc_get_unpack (uuid, "{s:s}", "value", &s) == 0
                    && idt_rpc_get_unpack (up, "{s:o s:o}", "parent-rank", &o, "parent-hop", &name) == 0;

    if (answered) {
        snprintf (hop->uuid, sizeof (hop->uuid), "%s", s);
        snprintf (hop->up, sizeof (hop->up), "%s", json_is_string (name) ? json_string_value (name) : "-");
        hop->rank = rank;
        hops->count++;
        *parent = json_is_integer (o) ? json_integer_value (o) : -1;
    }
    idt_future_destroy (uuid);
    idt_future_destroy (up);
    return answered;
}

static void ask_line (struct hops *hops, uint32_t rank)
{
    json_int_t parent;

    while (hops->count < HOPS_MAX && !find_rank (hops, rank) && ask_hop (hops, rank, &parent) && parent >= 0)
        rank = (uint32_t)parent;
}

static const struct hop *find_uuid (const struct hops *hops, const char *s, size_t len)
{
    for (size_t i = 0; i < hops->count; i++)
        if (strncmp (hops->known[i].uuid, s, len) == 0 || strncmp (hops->known[i].up, s, len) == 0)
            return &hops->known[i];
    return NULL;
}

static size_t append (char text[HOPS_TEXT], size_t n, const char *s, size_t len)
{
    int more = snprintf (text + n, HOPS_TEXT - n, "%.*s!", (int)len, s);

    return more > 0 && n + (size_t)more < HOPS_TEXT ? n + (size_t)more : n;
}

/* Write the route as far as it is known.  Returns whether all hops are known. */
static bool write_text (const struct hops *hops, const char *route, uint32_t rank, char text[HOPS_TEXT])
{
    const char *s = route + strcspn (route, "!");
    bool all = true;
    size_t n = 0;
    char number[16];

    while (*s == '!') {
        size_t len = strcspn (++s, "!");
        const struct hop *hop = find_uuid (hops, s, len);

        if (hop)
            snprintf (number, sizeof (number), "%" PRIu32, hop->rank);
        n = hop ? append (text, n, number, strlen (number)) : append (text, n, s, len);
        all = all && hop;
        s += len;
    }
    snprintf (number, sizeof (number), "%" PRIu32, rank);
    n = append (text, n, number, strlen (number));
    text[n > 0 ? n - 1 : 0] = '\0';
    return all;
}

/* Write a route that ended at 'rank' into 'text' as "0!2!5".  'route' has UUIDs or prefixes of UUIDs, oldest first,
 * with '!' between them.  The first one is the client's, and is left out.  If a hop is not known yet, this function
 * requests the UUIDs of brokers and waits for the answers, which may take some seconds.  A hop that remains unknown is
 * copied unchanged.  Returns 'text'.
 */
static const char *hops_text (struct hops *hops, const char *route, uint32_t rank, char text[HOPS_TEXT])
{
    uint32_t own;

    if (write_text (hops, route, rank, text) || idt_get_rank (hops->h, &own) < 0)
        return text;
    hops->count = 0; /* the tree has changed: request all UUIDs again */
    ask_line (hops, own);
    ask_line (hops, rank);
    write_text (hops, route, rank, text);
    return text;
}

/* --- ping ------------------------------------------------------------------------------------ */

struct ping {
    struct cmd *cmd;
    uint64_t count; /* 0: no limit */
    double interval_ms;
    size_t pad_size;
    char *pad;
    uint32_t nodeid;
    char topic[TOPIC_MAX];
    uint64_t sent;
    uint64_t ended; /* number of requests that were answered or failed */
    uint64_t failed;
    idt_watcher_t *timer;
    struct hops hops;
};

static bool all_digits (const char *s, size_t len)
{
    return len > 0 && strspn (s, "0123456789") >= len;
}

/* Parse RANK, SERVICE or RANK!SERVICE.  "any" is a RANK, too. */
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
    hops_text (&p->hops, route, (uint32_t)rank, way);
    if (p->cmd->json)
        ask_print_new (p->cmd, json_pack ("{s:I s:s s:I s:f s:s}", "rank", rank, "topic", p->topic, "seq", seq, "time",
                                          (double)(ns / 1000) / 1e6, "route", way));
    else
        out_print ("%" JSON_INTEGER_FORMAT "!%s seq=%" JSON_INTEGER_FORMAT " time=%.3f ms (%s)\n", rank, p->topic, seq,
                   ns / 1e6, way);
    cmd_flush (p->cmd);
}

/* End the program, because later requests would not find the service either. */
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
    idt_reactor_t *r = idt_get_reactor (ask_connect_for (p->cmd, p->nodeid));

    p->hops.h = p->cmd->h;
    if (!r || !(p->timer = idt_timer_watcher_create (r, 0, p->interval_ms, send_cb, p)))
        cmd_die (p->cmd, "%s", strerror (errno));
    idt_watcher_start (p->timer);
    if (idt_reactor_run (r, IDT_REACTOR_DEFAULT) < 0)
        cmd_die (p->cmd, "connection lost: %s", strerror (errno));
    idt_watcher_destroy (p->timer);
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

static int run_ping (struct cmd *cmd)
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
    .run = run_ping,
};
