/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ask.c - the connection of a command: connect to a broker, send requests to one or many ranks, wait for the answers
 *
 * If no answer arrives, this file probes in this order: the broker that the command is connected to, the broker of the
 * requested rank, and the service on that rank.  The error message names the first one that does not answer.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cmd/base/ask.h"
#include "cmd/base/out.h"
#include "libutil/clock.h"
#include "libutil/minmax.h"
#include "libutil/text.h"

#define POLL_MAX_MS 86400000
#define OWN_ATTRIBUTE "router.max-pending" /* each broker of idtree has this attribute, and no broker of Flux */
#define PROBE_MS 2000.                     /* timeout of a ping after another request timed out */
#define WINDOW 512                         /* most requests in flight */
#define LONGEST_MS 600000.                 /* longest time that a broker waits for the ranks below it */
#define PART_OF_TIMEOUT 7. / 8.            /* brokers get this part of --timeout; the answer's way needs the rest */

const char *ask_uri (const struct cmd *cmd)
{
    if (cmd->h)
        return idt_get_uri (cmd->h);
    return cmd->uri ? cmd->uri : idt_default_uri ();
}

/* --- a limit of time ------------------------------------------------------------------------- */

/* End the program with a message when the time of the guard is over, unless the guarded call has ended before. */
static void *watch (void *arg)
{
    struct guard *g = arg;
    struct pollfd ended = { .fd = g->ended_fd, .events = POLLIN };
    uint64_t now_ms;

    while ((now_ms = clock_ms (CLOCK_MONOTONIC)) < g->until_ms)
        if (poll (&ended, 1, (int)min_u64 (g->until_ms - now_ms, POLL_MAX_MS)) == 1)
            return NULL;
    cmd_die (g->cmd, "no answer within %g s: the broker at %s does not answer: is it stopped, or overloaded?",
             g->cmd->timeout_ms / 1000, ask_uri (g->cmd));
}

void guard_begin (struct guard *g, const struct cmd *cmd)
{
    int rc;

    *g = (struct guard){ .cmd = cmd };
    if (cmd->timeout_ms < 0)
        return;
    g->until_ms = clock_ms (CLOCK_MONOTONIC) + (uint64_t)cmd->timeout_ms;
    if ((g->ended_fd = eventfd (0, EFD_CLOEXEC)) < 0)
        cmd_die (cmd, "cannot create an eventfd: %s", strerror (errno));
    if ((rc = pthread_create (&g->thread, NULL, watch, g)) != 0)
        cmd_die (cmd, "cannot start a thread: %s", strerror (rc));
    g->armed = true;
}

void guard_end (struct guard *g)
{
    int saved_errno = errno;

    if (g->armed) {
        eventfd_write (g->ended_fd, 1);
        pthread_join (g->thread, NULL);
        close (g->ended_fd);
    }
    g->armed = false;
    errno = saved_errno;
}

/* --- the connection -------------------------------------------------------------------------- */

idt_t *ask_try_connect (struct cmd *cmd, idt_error_t *errp)
{
    idt_error_t error;

    if (cmd->h)
        return cmd->h;
    cmd->h = idt_open_ex (cmd->uri,
                          &(struct idt_open_options){ .flags = cmd->open_flags, .timeout_ms = cmd->timeout_ms },
                          &error);
    if (!cmd->h && cmd->uri && errno == EINVAL)
        cmd_usage (cmd, "--uri %s", error.text);
    if (!cmd->h && errno == ETIMEDOUT)
        cmd_die (cmd, "no answer within %g s: %s", cmd->timeout_ms / 1000, error.text);
    if (!cmd->h && errp)
        *errp = error;
    return cmd->h;
}

uint32_t ask_own_rank (const struct cmd *cmd)
{
    struct guard guard;
    uint32_t rank;

    assert (cmd->h);
    guard_begin (&guard, cmd);
    if (idt_get_rank (cmd->h, &rank) < 0)
        cmd_die (cmd, "rank: %s", strerror (errno));
    guard_end (&guard);
    return rank;
}

static uint32_t get_size (struct cmd *cmd)
{
    struct guard guard;
    uint32_t size;

    guard_begin (&guard, cmd);
    if (idt_get_size (cmd->h, &size) < 0)
        cmd_die (cmd, "size: %s", strerror (errno));
    guard_end (&guard);
    return size;
}

