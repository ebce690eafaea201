/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* manager.c - the service manager that started this process, if any (sd_notify(3))
 *
 * The brokers do not call this object. It compares their status before the reactor sleeps, and sends changes.
 */
#include "config.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#if HAVE_LIBSYSTEMD
#include <systemd/sd-daemon.h>
#endif

#include "broker/manager.h"

struct manager {
    struct process *process;
    const struct broker_group *group;
    struct broker_status told;
    bool has_told;
    bool ready;
    idt_watcher_t *beat; /* NULL: no watchdog */
};

#if HAVE_LIBSYSTEMD

static void send_text (const char *text)
{
    sd_notify (0, text);
}

static bool is_there (void)
{
    const char *socket = getenv ("NOTIFY_SOCKET");

    return socket && *socket;
}

static uint64_t watchdog_us (void)
{
    uint64_t us;

    return sd_watchdog_enabled (0, &us) > 0 ? us : 0;
}

#else

static void send_text (const char *text)
{
}

static bool is_there (void)
{
    return false;
}

static uint64_t watchdog_us (void)
{
    return 0;
}

#endif

bool manager_reads_stderr (const char *journal_stream)
{
    uintmax_t dev, ino;
    struct stat st;
    int end = 0;

    return journal_stream && sscanf (journal_stream, "%ju:%ju%n", &dev, &ino, &end) == 2 && journal_stream[end] == '\0'
           && fstat (STDERR_FILENO, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

/* --- notifications ---------------------------------------------------------------------------------- */

static const char *said_of (const struct broker_status *s)
{
    switch (s->state) {
    case STATE_JOIN:
        return s->rank == 0 ? "starts" : "waits for an ancestor";
    case STATE_RUN:
        if (!s->has_parent)
            return s->full ? "serves; no ancestor answers"
                           : "serves; no ancestor answers, and ranks below it are missing";
        return s->full ? "serves" : "serves; ranks below it are missing";
    case STATE_CLEANUP:
        return "stops: waits for ranks below it";
    case STATE_SHUTDOWN:
    case STATE_EXIT:
        break;
    }
    return "stops";
}

const char *manager_text (const struct broker_status *s, uint32_t count, char buf[MANAGER_TEXT_SIZE])
{
    int n = snprintf (buf, MANAGER_TEXT_SIZE, "rank %u of %u %s", s->rank, s->size, said_of (s));

    if (s->state == STATE_RUN && !s->ready)
        n += snprintf (buf + n, MANAGER_TEXT_SIZE - n, "; %u have joined, and %u must (broker.quorum)", s->joined,
                       s->quorum);
    if (count > 1)
        snprintf (buf + n, MANAGER_TEXT_SIZE - n, " (%u more ranks in this process)", count - 1);
    return buf;
}

static bool is_same (const struct broker_status *a, const struct broker_status *b)
{
    return a->state == b->state && a->has_parent == b->has_parent && a->full == b->full && a->ready == b->ready
           && (a->ready || a->joined == b->joined);
}

static void watch (void *arg)
{
    struct manager *m = arg;
    char sentence[MANAGER_TEXT_SIZE], text[MANAGER_TEXT_SIZE + 64];
    struct broker_status s;
    uint32_t count = broker_group_status (m->group, &s);
    bool is_ready = s.ready && !m->ready;
    bool stops = s.state > STATE_RUN && !(m->has_told && m->told.state > STATE_RUN);

    if (m->has_told && is_same (&m->told, &s))
        return;
    snprintf (text, sizeof (text), "%s%sSTATUS=%s", is_ready ? "READY=1\n" : "", stops ? "STOPPING=1\n" : "",
              manager_text (&s, count, sentence));
    send_text (text);
    m->told = s;
    m->has_told = true;
    m->ready |= is_ready;
}

static void beat_cb (idt_watcher_t *w, int revents, void *arg)
{
    send_text ("WATCHDOG=1");
}

/* --- life -------------------------------------------------------------------------------------------- */

static int start_beat (struct manager *m, uint64_t us)
{
    double ms = us / 1E3 / 2;

    if (us == 0)
        return 0;
    if (!(m->beat = idt_timer_watcher_create (process_reactor (m->process), ms, ms, beat_cb, m)))
        return -1;
    idt_watcher_start (m->beat);
    return 0;
}

struct manager *manager_create (struct process *process, const struct broker_group *group)
{
    struct manager *m = calloc (1, sizeof (*m));

    if (!m)
        return NULL;
    m->process = process;
    m->group = group;
    if (!is_there ())
        return m;
    if (start_beat (m, watchdog_us ()) < 0) {
        free (m);
        errno = ENOMEM;
        return NULL;
    }
    process_watch (process, watch, m);
    return m;
}

void manager_destroy (struct manager *m)
{
    if (!m)
        return;
    process_watch (m->process, NULL, NULL);
    idt_watcher_destroy (m->beat);
    free (m);
}
