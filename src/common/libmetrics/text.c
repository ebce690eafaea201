/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* text.c - reports as text that Prometheus reads
 *
 * The two formats differ in the name of a counter's family, in units, and in the last line.
 */
#include <inttypes.h>
#include <string.h>

#include "libmetrics/bounds.h"
#include "libmetrics/catalog.h"
#include "libmetrics/text.h"
#include "libutil/text.h"

#define PREFIX "idtree_"

static const char *const sections[METRICS_MERGES] = { "sum", "min", "max", "buckets", "ranks" };
static const char *const types[] = { "gauge", "counter", "histogram" };

struct printer {
    FILE *f;
    enum metrics_format format;
    const struct metrics_source *sources;
    size_t n;
};

static const json_t *find (const struct metrics_source *source, enum metrics_merge merge, const char *name)
{
    return json_object_get (json_object_get (source->report, sections[merge]), name);
}

/* --- samples ------------------------------------------------------------------------------------------ */

struct label {
    const char *name, *value; /* name NULL: no label */
};

/* Print a text of unknown origin, with the characters escaped that would end it. */
static void print_text (FILE *f, const char *s)
{
    for (; *s; s++) {
        if (*s == '\\' || *s == '"')
            fputc ('\\', f);
        fputc (*s == '\n' ? ' ' : *s, f);
    }
}

static void print_name (const struct printer *p, const char *family, const char *suffix, const struct label *label,
                        long rank)
{
    fprintf (p->f, PREFIX "%s%s", family, suffix);
    if (label->name || rank >= 0)
        fputc ('{', p->f);
    if (rank >= 0)
        fprintf (p->f, "rank=\"%ld\"%s", rank, label->name ? "," : "");
    if (label->name) {
        fprintf (p->f, "%s=\"", label->name);
        print_text (p->f, label->value);
        fputc ('"', p->f);
    }
    if (label->name || rank >= 0)
        fputc ('}', p->f);
    fputc (' ', p->f);
}

/* Print a number with 15 digits, which hides the rounding of binary fractions. */
static void print_number (FILE *f, const json_t *value)
{
    if (json_is_integer (value))
        fprintf (f, "%" JSON_INTEGER_FORMAT "\n", json_integer_value (value));
    else
        fprintf (f, "%.15g\n", json_number_value (value));
}

static void print_sample (const struct printer *p, const struct metrics_row *row, const struct metrics_source *source,
                          const json_t *value)
{
    const struct label label = { row->label, row->value };

    print_name (p, row->family, row->type == METRICS_COUNTER ? "_total" : "", &label, source->rank);
    print_number (p->f, value);
}

static void print_sets (const struct printer *p, const struct metrics_row *row, const struct metrics_source *source,
                        const json_t *values)
{
    const char *value;
    json_t *ranks;

    json_object_foreach ((json_t *)values, value, ranks) {
        const struct label label = { row->label, value };

        print_name (p, row->family, "", &label, source->rank);
        fprintf (p->f, "%" PRIu64 "\n", ranges_count (json_string_value (ranks), UINT32_MAX));
    }
}

/* The end of a bucket in seconds, with a decimal point, as OpenMetrics requires. */
static const char *print_end (size_t i, char buf[32])
{
    double s = i < METRICS_BOUNDS ? metrics_bounds_us[i] / 1e6 : 0;

    if (i == METRICS_BOUNDS)
        return "+Inf";
    snprintf (buf, 32, s < 1 ? "%.15g" : "%.1f", s);
    return buf;
}

/* Print buckets cumulatively, as Prometheus requires: each counts all times up to its end. */
static void print_histogram (const struct printer *p, const struct metrics_row *row,
                             const struct metrics_source *source, const json_t *buckets)
{
    static const struct label none = { NULL, NULL };
    char sum[METRICS_MAX_NAME + 8], end[32];
    json_int_t count = 0;

    for (size_t i = 0; i <= METRICS_BOUNDS; i++) {
        const struct label label = { "le", print_end (i, end) };

        count += json_integer_value (json_array_get (buckets, i));
        print_name (p, row->family, "_bucket", &label, source->rank);
        fprintf (p->f, "%" JSON_INTEGER_FORMAT "\n", count);
    }
    print_name (p, row->family, "_count", &none, source->rank);
    fprintf (p->f, "%" JSON_INTEGER_FORMAT "\n", count);
    snprintf (sum, sizeof (sum), "%s_sum", row->name);
    print_name (p, row->family, "_sum", &none, source->rank);
    fprintf (p->f, "%.15g\n", json_number_value (find (source, METRICS_SUM, sum)));
}

