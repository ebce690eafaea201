/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* line.h - print results of programs under bench/ as lines of JSON (bench/README.md describes the format)
 *
 * A round is one measured interval: a short window of a loop, one request, or a second of a flood. Rounds form turns.
 * The turns of all measured things alternate, so that each thing and its limit are measured at several times of the
 * run, and other load of the machine affects all of them. The figure of a turn is its best round (FIGURES_BEST), its
 * median round (FIGURES_MEDIAN), the mean of its rounds (FIGURES_MEAN), or the round that only one in a hundred exceeds
 * (FIGURES_P99). The result is the figure of the best turn. The differences between turns are the noise, which is
 * needed to compare two runs. The mean, the median and the p99 of all rounds are printed beside the result.
 */
#ifndef BENCH_LINE_H
#define BENCH_LINE_H

#include <stdbool.h>
#include <stddef.h>

#define FIGURES_TURNS 32

enum figures_of { FIGURES_BEST, FIGURES_MEDIAN, FIGURES_MEAN, FIGURES_P99 };

/* The figures of one measured thing. The caller sets 'of', 'more' and 'warmup'; all other members begin as 0. */
struct figures {
    enum figures_of of;
    bool more;   /* whether more is better (a rate); if not, less is better (a time) */
    long warmup; /* number of rounds at the beginning that do not count */

    double *round;
    size_t rounds, room;
    size_t first; /* index of the first round of the present turn */
    double turn[FIGURES_TURNS];
    int turns;
};

/* Add a round; end a turn. Both functions end the program if memory is short, or after more than FIGURES_TURNS turns.
 */
void figures_add (struct figures *f, double round);
void figures_end_turn (struct figures *f);
void figures_fini (struct figures *f);

/* Return the figure of the best turn; 0 if there was no turn. */
double figures_value (const struct figures *f);

/* Of all rounds. One round in a hundred is worse than 'p99'. */
struct summary {
    double mean, median, p99;
};

/* There must be a round, and memory; otherwise the program ends, and the message names 'name'. */
struct summary figures_summary (const struct figures *f, const char *name);

/* Measure a turn of 'count' calls of 'once'. Each call is a round, in microseconds. */
void figures_time_calls (struct figures *f, void (*once) (void *arg), void *arg, int count);

/* A result to print. Its limit is 'limit'; or the value of 'bare', measured in the same run, times 'share' (0 means 1).
 * If neither is set, there is no limit. If 'aim' is set, the limit is an aim, and the line shows whether the result
 * missed it. 'size' is a parameter on which the figure depends, if there is one.
 */
struct line {
    const char *subject, *name, *unit;
    const struct figures *figures;
    double value; /* the result, if it is not the figure of the best turn; 0: it is */
    double limit;
    const struct figures *bare;
    double share;
    const char *limit_of; /* a short description of what the limit is */
    bool aim;
    const char *note; /* how it was measured, in a few words; NULL: no note */
    double size;
    const char *size_of; /* unit of 'size': "hops", "clients", "ids"; NULL: no size */
};

/* Print to stdout and flush. */
void line_print (const struct line *line);

#endif /* BENCH_LINE_H */
