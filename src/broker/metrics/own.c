/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* own.c - the figures of a broker, and the figures that one broker reports for the whole process */
#include "config.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "broker/metrics/own.h"

static void put_sum (struct metrics *m, const char *name, uint64_t value)
{
    metrics_put_new (m, METRICS_SUM, name, json_integer ((json_int_t)value));
}

static void put_max (struct metrics *m, const char *name, uint64_t value)
{
    metrics_put_new (m, METRICS_MAX, name, json_integer ((json_int_t)value));
}

static void put_router (const struct metrics_service_conf *conf, struct metrics *m)
{
    struct router_stats s = router_stats (conf->router);

    put_sum (m, "broker_requests", s.requests);
    put_sum (m, "broker_responses", s.responses);
    put_sum (m, "broker_failed", s.failed);
    put_sum (m, "broker_unroutable", s.unroutable);
    put_sum (m, "broker_pending", s.pending);
    put_sum (m, "broker_clients", usock_count (conf->local));
}

static void put_overlay (const struct metrics_service_conf *conf, struct metrics *m)
{
    struct overlay_load load = overlay_load (conf->overlay);

    put_sum (m, "overlay_links", load.links);
    put_sum (m, "overlay_adopted", load.adopted);
    put_sum (m, "overlay_waiting_messages", load.messages);
    put_sum (m, "overlay_waiting_bytes", load.bytes);
    put_max (m, "overlay_longest_queue_bytes", load.longest_bytes);
    put_sum (m, "overlay_refused", load.refused);
    put_sum (m, "overlay_failed", load.failed);
}

static void put_events (const struct metrics_service_conf *conf, struct metrics *m)
{
    struct event_stats s = event_stats (conf->event);

    put_max (m, "event_sequence", event_seq (conf->event));
    put_sum (m, "event_delivered", s.delivered);
    put_sum (m, "event_gaps", s.gaps);
    put_sum (m, "event_recovered", s.recovered);
    put_sum (m, "event_lost", s.lost);
    put_sum (m, "event_subscribers", s.subscribers);
}

/* --- the process ---------------------------------------------------------------------------------------- */

/* 0: cannot be read. */
static uint64_t resident_bytes (void)
{
    FILE *f = fopen ("/proc/self/statm", "re");
    unsigned long pages = 0;

    if (!f)
        return 0;
    if (fscanf (f, "%*u %lu", &pages) != 1)
        pages = 0;
    fclose (f);
    return (uint64_t)pages * (uint64_t)sysconf (_SC_PAGESIZE);
}

/* The number of open descriptors, without the one that reads the folder and the two dots. */
static uint64_t open_fds (void)
{
    DIR *dir = opendir ("/proc/self/fd");
    uint64_t count = 0;

    if (!dir)
        return 0;
    while (readdir (dir))
        count++;
    closedir (dir);
    return count > 3 ? count - 3 : 0;
}

static double cpu_seconds (void)
{
    struct rusage ru;

    if (getrusage (RUSAGE_SELF, &ru) < 0)
        return 0;
    return (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec)
           + (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * 1e-6;
}

static void put_process (struct metrics *m)
{
    uint64_t bytes = resident_bytes (), fds = open_fds ();
    struct rlimit limit = { 0, 0 };

    put_sum (m, "processes", 1);
    put_sum (m, "process_resident_memory_bytes", bytes);
    put_max (m, "process_largest_memory_bytes", bytes);
    put_sum (m, "process_open_fds", fds);
    metrics_put_new (m, METRICS_SUM, "process_cpu_seconds", json_real (cpu_seconds ()));
    if (getrlimit (RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > 0 && limit.rlim_cur != RLIM_INFINITY)
        metrics_put_new (m, METRICS_MAX, "process_fds_used_ratio",
                         json_real ((double)(fds * 10000 / limit.rlim_cur) / 1E4));
}

void own_put (const struct metrics_service_conf *conf, struct metrics *m)
{
    put_router (conf, m);
    put_overlay (conf, m);
    put_events (conf, m);
    if (conf->for_process)
        put_process (m);
}
