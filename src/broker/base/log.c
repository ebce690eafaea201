/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* log.c - the broker's log: a ring of RFC 5424 lines, levels, forwarding, dmesg */
#include "config.h"

#include <assert.h>
#include <czmq.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "broker/base/log.h"
#include "broker/base/msglist.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/text.h"

#define MAX_RING 1000000

enum level { LEVEL_RING, LEVEL_FORWARD, LEVEL_STDERR, LEVEL_COUNT };

static const struct {
    const char *name;
    const char *value;
} levels[LEVEL_COUNT] = {
    [LEVEL_RING] = { "log-level", "7" },
    [LEVEL_FORWARD] = { "log-forward-level", "6" },
    [LEVEL_STDERR] = { "log-stderr-level", "4" },
};

static const struct {
    const char *name; /* the NAME of its lines */
    const char *what;
} refusals[LOG_REFUSALS] = {
    [LOG_REFUSED_CLIENT] = { "local", "refusals of clients" },
    [LOG_REFUSED_HELLO] = { "overlay", "refusals of hellos" },
    [LOG_REFUSED_KEY] = { "overlay", "refusals of keys" },
};

struct log {
    struct log_limit limits[LOG_REFUSALS];
    uint32_t rank;
    int level[LEVEL_COUNT];
    zlistx_t *ring; /* lines, oldest first */
    uint32_t ring_size;
    bool with_priority;        /* stderr lines begin with their level */
    struct msglist *followers; /* streaming requests log.dmesg, which follow the log */
    uint64_t lines;            /* lines received in total */
    log_forward_f forward;
    void *forward_arg;
    bool has_readers;
    idt_t *h;
};

static bool is_level (const char *value)
{
    return strlen (value) == 1 && *value >= '0' && *value <= '7';
}

static int check_level (const char *value, void *arg, idt_error_t *errp)
{
    return is_level (value) ? 0 : errprintf (errp, "must be a level from 0 (emerg) to 7 (debug)");
}

/* Check log-forward-level or log-stderr-level. These may be -1 (no lines), which log-level may not. */
static int check_level_or_none (const char *value, void *arg, idt_error_t *errp)
{
    if (is_level (value) || strcmp (value, "-1") == 0)
        return 0;
    return errprintf (errp, "must be a level from 0 (emerg) to 7 (debug), or -1 for none");
}

static void take_level (const char *name, const char *value, void *arg)
{
    struct log *log = arg;

    for (int i = 0; i < LEVEL_COUNT; i++)
        if (strcmp (name, levels[i].name) == 0)
            log->level[i] = is_level (value) ? *value - '0' : -1;
}

static int define_attributes (struct log *log, struct attrs *attrs, idt_error_t *errp)
{
    for (int i = 0; i < LEVEL_COUNT; i++)
        if (attr_define (attrs, levels[i].name, levels[i].value, ATTR_SETTABLE, errp) < 0
            || attr_own (attrs, levels[i].name, i == LEVEL_RING ? check_level : check_level_or_none, take_level, log,
                         errp)
                   < 0)
            return -1;
    if (attr_switch (attrs, "log-stderr-priority", "0", &log->with_priority, errp) < 0)
        return -1;
    return attr_u32 (attrs, "log-ring-size", "1024", 1, MAX_RING, &log->ring_size, errp);
}

struct log *log_create (struct attrs *attrs, uint32_t rank, idt_error_t *errp)
{
    struct log *log = calloc (1, sizeof (*log));

    if (!log || !(log->ring = zlistx_new ()) || !(log->followers = msglist_create ())) {
        errprintf (errp, "out of memory");
        goto error;
    }
    zlistx_set_duplicator (log->ring, (czmq_duplicator *)strdup);
    zlistx_set_destructor (log->ring, (czmq_destructor *)zstr_free);
    log->rank = rank;
    if (define_attributes (log, attrs, errp) < 0)
        goto error;
    return log;
error:
    log_destroy (log);
    return NULL;
}

