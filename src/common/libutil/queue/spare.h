/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* spare.h - blocks of one size that are kept for the next that is needed, for one thread
 *
 * What comes and goes with each request is allocated once.  No more is kept than SPARE_BYTES.
 */
#ifndef UTIL_SPARE_H
#define UTIL_SPARE_H

#include <stddef.h>
#include <stdlib.h>

#define SPARE_BYTES ((size_t)64 << 10)

struct spare {
    size_t size; /* of a block, at least that of a pointer */
    size_t bytes;
    void *first; /* each begins with the address of the next */
};

static inline void spare_init (struct spare *s, size_t size)
{
    *s = (struct spare){ .size = size };
}

/* A block, with anything in it.  NULL with errno ENOMEM. */
static inline void *spare_get (struct spare *s)
{
    void *p = s->first;

    if (!p)
        return malloc (s->size);
    s->first = *(void **)p;
    s->bytes -= s->size;
    return p;
}

/* Give it back.  NULL is fine. */
static inline void spare_put (struct spare *s, void *p)
{
    if (!p || s->bytes + s->size > SPARE_BYTES) {
        free (p);
        return;
    }
    *(void **)p = s->first;
    s->first = p;
    s->bytes += s->size;
}

static inline void spare_fini (struct spare *s)
{
    void *p;

    while ((p = s->first)) {
        s->first = *(void **)p;
        free (p);
    }
    s->bytes = 0;
}

#endif /* UTIL_SPARE_H */
