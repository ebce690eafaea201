/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* files_test.c - a broker with too few descriptors does not start */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "broker/base/plan.h"
#include "test/tap.h"

/* Lower the limit of open files. A process cannot raise it again, so the tests begin with the highest limit. */
static bool limit (rlim_t n)
{
    struct rlimit r = { .rlim_cur = 16, .rlim_max = n };

    return setrlimit (RLIMIT_NOFILE, &r) == 0;
}

int main (int argc, char **argv)
{
    idt_error_t err = { "" };
    char need[64];

    for (int fd = 3; fd < 1024; fd++) /* files that the program that runs this test left open */
        close (fd);
    ok (plan_files_need (0) < plan_files_need (1) && plan_files_need (1) < plan_files_need (32),
        "each further child needs more descriptors");
    ok (plan_files_check (0, 0, &err) == 0 && plan_files_open (3) == 0,
        "a usual limit of open files is enough for a broker: %s", err.text);
    ok (limit (plan_files_need (32)) && plan_files_check (32, 0, &err) == 0 && plan_files_check (33, 0, &err) < 0
            && errno == EMFILE,
        "the check of the hard limit of open files is exact to one child");
    snprintf (need, sizeof (need), "needs %ju (children: 33,", (uintmax_t)plan_files_need (33));
    ok (strstr (err.text, need) && strstr (err.text, "(ulimit -Hn)"),
        "the error for too few open files has the number needed and the limit: %s", err.text);
    int fd = dup (1);
    ok (fd > 2 && plan_files_open (3) == 1 && plan_files_check (32, plan_files_open (3), &err) < 0,
        "the broker cannot use the descriptors of inherited files");
    return done_testing ();
}