__attribute__ ((noreturn)) static void die_unconnected (struct cmd *cmd, const idt_error_t *error)
{
    if (errno == ENOENT || errno == ECONNREFUSED)
        cmd_die (cmd, "%s; start one with idtree start, or name another with --uri or IDTREE_URI", error->text);
    cmd_die (cmd, "%s", error->text);
}

idt_t *ask_connect (struct cmd *cmd)
{
    idt_error_t error;

    if (!ask_try_connect (cmd, &error))
        die_unconnected (cmd, &error);
    return cmd->h;
}

idt_t *ask_connect_for (struct cmd *cmd, uint32_t rank)
{
    idt_t *h = ask_connect (cmd);
    uint32_t size = rank == IDT_NODEID_ANY ? 0 : get_size (cmd);

    if (rank != IDT_NODEID_ANY && rank >= size)
        cmd_die (cmd, "there is no rank %u: the instance has ranks 0 to %u", rank, size - 1);
    return h;
}

/* Whether the connected broker belongs to Flux: it answers ENOENT for the attribute that only brokers of idtree have.
 * After any other failure the result is false, because the caller's next request then fails, too, and reports the
 * error.
 */
bool ask_is_flux (const struct cmd *cmd)
{
    struct guard guard;

    assert (cmd->h);
    guard_begin (&guard, cmd);
    bool is_flux = !idt_attr_get (cmd->h, OWN_ATTRIBUTE) && errno == ENOENT;
    guard_end (&guard);
    return is_flux;
}

idt_t *ask_try_connect_own (struct cmd *cmd)
{
    idt_t *h;
    struct guard guard;
    idt_error_t error;

    if (!(h = ask_try_connect (cmd, &error)) && errno == ECONNRESET)
        return NULL;
    if (!h)
        die_unconnected (cmd, &error);
    guard_begin (&guard, cmd);
    const char *own = idt_attr_get (h, OWN_ATTRIBUTE);
    if (!own && (errno == ECONNRESET || errno == EPIPE)) {
        guard_end (&guard);
        errno = ECONNRESET;
        return NULL;
    }
    if (!own && errno != ENOENT)
        cmd_die (cmd, OWN_ATTRIBUTE ": %s", strerror (errno));
    const char *version = own ? NULL : idt_attr_get (h, "version");
    guard_end (&guard);
    if (own)
        return h;
    cmd_die (cmd,
             "the broker at %s belongs to Flux%s%s, not to idtree: stop, change and use it with the command flux; "
             "nothing was done",
             idt_get_uri (h), version ? " " : "", version ? version : "");
}

idt_t *ask_connect_own (struct cmd *cmd)
{
    idt_t *h = ask_try_connect_own (cmd);

    if (!h)
        cmd_die (cmd, "the broker at %s closed the connection", ask_uri (cmd));
    return h;
}

/* --- no answer ------------------------------------------------------------------------------- */

/* Whether a service answers a ping.  An error counts as an answer, except EHOSTUNREACH. */
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
        snprintf (buf, size, "the broker at %s does not answer: is it stopped, or overloaded?", ask_uri (cmd));
    else if (rank != IDT_NODEID_ANY && !answers (cmd, "broker", rank))
        snprintf (buf, size, "rank %" PRIu32 " or a broker on the way to it does not answer; the broker at %s does",
                  rank, ask_uri (cmd));
    else if (!answers (cmd, service, rank))
        snprintf (buf, size, "the service %s %s does not answer, its broker does (%s)", service, where, ask_uri (cmd));
    else
        snprintf (buf, size,
                  "the service %s %s runs (%s), but waits for other ranks or services itself: idtree health shows "
                  "which",
                  service, where, ask_uri (cmd));
}

