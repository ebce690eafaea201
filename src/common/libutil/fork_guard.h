/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fork_guard.h - detect that the calling process is a child, made by fork (), of the process that created an object
 *
 * The guard lies in pages that the kernel zeroes in a child (MADV_WIPEONFORK), so the check is a single load. On
 * kernels without that feature the check compares process ids, which needs a system call.
 */
#ifndef UTIL_FORK_GUARD_H
#define UTIL_FORK_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

struct fork_guard {
    bool armed; /* false in wiped pages */
    bool wiped_by_kernel;
    pid_t pid;
};

/* Bind 'guard' to the calling process. 'guard' must be at the start of 'size' bytes of whole pages, which a child finds
 * zeroed.
 */
static inline void fork_guard_arm (struct fork_guard *guard, size_t size)
{
    *guard = (struct fork_guard){ .armed = true, .pid = getpid () };
#ifdef MADV_WIPEONFORK
    guard->wiped_by_kernel = madvise (guard, size, MADV_WIPEONFORK) == 0;
#endif
}

static inline bool fork_guard_is_child (const struct fork_guard *guard)
{
    return !guard->armed || (!guard->wiped_by_kernel && guard->pid != getpid ());
}

/* Allocate 'size' bytes in pages of their own, all zero, with an armed guard at the start. Returns NULL with errno
 * ENOMEM.
 */
static inline void *fork_guard_create (size_t size)
{
    void *pages = mmap (NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (pages == MAP_FAILED)
        return NULL;
    fork_guard_arm (pages, size);
    return pages;
}

static inline void fork_guard_destroy (struct fork_guard *guard)
{
    munmap (guard, sizeof (*guard));
}

#endif /* UTIL_FORK_GUARD_H */
