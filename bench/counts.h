/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* counts.h - work whose instructions are counted (bench-instructions.c): the counts are the same in each run, and do
 * not depend on the machine's load
 */
#ifndef BENCH_COUNTS_H
#define BENCH_COUNTS_H

#define COUNTS_TIMES 64 /* how often each work is done; 'i' counts from 0 */

struct count {
    const char *name;
    void (*work) (void *bed, int i);
    void (*prepare) (void *bed, int arg); /* called before the work; not counted; may be NULL */
    int arg;
};

/* Do the work of each of 'n' counts twice; callgrind counts only the second time. Prints the names in this order. */
void counts_run (const struct count *counts, int n, void *bed);

/* If 'good' is false, end the program, because the counted work has failed. */
void counts_must (int good, const char *what);

/* The parts of the program: each counts one kind of work. */
void count_generators (void);
void count_codecs (void);
void count_compressor (void);
void count_path (void);

#endif /* BENCH_COUNTS_H */