void ask_blame (const struct cmd *cmd, const char *what)
{
    char who[512];

    assert (cmd->h && *cmd->asked.service);
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
    idt_future_t *f = idt_rpc (ask_connect_for (cmd, nodeid), topic, s, nodeid, flags);

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
        cmd_die (cmd, "%s: the broker at %s closed the connection", what, ask_uri (cmd));
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
    if (f && idt_future_errnum (f) == ENOSYS && cmd->h && ask_is_flux (cmd))
        cmd_die (cmd, "%s: %s: the broker at %s belongs to Flux, where idtree serves " ASK_IN_FLUX, what,
                 idt_future_error (f), ask_uri (cmd));
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

void ask_print (const struct cmd *cmd, const json_t *o)
{
    if (out_json (o, JSON_COMPACT | ASK_REALS) < 0)
        cmd_die (cmd, "out of memory");
    out_print ("\n");
    if (ferror (stdout))
        cmd_flush (cmd);
}

void ask_print_new (const struct cmd *cmd, json_t *o)
{
    ask_print (cmd, o);
    json_decref (o);
}

void ask_print_lines (const struct cmd *cmd, const json_t *array)
{
    size_t i;
    json_t *one;

    json_array_foreach ((json_t *)array, i, one)
        ask_print (cmd, one);
}

idt_future_t *ask_attr (struct cmd *cmd, uint32_t nodeid, const char *name)
{
    return ask_ready (cmd, ask_send (cmd, "attr.get", nodeid, json_pack ("{s:s}", "name", name)), name);
}

/* --- many ranks ------------------------------------------------------------------------------ */

bool ranks_are_many (const char *text)
{
    return text && strspn (text, "0123456789") != strlen (text);
}

static bool names (const char *text, uint32_t rank)
{
    return !strcmp (text, "all") || ranges_have (text, rank) > 0;
}

/* Check that 'text' is "all" or a list of ranks of this instance, or end the program.  Returns the size of the
 * instance.
 */
static uint32_t check (struct cmd *cmd, const char *text)
{
    char quoted[CMD_QUOTE_MAX];
    uint32_t last = 0;
    int any = strcmp (text, "all") ? ranges_last (text, &last) : 1;

    if (any <= 0)
        cmd_usage (cmd, "'%s': ranks such as 0-3,17 are needed, or all", cmd_quote (text, strlen (text), quoted));
    ask_connect_for (cmd, last);
    return get_size (cmd);
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

int ranks_warn (struct cmd *cmd, const json_t *failed, const char *which)
{
    json_t *noted = ranks_noted_new (cmd, failed), *ranks;
    int status = json_object_size (noted) > 0 ? CMD_FAILED : CMD_OK;
    const char *why;

    json_object_foreach (noted, why, ranks)
        cmd_warn (cmd, "%s %s: %s", which, json_string_value (ranks), why);
    json_decref (noted);
    return status;
}

/* --- a subtree ------------------------------------------------------------------------------- */

json_t *subtree_request_new (const struct cmd *cmd, uint32_t rank)
{
    double ms = cmd->timeout_ms * PART_OF_TIMEOUT;

    ms = ms < 0 || ms > LONGEST_MS ? LONGEST_MS : ms < 1 ? 1 : ms;
    json_t *request = json_pack ("{s:I s:I}", "rank", (json_int_t)rank, "timeout_ms", (json_int_t)ms);
    if (!request)
        cmd_die (cmd, "out of memory");
    return request;
}

/* A broker that does not know the request answers EPERM to a guest, because it treats an unknown request like those
 * that only the owner may send.
 */
json_t *subtree_report_new (struct cmd *cmd, json_t *request, const char *what)
{
    idt_future_t *f = ask_ready (cmd, ask_send (cmd, "metrics.get", IDT_NODEID_ANY, request), what);

    if (idt_future_errnum (f) != ENOSYS && idt_future_errnum (f) != EPERM)
        return ask_take_new (cmd, f, what);
    idt_future_destroy (f);
    return NULL;
}

json_t *subtree_topology_new (struct cmd *cmd, uint32_t rank)
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

struct ranks subtree_ranks (struct cmd *cmd, uint32_t rank)
{
    json_t *o = subtree_topology_new (cmd, rank);
    size_t size = (size_t)json_integer_value (json_object_get (o, "size"));
    struct ranks ranks = { .rank = calloc (size + 1, sizeof (ranks.rank[0])) };

    if (!ranks.rank)
        cmd_die (cmd, "out of memory");
    add_subtree (&ranks, size, o);
    qsort (ranks.rank, ranks.n, sizeof (ranks.rank[0]), by_number);
    json_decref (o);
    return ranks;
}
