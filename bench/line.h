/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* line.h - what a program under bench/ measured, as lines of JSON (bench/README.md has their shape)
 *
 * A round is what the clock is read around: a short window of a loop, one request, a second of a flood.  Rounds come in
 * turns, one turn of each thing after the other and then again, so that each thing and its limit are seen at several
 * times of the run, and whatever else the machine does falls upon all.  A turn's figure is that of its best round
 * (FIGURES_BEST), of its median round (FIGURES_MEDIAN), or of that which one in a hundred is worse than (FIGURES_P99).
 * What counts is the best turn, and how much turns differ is the noise by which two runs are compared.
 */
#ifndef BENCH_LINE_H
#define BENCH_LINE_H

#include <stdbool.h>
#include <stddef.h>

#define FIGURES_TURNS 32

enum figures_of { FIGURES_BEST, FIGURES_MEDIAN, FIGURES_P99 };

/* One thing's figures.  'of', 'more' and 'warmup' are the caller's; all else begins as 0. */
struct figures {
    enum figures_of of;
    bool more;   /* is better: a rate; else a time */
    long warmup; /* rounds that were made before and do not count */

    double *round;
    size_t rounds, room;
    size_t first; /* round of the turn that goes on */
    double turn[FIGURES_TURNS];
    int turns;
};

/* Both end the program when there is no memory; turns beyond FIGURES_TURNS do, too. */
void figures_add (struct figures *f, double round);
void figures_end_turn (struct figures *f);
void figures_fini (struct figures *f);

/* Of the best turn; 0 without one. */
double figures_value (const struct figures *f);

/* A turn of 'count' calls of 'once', each a round in microseconds. */
void figures_time_calls (struct figures *f, void (*once) (void *arg), void *arg, int count);

/* What is printed.  The limit is 'limit', or the value of 'bare', measured in the same run, times 'share' (0 is 1);
 * without both there is none.  'size' is what the figure grows with, where there is such a thing.
 */
struct line {
    const char *subject, *name, *unit;
    const struct figures *figures;
    double limit;
    const struct figures *bare;
    double share;
    const char *limit_of; /* what the limit is, in a few words */
    double size;
    const char *size_of; /* "hops", "clients", "ids"; NULL: none */
};

/* To stdout, at once. */
void line_print (const struct line *line);

#endif /* BENCH_LINE_H */
