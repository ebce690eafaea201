/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* files.c - how many open files a broker needs */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "broker/base/files.h"
#include "libutil/errprintf.h"

#define OWN 40 /* rank 0 with all modules has 35 open, and a few more temporarily */

uint64_t files_need (uint64_t children)
{
    return 2 * (OWN + children);
}

uint64_t files_open (void)
{
    DIR *dir = opendir ("/proc/self/fd");
    struct dirent *entry;
    uint64_t n = 0;

    while (dir && (entry = readdir (dir)))
        n += entry->d_name[0] != '.' && atoi (entry->d_name) > 2 && atoi (entry->d_name) != dirfd (dir);
    if (dir)
        closedir (dir);
    return n;
}

int files_check (uint64_t children, uint64_t inherited, idt_error_t *errp)
{
    uint64_t need = files_need (children) + inherited;
    struct rlimit r;

    if (getrlimit (RLIMIT_NOFILE, &r) < 0 || r.rlim_max == RLIM_INFINITY || r.rlim_max >= need)
        return 0;
    return errsetf (errp, EMFILE,
                    "a process may have %ju open files (ulimit -Hn), and a broker needs %" PRIu64 " (children: %" PRIu64
                    ", files that were open before: %" PRIu64 "): raise the limit",
                    (uintmax_t)r.rlim_max, need, children, inherited);
}
