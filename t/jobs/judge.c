/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* judge.c - collects all lines about a submission under its tag, and checks each submission in the end */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>

#include "judge.h"
#include "must.h"

#define EXAMPLES 10
#define ERRNO_MAX 256
#define TABLE_MIN 4096

struct tag {
    char *name;
    uint32_t sent, refused, ids;
    bool bad, silent;
    uint64_t id;       /* the id in the first answer; 0: none */
    uint64_t seen;     /* the id that the first consumer got; 0: none */
    uint32_t consumer; /* number of the last record that has this job; 0: none */
};

struct judge {
    struct tag **table; /* a hash table with open addressing */
    size_t size, count;
    char *record; /* name of the record that is being read */
    uint32_t nrecords, consumers;
    uint64_t last; /* last id of the present consumer */
    bool consumes;
    unsigned long sent, repeated, again, errnos[ERRNO_MAX];
    unsigned long wrong;
    char *example[EXAMPLES];
};

/* --- what is wrong ------------------------------------------------------------------------------------------------ */

__attribute__ ((format (printf, 2, 3))) static void blame (struct judge *j, const char *fmt, ...)
{
    va_list ap;

    if (j->wrong++ >= EXAMPLES)
        return;
    va_start (ap, fmt);
    if (vasprintf (&j->example[j->wrong - 1], fmt, ap) < 0)
        die ("memory");
    va_end (ap);
}

/* --- tags --------------------------------------------------------------------------------------------------------- */

static uint64_t hash (const char *s)
{
    uint64_t h = UINT64_C (0xcbf29ce484222325);

    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * UINT64_C (0x100000001b3);
    return h ^ (h >> 29);
}

static struct tag **find_slot (struct tag **table, size_t size, const char *name)
{
    size_t i = hash (name) & (size - 1);

    while (table[i] && strcmp (table[i]->name, name) != 0)
        i = (i + 1) & (size - 1);
    return &table[i];
}

static void grow (struct judge *j)
{
    size_t size = j->size ? 2 * j->size : TABLE_MIN;
    struct tag **table = must (calloc (size, sizeof (*table)));

    for (size_t i = 0; i < j->size; i++)
        if (j->table[i])
            *find_slot (table, size, j->table[i]->name) = j->table[i];
    free (j->table);
    j->table = table;
    j->size = size;
}

