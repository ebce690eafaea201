/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* failing_alloc.h - lets an allocation of the tested library fail
 *
 * The linker replaces the allocation functions by these: -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup.
 * A test program that includes this file is one translation unit, as with test/tap.h.
 */
#ifndef TEST_FAILING_ALLOC_H
#define TEST_FAILING_ALLOC_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

/* Shared libraries must find these functions, too, because they call the functions of libc that this test replaces. */
#pragma GCC visibility push(default)

void *__real_malloc (size_t size);
void *__real_calloc (size_t n, size_t size);
void *__real_realloc (void *p, size_t size);
char *__real_strdup (const char *s);
void *__wrap_malloc (size_t size);
void *__wrap_calloc (size_t n, size_t size);
void *__wrap_realloc (void *p, size_t size);
char *__wrap_strdup (const char *s);

static int countdown = -1; /* number of allocations until one fails; negative: none fails */
static int failures;

static bool fails (void)
{
    if (countdown < 0 || countdown-- > 0)
        return false;
    failures++;
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc (size_t size)
{
    return fails () ? NULL : __real_malloc (size);
}

void *__wrap_calloc (size_t n, size_t size)
{
    return fails () ? NULL : __real_calloc (n, size);
}

void *__wrap_realloc (void *p, size_t size)
{
    return fails () ? NULL : __real_realloc (p, size);
}

char *__wrap_strdup (const char *s)
{
    return fails () ? NULL : __real_strdup (s);
}

#endif /* TEST_FAILING_ALLOC_H */