void log_destroy (struct log *log)
{
    if (!log)
        return;
    zlistx_destroy (&log->ring);
    msglist_destroy (log->followers);
    free (log);
}

/* --- limits ---------------------------------------------------------------------------------- */

static bool has_ended (const struct log_limit *l, double now)
{
    return now - l->since >= LOG_LIMIT_PERIOD_S;
}

/* If lines were left out, the period lasts until their number is reported, so that no number is lost. */
bool log_limit_take (struct log_limit *l, double now)
{
    if (l->lines == 0 || (has_ended (l, now) && l->left_out == 0))
        *l = (struct log_limit){ .since = now };
    assert (l->lines <= LOG_LIMIT_LINES);
    if (l->lines == LOG_LIMIT_LINES) {
        l->left_out++;
        return false;
    }
    l->lines++;
    return true;
}

unsigned long log_limit_left_out (struct log_limit *l, double now)
{
    unsigned long n = l->left_out;

    if (n == 0 || !has_ended (l, now))
        return 0;
    *l = (struct log_limit){ 0 };
    return n;
}

/* --- lines ---------------------------------------------------------------------------------- */

/* The severity of a line: its PRI divided by 8 (log.h); LOG_INFO if the line has no PRI. */
static int severity_of (const char *line)
{
    int pri;

    return sscanf (line, "<%d>", &pri) == 1 && pri >= 0 && pri < 64 ? pri >> 3 : LOG_INFO;
}

static bool is_own (const struct log *log, const char *line)
{
    uint32_t rank;

    return sscanf (line, "<%*d>%*s %*s %" SCNu32 " ", &rank) == 1 && rank == log->rank;
}

/* Print a line for people: `idtree: NAME[RANK]: TEXT`. */
static void show (const struct log *log, const char *line, int severity)
{
    char rank[16], name[64];
    int text = 0;

    if (log->with_priority)
        fprintf (stderr, "<%d>", severity);
    if (sscanf (line, "<%*d>%*s %*s %15s %63s %*s %*s %*s %n", rank, name, &text) == 2 && text > 0)
        fprintf (stderr, "idtree: %s[%s]: %s\n", name, rank, line + text);
    else
        fprintf (stderr, "idtree: %s\n", line);
}

static void add (struct log *log, const char *line)
{
    int severity = severity_of (line);
    bool forwarded = false;

    log->lines++;
    if (severity <= log->level[LEVEL_RING]) {
        if (zlistx_size (log->ring) == log->ring_size)
            zlistx_delete (log->ring, NULL); /* the oldest line */
        zlistx_add_end (log->ring, (void *)line);
        assert (zlistx_size (log->ring) <= log->ring_size);
        msglist_respond (log->followers, log->h, line);
    }
    if (log->forward && severity <= log->level[LEVEL_FORWARD])
        forwarded = log->forward (line, log->forward_arg);
    if (severity <= log->level[LEVEL_STDERR] && (!forwarded || (log->has_readers && is_own (log, line))))
        show (log, line, severity);
}

/* Add a complete RFC 5424 line. The line may come from another rank or a client, so the line is cut to LOG_LINE_MAX, a
 * tab becomes a blank, and other control characters and bytes that are not UTF-8 become '?'.
 */
static void append (struct log *log, const char *line, size_t len)
{
    char buf[LOG_LINE_MAX + 1];

    while (len > 0 && (line[len - 1] == '\0' || line[len - 1] == '\n'))
        len--;
    if (len > LOG_LINE_MAX)
        len = LOG_LINE_MAX;
    for (size_t i = 0; i < len; i++)
        buf[i] = line[i] == '\t' ? ' ' : line[i];
    buf[len] = '\0';
    utf8_clean_printable (buf, len);
    if (len > 0)
        add (log, buf);
}

