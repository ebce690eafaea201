/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* limits_test.c - the number of brokers that a host can run */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "cmd/launch/limits.h"
#include "test/tap.h"

static void test_made_up (void)
{
    static const struct limit limits[] = {
        { "open files", "ulimit -n", 1024, 32, 1, 0, false, 0, 0, 0, false, NULL },
        { "threads", "kernel.pid_max", 1000, 200, 4, 0, false, 0, 0, 0, false, NULL },
        { .what = "GiB of memory", .name = "memory", .kib = true, .limit = 3072000, .per_process = 3072 },
    };
    static const struct limit full = { "threads", "kernel.pid_max", 100, 200, 4, 0, false, 0, 0, 0, false, NULL };
    idt_error_t error = { "" };

    ok (limits_check (limits, 3, 1, 1, &error) == 0 && limits_check (limits, 3, 200, 200, &error) == 0,
        "an instance of the largest size that all limits allow is accepted");
    ok (limits_check (limits, 3, 201, 201, &error) < 0 && errno == EAGAIN,
        "one broker above the tightest limit fails with EAGAIN");
    ok (!strcmp (error.text, "201 brokers are too many for this host: they need 804 threads, and of 1000 "
                             "(kernel.pid_max) 200 are in use; at most 200 can run here"),
        "the message of a limit names the limit, its value and the largest size");
    ok (limits_check (limits, 1, 992, 992, NULL) == 0 && limits_check (limits, 1, 993, 993, NULL) < 0,
        "the check of limits counts what the launcher itself needs");
    ok (limits_check (&full, 1, 1, 1, &error) < 0 && strstr (error.text, "at most 0 can"),
        "a host on which a limit is used up can run no broker");
    ok (limits_check (&limits[2], 1, 1000000, 1000000, &error) < 0
            && strstr (error.text,
                       "they need 2929.7 GiB of memory, and of 2.9 (memory) 0.0 are in use; at most 1000 can"),
        "memory is counted in GiB: %s", error.text);
    ok (limits_check (NULL, 0, 1000000, 1, NULL) == 0, "a host without limits accepts any size");
}

/* Limits of processes that host 10 brokers each. */
static void test_shared (void)
{
    static const struct limit threads = { "threads", "kernel.pid_max", 1000, 200, 30, 1, false, 0, 0, 0, false, NULL };
    static const struct limit files = {
        "open files of a process", "ulimit -n", 100, 20, 0, 5, true, 0, 0, 0, false, NULL
    };
    idt_error_t error = { "" };

    ok (limits_check (&threads, 1, 200, 20, &error) == 0, "brokers that share processes need less of a limit");
    ok (limits_check (&threads, 1, 300, 30, &error) < 0 && strstr (error.text, "they need 1200 threads")
            && strstr (error.text, "at most 200 can run here"),
        "the message of a limit says how many brokers fit with the same number of brokers in each process: %s",
        error.text);
    ok (limits_check (&files, 1, 320, 20, &error) == 0 && limits_check (&files, 1, 321, 20, &error) < 0
            && strstr (error.text, "they need 85 open files of a process")
            && strstr (error.text, "at most 320 can run"),
        "a limit of each process is divided among the brokers of that process: %s", error.text);
}

/* The descriptors of links by inproc or ZeroMQ, and of the sockets that some of 300 brokers have. */
static void test_some (void)
{
    static const struct limit links = { .what = "open files of a process",
                                        .name = "ulimit -n",
                                        .limit = 1000,
                                        .used = 100,
                                        .each = true,
                                        .together = 1600,
                                        .remedy = "pigs might fly" };
    static const struct limit sockets = { .what = "open files of a process",
                                          .name = "ulimit -n",
                                          .limit = 1000,
                                          .used = 100,
                                          .each = true,
                                          .together = 600,
                                          .per_some = 1,
                                          .of_some = 250 };
    static const struct limit none = {
        .what = "open files of a process", .name = "ulimit -n", .limit = 1000, .used = 999, .each = true
    };
    idt_error_t error = { "" };

    ok (limits_check (&links, 1, 300, 2, &error) == 0 && limits_check (&links, 1, 300, 1, &error) < 0
            && strstr (error.text, "they need 1600 open files of a process")
            && strstr (error.text, "at most 168 can run here: pigs might fly"),
        "the needs of all brokers together are divided among the processes, and the message of the limit has its "
        "advice: %s",
        error.text);
    ok (limits_check (&sockets, 1, 300, 1, NULL) == 0, "a need of only some brokers is added to the need of a process");
    ok (limits_check (&sockets, 1, 90000, 300, NULL) == 0 && limits_check (&sockets, 1, 90000, 100, &error) == 0,
        "a need of only some brokers counts for at most as many brokers as a process has");
    struct limit more = sockets;
    more.of_some = 301;
    more.limit = 999;
    ok (limits_check (&more, 1, 300, 1, &error) < 0 && strstr (error.text, "they need 900 open files")
            && strstr (error.text, "at most 299 can run"),
        "a limit that is one file too low is refused: %s", error.text);
    ok (limits_check (&none, 1, 1000000, 1, NULL) == 0,
        "links in memory need no descriptors, for any number of brokers");
}

static void test_this_host (bool shared)
{
    const struct limits_for what = { .shared = shared, .link_files = 4, .sockets = 2 };
    struct limit limits[LIMITS_MAX];
    struct rlimit r;
    int count = limits_read (limits, &what), sound = 0;

    for (int i = 0; i < count; i++) {
        diag ("%s (%s): %llu of %llu", limits[i].what, limits[i].name, (unsigned long long)limits[i].used,
              (unsigned long long)limits[i].limit);
        sound += limits[i].limit > 0 && limits[i].per_process + limits[i].per_broker + limits[i].of_some > 0;
    }
    ok (count > 0 && count <= LIMITS_MAX && sound == count, "the host of this test has %d limits", count);
    ok (getrlimit (RLIMIT_NOFILE, &r) == 0 && r.rlim_cur == r.rlim_max,
        "the launcher raises its limit of open files to the maximum");
}

int main (void)
{
    test_made_up ();
    test_shared ();
    test_some ();
    test_this_host (false);
    test_this_host (true);
    return done_testing ();
}
