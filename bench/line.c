/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

#include "line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timing.h"

static int compare (const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void figures_add (struct figures *f, double round)
{
    if (f->rounds == f->room) {
        f->room = f->room ? 2 * f->room : 64;
        double *more = realloc (f->round, f->room * sizeof (f->round[0]));
        if (!more) {
            fputs ("bench: out of memory\n", stderr);
            exit (EXIT_FAILURE);
        }
        f->round = more;
    }
    f->round[f->rounds++] = round;
}

/* Sort the rounds such that the best one is first. */
static void sort_rounds (const struct figures *f, double *rounds, size_t n)
{
    qsort (rounds, n, sizeof (rounds[0]), compare);
    for (size_t i = 0; f->more && i < n / 2; i++) {
        double x = rounds[i];
        rounds[i] = rounds[n - 1 - i];
        rounds[n - 1 - i] = x;
    }
}

static double mean (const double *rounds, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += rounds[i];
    return sum / (double)n;
}

/* Return the figure of a turn. Its rounds are sorted. */
static double turn_figure (enum figures_of of, const double *rounds, size_t n)
{
    switch (of) {
    case FIGURES_MEDIAN:
        return rounds[n / 2];
    case FIGURES_MEAN:
        return mean (rounds, n);
    case FIGURES_P99:
        return rounds[n * 99 / 100];
    default:
        return rounds[0];
    }
}

void figures_end_turn (struct figures *f)
{
    size_t n = f->rounds - f->first;

    if (n == 0 || f->turns == FIGURES_TURNS) {
        fprintf (stderr, "bench: turn %d has %zu rounds: 1 turn to %d of 1 round or more are counted\n", f->turns + 1,
                 n, FIGURES_TURNS);
        exit (EXIT_FAILURE);
    }
    sort_rounds (f, f->round + f->first, n);
    f->turn[f->turns++] = turn_figure (f->of, f->round + f->first, n);
    f->first = f->rounds;
}

void figures_fini (struct figures *f)
{
    free (f->round);
    *f = (struct figures){ 0 };
}

double figures_value (const struct figures *f)
{
    double best = f->turns > 0 ? f->turn[0] : 0;

    for (int i = 1; i < f->turns; i++)
        if (f->more ? f->turn[i] > best : f->turn[i] < best)
            best = f->turn[i];
    return best;
}

struct summary figures_summary (const struct figures *f, const char *name)
{
    double *all = malloc ((f->rounds + 1) * sizeof (all[0]));
    struct summary s;

    if (!all || f->rounds == 0) {
        fprintf (stderr, "bench: %s: %s\n", name, all ? "no figures" : "out of memory");
        exit (EXIT_FAILURE);
    }
    memcpy (all, f->round, f->rounds * sizeof (all[0]));
    sort_rounds (f, all, f->rounds);
    s = (struct summary){ mean (all, f->rounds), all[f->rounds / 2], all[f->rounds * 99 / 100] };
    free (all);
    return s;
}

void figures_time_calls (struct figures *f, void (*once) (void *arg), void *arg, int count)
{
    for (int i = 0; i < count; i++) {
        double start_ns = now_ns ();

        once (arg);
        figures_add (f, (now_ns () - start_ns) / 1e3);
    }
    figures_end_turn (f);
}

/* Print the figures of all turns. Strings come from this program, and need no escapes. Numbers have six significant
 * digits.
 */
static void print_turns (const char *key, const struct figures *f, double share)
{
    printf (",\"%s\":[", key);
    for (int i = 0; i < f->turns; i++)
        printf ("%s%.6g", i ? "," : "", f->turn[i] * share);
    putchar (']');
}

static void print_limit (const struct line *line, double value)
{
    double share = line->share > 0 ? line->share : 1;
    double limit = line->bare ? figures_value (line->bare) * share : line->limit;

    if (limit <= 0)
        return;
    printf (",\"limit\":%.6g,\"limit_of\":\"%s\",\"ratio\":%.4g", limit, line->limit_of, value / limit);
    if (line->aim)
        printf (",\"aim\":\"%s\"", (line->figures->more ? value < limit : value > limit) ? "missed" : "met");
    if (line->bare)
        print_turns ("limit_turns", line->bare, share);
}

void line_print (const struct line *line)
{
    const struct figures *f = line->figures;
    struct summary s = figures_summary (f, line->name);
    double value = line->value > 0 ? line->value : figures_value (f);

    printf ("{\"subject\":\"%s\",\"name\":\"%s\"", line->subject, line->name);
    if (line->size_of)
        printf (",\"size\":%.6g,\"size_of\":\"%s\"", line->size, line->size_of);
    printf (",\"value\":%.6g,\"unit\":\"%s\",\"better\":\"%s\",\"mean\":%.6g,\"median\":%.6g,\"p99\":%.6g", value,
            line->unit, f->more ? "more" : "less", s.mean, s.median, s.p99);
    printf (",\"rounds\":%zu,\"warmup\":%ld", f->rounds, f->warmup);
    print_turns ("turns", f, 1);
    print_limit (line, value);
    if (line->note)
        printf (",\"note\":\"%s\"", line->note);
    puts ("}");
    fflush (stdout);
}
