/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* failing_pages.h - a kernel that has no pages, or does not wipe them in a child process (libutil/fork_guard.h)
 *
 * The linker replaces system calls by these functions: -Wl,--wrap=mmap,--wrap=madvise,--wrap=getpid. A test program is
 * one translation unit.
 */
#ifndef TEST_FAILING_PAGES_H
#define TEST_FAILING_PAGES_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/types.h>

/* Shared libraries must find these functions, too, because they call the functions of libc that this test replaces. */
#pragma GCC visibility push(default)

void *__real_mmap (void *at, size_t size, int protection, int flags, int fd, off_t offset);
int __real_madvise (void *at, size_t size, int advice);
pid_t __real_getpid (void);
void *__wrap_mmap (void *at, size_t size, int protection, int flags, int fd, off_t offset);
int __wrap_madvise (void *at, size_t size, int advice);
pid_t __wrap_getpid (void);

static bool no_pages, no_wiping;
static pid_t generation; /* added to the process id, so that a change looks like a fork () */

void *__wrap_mmap (void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (!no_pages)
        return __real_mmap (at, size, protection, flags, fd, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}

int __wrap_madvise (void *at, size_t size, int advice)
{
    if (!no_wiping)
        return __real_madvise (at, size, advice);
    errno = EINVAL;
    return -1;
}

pid_t __wrap_getpid (void)
{
    return __real_getpid () + generation;
}

#endif /* TEST_FAILING_PAGES_H */
