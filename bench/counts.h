/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* counts.h - work whose instructions are counted (bench-instructions.c): the same each time, whatever the machine does
 */
#ifndef BENCH_COUNTS_H
#define BENCH_COUNTS_H

#define COUNTS_TIMES 64 /* of each work, one after the other: with 'i' from 0 */

struct count {
    const char *name;
    void (*work) (void *bed, int i);
    void (*prepare) (void *bed, int arg); /* is not counted; may be NULL */
    int arg;
};

/* Do the work of each of 'n' twice, of which callgrind counts the second time, and print the names in their order. */
void counts_run (const struct count *counts, int n, void *bed);

/* End the program unless something is as it should be: what is counted must work. */
void counts_must (int good, const char *what);

/* The parts of the program. */
void count_generators (void);
void count_codecs (void);
void count_compressor (void);
void count_path (void);

#endif /* BENCH_COUNTS_H */
