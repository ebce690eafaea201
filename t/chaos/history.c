/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* history.c - the record of one client: four arrays that grow */
#include <stdlib.h>

#include "die.h"
#include "history.h"

/* Make space for one more item in an array that has 'n' items, and space for '*size'. */
static void *grow (void *items, size_t n, size_t *size, size_t item)
{
    if (n < *size)
        return items;
    *size = *size ? *size + *size / 2 : 64;
    return must (realloc (items, *size * item));
}

#define APPEND(h, what, item)                                                                 \
    do {                                                                                      \
        (h)->what = grow ((h)->what, (h)->n##what, &(h)->what##_size, sizeof ((h)->what[0])); \
        (h)->what[(h)->n##what++] = (item);                                                   \
    } while (0)

void history_run (struct history *h, fluid_t first, uint32_t n)
{
    APPEND (h, runs, ((struct history_run){ first, n }));
}

void history_answer (struct history *h, const struct history_answer *answer)
{
    APPEND (h, answers, *answer);
}

void history_bound (struct history *h, const struct history_bound *bound)
{
    APPEND (h, bounds, *bound);
}

void history_watermark (struct history *h, const struct history_watermark *watermark)
{
    APPEND (h, watermarks, *watermark);
}

void history_fini (struct history *h)
{
    free (h->runs);
    free (h->answers);
    free (h->bounds);
    free (h->watermarks);
}