/* --- families ------------------------------------------------------------------------------------------- */

static void print_head (const struct printer *p, const struct metrics_row *row)
{
    bool open = p->format == METRICS_OPENMETRICS;
    const char *suffix = !open && row->type == METRICS_COUNTER ? "_total" : "";

    fprintf (p->f, "# HELP " PREFIX "%s%s %s\n", row->family, suffix, row->help);
    fprintf (p->f, "# TYPE " PREFIX "%s%s %s\n", row->family, suffix, types[row->type]);
    if (open && row->unit)
        fprintf (p->f, "# UNIT " PREFIX "%s %s\n", row->family, row->unit);
}

static bool is_told (const struct printer *p, const struct metrics_row *row)
{
    for (size_t i = 0; i < p->n; i++)
        if (find (&p->sources[i], row->merge, row->name))
            return true;
    return false;
}

static void print_row (const struct printer *p, const struct metrics_row *row)
{
    for (size_t i = 0; i < p->n; i++) {
        const json_t *value = find (&p->sources[i], row->merge, row->name);

        if (json_is_object (value))
            print_sets (p, row, &p->sources[i], value);
        else if (json_is_array (value))
            print_histogram (p, row, &p->sources[i], value);
        else if (value)
            print_sample (p, row, &p->sources[i], value);
    }
}

/* Rows of a family are adjacent. Before the first row that a report has, the head of the family is printed, with the
 * help of its first row.
 */
static void print_catalog (const struct printer *p)
{
    const struct metrics_row *first = &metrics_catalog[0];
    bool begun = false;

    for (const struct metrics_row *row = first; row < metrics_catalog + metrics_catalog_size; row++) {
        if (strcmp (row->family, first->family) != 0) {
            first = row;
            begun = false;
        }
        if (!is_told (p, row))
            continue;
        if (!begun)
            print_head (p, first);
        begun = true;
        print_row (p, row);
    }
}

/* --- names that are not in the catalog ------------------------------------------------------------------ */

static bool is_name (const char *s)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

    return *s && s[strspn (s, letters)] == '\0';
}

/* The sum of a histogram belongs to the histogram. */
static bool is_known (enum metrics_merge merge, const char *name)
{
    size_t len = strlen (name);
    char stem[METRICS_MAX_NAME + 1] = "";

    if (merge == METRICS_SUM && len > 4 && len < sizeof (stem) && strcmp (name + len - 4, "_sum") == 0)
        memcpy (stem, name, len - 4);
    return metrics_row (merge, name) || metrics_row (METRICS_BUCKETS, stem);
}

static bool was_printed (const struct printer *p, size_t source, enum metrics_merge merge, const char *name)
{
    for (size_t i = 0; i < source; i++)
        if (find (&p->sources[i], merge, name))
            return true;
    return false;
}

/* The section is part of the family, so the same name in two sections gives two families. */
static void print_unknown (const struct printer *p, enum metrics_merge merge, const char *name)
{
    static const struct label none = { NULL, NULL };
    char suffix[8];

    snprintf (suffix, sizeof (suffix), "_%s", sections[merge]);
    fprintf (p->f, "# TYPE " PREFIX "other_%s%s %s\n", name, suffix,
             p->format == METRICS_OPENMETRICS ? "unknown" : "untyped");
    for (size_t i = 0; i < p->n; i++) {
        const json_t *value = find (&p->sources[i], merge, name);
        char family[METRICS_MAX_NAME + 8];

        if (!json_is_number (value))
            continue;
        snprintf (family, sizeof (family), "other_%s", name);
        print_name (p, family, suffix, &none, p->sources[i].rank);
        print_number (p->f, value);
    }
}

static void print_others (const struct printer *p)
{
    const char *name;
    json_t *value;

    for (int merge = 0; merge < METRICS_BUCKETS; merge++)
        for (size_t i = 0; i < p->n; i++)
            json_object_foreach (json_object_get (p->sources[i].report, sections[merge]), name, value)
                if (is_name (name) && strlen (name) <= METRICS_MAX_NAME && !is_known (merge, name)
                    && !was_printed (p, i, merge, name))
                    print_unknown (p, merge, name);
}

void metrics_print (FILE *f, enum metrics_format format, const struct metrics_source *sources, size_t n)
{
    const struct printer p = { f, format, sources, n };

    print_catalog (&p);
    print_others (&p);
    if (format == METRICS_OPENMETRICS)
        fputs ("# EOF\n", f);
}