static struct tag *find_tag (struct judge *j, const char *name)
{
    if (2 * j->count >= j->size)
        grow (j);
    struct tag **slot = find_slot (j->table, j->size, name);
    if (!*slot) {
        *slot = must (calloc (1, sizeof (**slot)));
        (*slot)->name = must (strdup (name));
        j->count++;
    }
    return *slot;
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

bool judge_is_refusal (int errnum)
{
    switch (errnum) {
    case EINVAL:
    case EPERM:
    case EMSGSIZE:
    case EPROTO:
    case EAGAIN:
    case ENOSPC:
        return true;
    default:
        return false;
    }
}

static void take_sent (struct judge *j, struct tag *t, bool bad)
{
    j->sent += t->sent == 0;
    j->repeated += t->sent > 0;
    t->sent++;
    t->bad = bad;
}

static void take_id (struct judge *j, struct tag *t, uint64_t id)
{
    t->ids++;
    if (t->id && t->id != id)
        blame (j, "%s: answered with the ids %" PRIu64 " and %" PRIu64, t->name, t->id, id);
    else
        t->id = id;
}

static void take_errno (struct judge *j, struct tag *t, unsigned long errnum)
{
    j->errnos[errnum < ERRNO_MAX ? errnum : 0]++;
    t->refused += judge_is_refusal ((int)errnum);
}

static void take_job (struct judge *j, struct tag *t, uint64_t id)
{
    j->consumes = true;
    if (id <= j->last)
        blame (j, "%s: %s: saw %" PRIu64 " after %" PRIu64, j->record, t->name, id, j->last);
    if (t->consumer == j->nrecords)
        blame (j, "%s: %s: saw it twice, with the ids %" PRIu64 " and %" PRIu64, j->record, t->name, t->seen, id);
    else if (t->seen && t->seen != id)
        blame (j, "%s: %s: saw it with the id %" PRIu64 ", another consumer with %" PRIu64, j->record, t->name, id,
               t->seen);
    j->last = id;
    t->seen = t->seen ? t->seen : id;
    t->consumer = j->nrecords;
}

static void take_again (struct judge *j, struct tag *t, uint64_t id)
{
    j->again++;
    if (t->consumer != j->nrecords || t->seen != id)
        blame (j, "%s: %s: received again with the id %" PRIu64 ", but not received before", j->record, t->name, id);
}

/* Return the next word of a line; "" at the end of the line. */
static char *word (char **line)
{
    char *w = strsep (line, " ");

    return w ? w : "";
}

static uint64_t number (const char *s)
{
    return strtoull (s, NULL, 10);
}

void judge_line (struct judge *j, char *line)
{
    char *rest = line, *verb = word (&rest);

    if (!strcmp (verb, "wrong")) {
        blame (j, "%s: %s", j->record, rest ? rest : "");
        return;
    }
    bool consumer = !strcmp (verb, "job") || !strcmp (verb, "again");
    uint64_t id = consumer ? number (word (&rest)) : 0;
    struct tag *t = find_tag (j, word (&rest));
    if (!strcmp (verb, "sent") || !strcmp (verb, "bad"))
        take_sent (j, t, verb[0] == 'b');
    else if (!strcmp (verb, "id"))
        take_id (j, t, number (word (&rest)));
    else if (!strcmp (verb, "errno"))
        take_errno (j, t, number (word (&rest)));
    else if (!strcmp (verb, "silent"))
        t->silent = true;
    else if (!strcmp (verb, "job"))
        take_job (j, t, id);
    else if (!strcmp (verb, "again"))
        take_again (j, t, id);
    else
        blame (j, "%s: '%s' is not a line of a record", j->record, verb);
}

void judge_begin (struct judge *j, const char *name)
{
    j->consumers += j->consumes;
    free (j->record);
    j->record = must (strdup (name));
    j->nrecords++;
    j->last = 0;
    j->consumes = false;
}

int judge_file (struct judge *j, const char *path)
{
    FILE *f = fopen (path, "re");
    char *line = NULL;
    size_t size = 0;
    ssize_t n;

    if (!f)
        return -1;
    judge_begin (j, path);
    while ((n = getline (&line, &size, f)) > 0 && line[n - 1] == '\n') {
        line[n - 1] = '\0';
        if (n > 1)
            judge_line (j, line);
    }
    free (line);
    fclose (f);
    return 0;
}

/* --- the verdict -------------------------------------------------------------------------------------------------- */

struct sums {
    unsigned long answered, refused, unknown, unknown_seen, seen;
};

static void judge_tag (struct judge *j, const struct tag *t, struct sums *n)
{
    n->seen += t->seen > 0;
    if (t->sent == 0)
        blame (j, "%s: is seen with the id %" PRIu64 ", but was never sent", t->name, t->seen);
    if (t->silent)
        blame (j, "%s: was not answered", t->name);
    if (t->bad && (t->id || t->seen))
        blame (j, "%s: is malformed, but was accepted", t->name);
    if (t->id) {
        n->answered++;
        if (j->consumers && !t->seen)
            blame (j, "%s: was answered with the id %" PRIu64 ", but no consumer saw it", t->name, t->id);
        else if (t->seen && t->seen != t->id)
            blame (j, "%s: was answered with the id %" PRIu64 ", but consumers saw it with %" PRIu64, t->name, t->id,
                   t->seen);
    }
    else if (t->sent > 0 && t->refused == t->sent) {
        n->refused++;
        if (t->seen)
            blame (j, "%s: was refused, but consumers saw it with the id %" PRIu64, t->name, t->seen);
    }
    else {
        n->unknown++;
        n->unknown_seen += t->seen > 0;
    }
}

static int compare_ids (const void *a, const void *b)
{
    const struct tag *x = *(struct tag *const *)a, *y = *(struct tag *const *)b;

    return (x->id > y->id) - (x->id < y->id);
}

/* Check that no id was the answer to two submissions. */
static void judge_ids (struct judge *j)
{
    struct tag **all = must (calloc (j->count + 1, sizeof (*all)));
    size_t n = 0;

    for (size_t i = 0; i < j->size; i++)
        if (j->table[i] && j->table[i]->id)
            all[n++] = j->table[i];
    qsort (all, n, sizeof (*all), compare_ids);
    for (size_t i = 1; i < n; i++)
        if (all[i]->id == all[i - 1]->id)
            blame (j, "%s and %s: both were answered with the id %" PRIu64, all[i - 1]->name, all[i]->name, all[i]->id);
    free (all);
}

static void tell_errnos (const struct judge *j, FILE *out)
{
    fprintf (out, "errors:");
    for (int i = 0; i < ERRNO_MAX; i++)
        if (j->errnos[i])
            fprintf (out, " %lu %s%s,", j->errnos[i], strerror (i), judge_is_refusal (i) ? " (refused)" : "");
    fprintf (out, " and %lu sent again\n", j->repeated);
}

unsigned long judge_tell (struct judge *j, FILE *out)
{
    struct sums n = { 0 };

    judge_begin (j, "all");
    for (size_t i = 0; i < j->size; i++)
        if (j->table[i])
            judge_tag (j, j->table[i], &n);
    judge_ids (j);
    fprintf (out, "jobs: %lu sent, %lu answered with an id, %lu refused, %lu unknown, of which %lu are there\n",
             j->sent, n.answered, n.refused, n.unknown, n.unknown_seen);
    fprintf (out, "seen: %lu by %u consumers; %lu told again\n", n.seen, j->consumers, j->again);
    tell_errnos (j, out);
    for (size_t i = 0; i < j->wrong && i < EXAMPLES; i++)
        fprintf (out, "  %s\n", j->example[i]);
    fprintf (out, "wrong: %lu\n", j->wrong);
    return j->wrong;
}

struct judge *judge_create (void)
{
    return must (calloc (1, sizeof (struct judge)));
}

void judge_destroy (struct judge *j)
{
    if (!j)
        return;
    for (size_t i = 0; i < j->size; i++)
        if (j->table[i]) {
            free (j->table[i]->name);
            free (j->table[i]);
        }
    for (int i = 0; i < EXAMPLES; i++)
        free (j->example[i]);
    free (j->table);
    free (j->record);
    free (j);
}