static void log_vprintf (struct log *log, int level, const char *name, const char *fmt, va_list ap)
{
    char line[LOG_LINE_MAX + 1];
    char stamp[CLOCK_STAMP_SIZE];
    int n;

    n = snprintf (line, sizeof (line), "<%d>1 %s %u %s %d - - ", level << 3, clock_stamp (stamp), log->rank, name,
                  (int)getpid ());
    if (n < (int)sizeof (line))
        vsnprintf (line + n, sizeof (line) - n, fmt, ap);
    append (log, line, strlen (line));
}

void log_printf (struct log *log, int level, const char *name, const char *fmt, ...)
{
    int saved_errno = errno;
    va_list ap;

    va_start (ap, fmt);
    log_vprintf (log, level, name, fmt, ap);
    va_end (ap);
    errno = saved_errno;
}

void log_refusal (struct log *log, enum log_refusal kind, const char *fmt, ...)
{
    va_list ap;

    assert (kind < LOG_REFUSALS);
    if (!log_limit_take (&log->limits[kind], clock_s (CLOCK_MONOTONIC)))
        return;
    va_start (ap, fmt);
    log_vprintf (log, LOG_WARNING, refusals[kind].name, fmt, ap);
    va_end (ap);
}

void log_tell_left_out (struct log *log, double now)
{
    for (int i = 0; i < LOG_REFUSALS; i++) {
        unsigned long n = log_limit_left_out (&log->limits[i], now);

        if (n > 0)
            log_printf (log, LOG_WARNING, refusals[i].name, "%lu more %s were left out of this log", n,
                        refusals[i].what);
    }
}

void log_set_forward (struct log *log, log_forward_f cb, void *arg)
{
    log->forward = cb;
    log->forward_arg = arg;
}

void log_set_readers (struct log *log, bool has_readers)
{
    log->has_readers = has_readers;
}

/* --- service -------------------------------------------------------------------------------- */

static void append_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    const void *data;
    size_t size;

    if (idt_msg_payload (msg, &data, &size) == 0)
        append (arg, data, size);
}

static void dmesg_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct log *log = arg;
    int want_follow = 0, nobacklog = 0;
    idt_error_t err = { "" };
    json_t *o;

    if (idt_msg_unpack (msg, &o, &err, "{s?b s?b}", "follow", &want_follow, "nobacklog", &nobacklog) < 0) {
        idt_respond_error (h, msg, EPROTO, err.text);
        return;
    }
    json_decref (o);
    if (!idt_msg_has_flag (msg, IDT_MSGFLAG_STREAMING)) {
        idt_respond_error (h, msg, EPROTO, "log.dmesg must be sent as a streaming request");
        return;
    }
    if (want_follow && msglist_add (log->followers, msg, &err) < 0) {
        idt_respond_error (h, msg, errno, err.text);
        return;
    }
    for (const char *line = nobacklog ? NULL : zlistx_first (log->ring); line; line = zlistx_next (log->ring))
        idt_respond (h, msg, line);
    if (!want_follow)
        idt_respond_error (h, msg, ENODATA, NULL);
}

static void clear_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct log *log = arg;

    zlistx_purge (log->ring);
    idt_respond (h, msg, NULL);
}

static void stats_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    const struct log *log = arg;

    idt_respond_pack (h, msg, "{s:I s:I s:I s:I}", "lines", (json_int_t)log->lines, "kept",
                      (json_int_t)zlistx_size (log->ring), "room", (json_int_t)log->ring_size, "followers",
                      (json_int_t)msglist_count (log->followers));
}

static void disconnect_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct log *log = arg;

    msglist_disconnect (log->followers, msg);
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_REQUEST, "log.append", append_cb, 0 },
    { IDT_MSGTYPE_REQUEST | IDT_HANDLER_STREAM, "log.dmesg", dmesg_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "log.clear", clear_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "log.disconnect", disconnect_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "log.stats-get", stats_cb, 0 },
    IDT_HANDLERS_END,
};

int log_serve (struct log *log, idt_t *h)
{
    log->h = h;
    return idt_handlers_add (h, handlers, log);
}
