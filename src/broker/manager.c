/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* manager.c - the service manager that started this process, if any (sd_notify(3)) */
#include "config.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#if HAVE_LIBSYSTEMD
#include <systemd/sd-daemon.h>
#else
#define sd_notify(unset, text) ((void)(text))
#define sd_watchdog_enabled(unset, us) (*(us) = 0)
#endif

#include "broker/manager.h"

bool manager_reads_stderr (const char *journal_stream)
{
    uintmax_t dev, ino;
    struct stat st;
    int end = 0;

    return journal_stream && sscanf (journal_stream, "%ju:%ju%n", &dev, &ino, &end) == 2 && journal_stream[end] == '\0'
           && fstat (STDERR_FILENO, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

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

/* Write the sentence about the first of 'count' brokers to 'buf'. Returns 'buf'. */
static const char *status_text (const struct manager *m, const struct broker_status *s, uint32_t count,
                                char buf[MANAGER_TEXT])
{
    int n = m->term > 0 ? snprintf (buf, MANAGER_TEXT, "leads in term %" PRIu64 "; ", m->term) : 0;

    n += snprintf (buf + n, MANAGER_TEXT - n, "rank %u of %u %s", s->rank, s->size, said_of (s));
    if (s->state == STATE_RUN && !s->ready)
        n += snprintf (buf + n, MANAGER_TEXT - n, "; %u have joined, and %u must (broker.quorum)", s->joined,
                       s->quorum);
    if (count > 1)
        snprintf (buf + n, MANAGER_TEXT - n, " (%u more ranks in this process)", count - 1);
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
    char sentence[MANAGER_TEXT], text[MANAGER_TEXT + 64];
    struct broker_status s;
    uint32_t count = m->group ? broker_group_status (m->group, &s) : 0;

    if (count == 0)
        return;
    bool is_ready = s.ready && !m->ready;
    bool stops = s.state > STATE_RUN && !(m->has_told && m->told.state > STATE_RUN);

    if (m->has_told && is_same (&m->told, &s))
        return;
    snprintf (text, sizeof (text), "%s%sSTATUS=%s", is_ready ? "READY=1\n" : "", stops ? "STOPPING=1\n" : "",
              status_text (m, &s, count, sentence));
    sd_notify (0, text);
    m->told = s;
    m->has_told = true;
    m->ready |= is_ready;
}

static void beat_cb (idt_watcher_t *w, int revents, void *arg)
{
    sd_notify (0, "WATCHDOG=1");
}

int manager_init (struct manager *m, struct process *process)
{
    const char *socket = getenv ("NOTIFY_SOCKET");
    uint64_t us = 0;

    *m = (struct manager){ .process = process };
    if (!socket || !*socket)
        return 0;
    m->notifies = true;
    process_watch (process, watch, m);
    if (sd_watchdog_enabled (0, &us) <= 0)
        return 0;
    if (!(m->beat = idt_timer_watcher_create (process_reactor (process), us / 2E3, us / 2E3, beat_cb, m)))
        return -1;
    idt_watcher_start (m->beat);
    return 0;
}

void manager_set_group (struct manager *m, const struct broker_group *group)
{
    m->group = group;
}

void manager_stand_by (struct manager *m, bool is_ready, const char *sentence)
{
    char text[MANAGER_TEXT + 64];

    is_ready |= m->ready;
    if (!m->notifies || (is_ready == m->ready && strncmp (m->sentence, sentence, sizeof (m->sentence) - 1) == 0))
        return;
    snprintf (m->sentence, sizeof (m->sentence), "%s", sentence);
    snprintf (text, sizeof (text), "%sSTATUS=%s", is_ready && !m->ready ? "READY=1\n" : "", m->sentence);
    sd_notify (0, text);
    m->ready = is_ready;
}

void manager_lead (struct manager *m, uint64_t term)
{
    m->term = term;
}

void manager_fini (struct manager *m)
{
    process_watch (m->process, NULL, NULL);
    idt_watcher_destroy (m->beat);
}
