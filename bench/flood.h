/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flood.h - clients that keep a number of requests pending: each answer is followed by a request */
#ifndef BENCH_FLOOD_H
#define BENCH_FLOOD_H

#include <idtree/idtree.h>

#include "line.h"

#define FLOOD_BLOCK_MAX 1024

struct flood {
    const char *topic; /* NULL: requests for ids, in blocks */
    int block;         /* ids of a request: 1 to FLOOD_BLOCK_MAX */
    int under_way;     /* pending requests of each client */
    double warmup_s;   /* seconds at the beginning that do not count, because the pipeline is not full */
    double seconds;    /* seconds that count */
    /* gets the microseconds from each request to its answer, if the answer came in the time that counts; may be NULL */
    struct figures *times;
};

/* Send requests with 'n' clients, and return the number of ids a second. The handles must be new, and this function
 * closes them. If a request fails, the program ends.
 */
double flood_run (const struct flood *flood, idt_t **clients, int n);

#endif /* BENCH_FLOOD_H */
