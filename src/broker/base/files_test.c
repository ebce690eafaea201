/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* files_test.c - a broker that would have too few descriptors does not start */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "broker/base/files.h"
#include "test/tap.h"

/* The limit that the test itself has is only lowered, so it goes from high to low. */
static bool limit (rlim_t n)
{
    struct rlimit r = { .rlim_cur = 16, .rlim_max = n };

    return setrlimit (RLIMIT_NOFILE, &r) == 0;
}

int main (int argc, char **argv)
{
    idt_error_t err = { "" };
    char need[64];

    for (int fd = 3; fd < 1024; fd++) /* what the caller of this test left open */
        close (fd);
    ok (files_need (0) < files_need (1) && files_need (1) < files_need (32), "each child needs more");
    ok (files_check (0, 0, &err) == 0 && files_open () == 0, "what is usual is enough: %s", err.text);
    ok (limit (files_need (32)) && files_check (32, 0, &err) == 0 && files_check (33, 0, &err) < 0 && errno == EMFILE,
        "the hard limit counts, to one child");
    snprintf (need, sizeof (need), "needs %ju (children: 33,", (uintmax_t)files_need (33));
    ok (strstr (err.text, need) && strstr (err.text, "(ulimit -Hn)"), "the sentence has both: %s", err.text);
    int fd = dup (1);
    ok (fd > 2 && files_open () == 1 && files_check (32, files_open (), &err) < 0,
        "what was inherited is not there to be had");
    return done_testing ();
}
