/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fork_guard.h - tells a child process that what it has is its parent's
 *
 * The guard lies in pages that the kernel wipes in a child (MADV_WIPEONFORK), so that asking costs a load.  Where the
 * kernel can't, process ids are compared, which costs a system call.
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

static inline bool fork_guard_wipe (void *pages, size_t size)
{
#ifdef MADV_WIPEONFORK
    return madvise (pages, size, MADV_WIPEONFORK) == 0;
#else
    (void)pages, (void)size;
    return false;
#endif
}

/* From now on 'guard', which is the beginning of pages of 'size' bytes, knows this process. */
static inline void fork_guard_arm (struct fork_guard *guard, size_t size)
{
    *guard = (struct fork_guard){ true, fork_guard_wipe (guard, size), getpid () };
}

static inline bool fork_guard_is_child (const struct fork_guard *guard)
{
    return !guard->armed || (!guard->wiped_by_kernel && guard->pid != getpid ());
}

/* 'size' bytes of pages of their own: a guard that is armed, and what comes behind it, all zero.  Returns NULL with
 * errno ENOMEM.
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
