/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* limits_test.c - how many brokers a host can carry */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "cmd/launch/limits.h"
#include "libutil/tap.h"

static void test_made_up (void)
{
    static const struct limit limits[] = {
        { "open files", "ulimit -n", 1024, 32, 1 },
        { "threads", "kernel.pid_max", 1000, 200, 4 },
        { "KiB of memory", "memory", 3072000, 0, 3072 },
    };
    static const struct limit full = { "threads", "kernel.pid_max", 100, 200, 4 };
    idt_error_t error = { "" };

    ok (limits_check (limits, 3, 1, &error) == 0 && limits_check (limits, 3, 200, &error) == 0,
        "what fits in all limits is allowed, up to the tightest");
    ok (limits_check (limits, 3, 201, &error) < 0 && errno == EAGAIN, "EAGAIN: one more");
    ok (!strcmp (error.text, "201 brokers are too many for this host: they need 804 threads, and of 1000 "
                             "(kernel.pid_max) 200 are in use; at most 200 can run here"),
        "the sentence names the limit, its value and the largest size");
    ok (limits_check (limits, 1, 992, NULL) == 0 && limits_check (limits, 1, 993, NULL) < 0,
        "what the launcher needs for itself counts");
    ok (limits_check (&full, 1, 1, &error) < 0 && strstr (error.text, "at most 0 can"),
        "a host that is full carries none");
    ok (limits_check (NULL, 0, 1000000, NULL) == 0, "no limits, no refusal");
}

static void test_this_host (void)
{
    struct limit limits[LIMITS_MAX];
    struct rlimit r;
    int count = limits_read (limits), sound = 0;

    for (int i = 0; i < count; i++) {
        diag ("%s (%s): %llu of %llu", limits[i].what, limits[i].name, (unsigned long long)limits[i].used,
              (unsigned long long)limits[i].limit);
        sound += limits[i].limit > 0 && limits[i].per_broker > 0;
    }
    ok (count > 0 && count <= LIMITS_MAX && sound == count, "this host has %d limits", count);
    ok (getrlimit (RLIMIT_NOFILE, &r) == 0 && r.rlim_cur == r.rlim_max,
        "the limit of open files is as high as it may be");
}

int main (void)
{
    test_made_up ();
    test_this_host ();
    return done_testing ();
}
