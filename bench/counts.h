/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* counts.h - work whose instructions are counted (bench-instructions.c): the same on each run, independent of the
 * machine's load
 */
#ifndef BENCH_COUNTS_H
#define BENCH_COUNTS_H

#define COUNTS_TIMES 64 /* repetitions of each work, with 'i' from 0 */

struct count {
    const char *name;
    void (*work) (void *bed, int i);
    void (*prepare) (void *bed, int arg); /* not counted; may be NULL */
    int arg;
};

/* Do the work of each of 'n' twice; callgrind counts the second time. Prints the names in order. */
void counts_run (const struct count *counts, int n, void *bed);

/* End the program unless 'good': the counted work must succeed. */
void counts_must (int good, const char *what);

/* The parts of the program. */
void count_generators (void);
void count_codecs (void);
void count_compressor (void);
void count_path (void);

#endif /* BENCH_COUNTS_H */
