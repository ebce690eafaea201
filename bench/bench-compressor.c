/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-compressor.c - the time and memory of the id compressor for three documents of 1,000 to 1,000,000 ids
 *
 *   single      one session in turns of 1,000 ids: one cluster that grows
 *   duo         two sessions in turns of 1,000 ids: a cluster each turn
 *   fragmented  eight sessions in turns of 16 ids: 62,504 clusters for 1,000,000 ids
 *
 * Times are nanoseconds for one id, compared with a call of an empty function, and microseconds for operations on a
 * whole document. Ids are used in random order.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <idtree/idcomp.h>

#include "line.h"
#include "timing.h"

#define TURNS 8
#define TURN_NS 1e6  /* shortest time of a measurement: short work is repeated until it takes this long */
#define SAMPLE 20000 /* number of ids in the sample */
#define PIECE 1000   /* ids of a round, which is so short that some rounds are not interrupted */
#define SESSIONS 8
#define STORED_MIN 10000 /* the stored form is measured if it has at least this number of bytes */

struct document {
    const char *name;
    int sessions;
    int turn; /* ids that a session makes before the next session does */
    int cluster_size;
    int64_t ids;
    struct idcomp *c; /* the document as its first session sees it */
    char session[SESSIONS][IDCOMP_UUID_TEXT_MAX];
    /* the ids of the sample, in several forms */
    int64_t id[SAMPLE]; /* ids in session space */
    int64_t op[SAMPLE];
    struct idcomp_uuid uuid[SAMPLE];
    char text[SAMPLE][IDCOMP_UUID_TEXT_MAX];
    /* results */
    int64_t result[SAMPLE];
    struct idcomp_uuid uuid_result[SAMPLE];
    /* the stored form of the document */
    void *data, *copy;
    size_t size;
    char *base64;
};

__attribute__ ((noreturn)) static void die (const char *what)
{
    fprintf (stderr, "bench-compressor: %s failed\n", what);
    exit (EXIT_FAILURE);
}

/* Do the measured work with the ids from 'i' to 'end' (exclusive) of the sample, or 'end - i' times. Returns false on
 * failure.
 */
typedef bool (*work_f) (struct document *d, int i, int end);

static double time_round (work_f work, struct document *d, int i, int end, const char *what)
{
    double start_ns = now_ns ();
    bool good = work (d, i, end);
    double ns = now_ns () - start_ns;

    if (!good)
        die (what);
    return ns;
}

/* Measure a turn. If the work uses the sample, it processes the whole sample, piece by piece. So each piece finds the
 * same data in the caches as if the other pieces were not timed.
 */
static void take_turn_of (struct figures *f, work_f work, struct document *d, int n, double unit, const char *what)
{
    int pieces = n == SAMPLE ? SAMPLE / PIECE : 1;
    double sum_ns = 0;

    while (sum_ns < TURN_NS)
        for (int k = 0; k < pieces; k++) {
            double ns = time_round (work, d, n / pieces * k, n / pieces * (k + 1), what);
            figures_add (f, ns * pieces / unit);
            sum_ns += ns;
        }
    figures_end_turn (f);
}

static bool bare (struct document *d, int i, int end);

static struct line line_of (struct document *d, const char *what, char name[64])
{
    snprintf (name, 64, "%s%s%s", what, *d->name ? ", " : "", d->name);
    return (struct line){ .subject = "compressor", .name = name, .size = d->ids, .size_of = "ids" };
}

/* Measure the nanoseconds for one of 'n' ids. */
static void report (struct document *d, const char *what, work_f work, int n)
{
    struct figures f = { .warmup = 1 }, bare_f = { .warmup = 1 };
    char name[64];
    struct line line = line_of (d, what, name);

    time_round (work, d, 0, n, what);
    for (int turn = 0; turn < (n > SAMPLE ? TURNS / 2 : TURNS); turn++) {
        take_turn_of (&f, work, d, n, n, what);
        take_turn_of (&bare_f, bare, d, SAMPLE, SAMPLE, "bare call");
    }
    line.unit = "ns";
    line.figures = &f;
    line.bare = &bare_f;
    line.limit_of = "a call that does nothing";
    line_print (&line);
    figures_fini (&f);
    figures_fini (&bare_f);
}

static bool copy (struct document *d, int i, int end);

/* Measure the microseconds for a whole document, compared with a copy of its stored form. */
static void report_whole (struct document *d, const char *what, work_f work)
{
    struct figures f = { .warmup = 1 }, bare_f = { .warmup = 1 };
    char name[64];
    struct line line = line_of (d, what, name);

    time_round (work, d, 0, 1, what);
    for (int turn = 0; turn < TURNS; turn++) {
        take_turn_of (&f, work, d, 1, 1e3, what);
        take_turn_of (&bare_f, copy, d, 1, 1e3, "copy");
    }
    line.unit = "us";
    line.figures = &f;
    line.bare = &bare_f;
    line.limit_of = "a copy of its bytes";
    line_print (&line);
    figures_fini (&f);
    figures_fini (&bare_f);
}

/* --- documents --- */

static void session_name (int i, char text[IDCOMP_UUID_TEXT_MAX])
{
    unsigned char random[16];
    uint64_t x = UINT64_C (0x9e3779b97f4a7c15) * (i + 1);

    for (int k = 0; k < 16; k++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        random[k] = x >> 32 & 0xff;
    }
    struct idcomp_uuid uuid = idcomp_uuid_random (random);
    idcomp_uuid_format (&uuid, text, IDCOMP_UUID_TEXT_MAX);
}

/* Let a session make the ids of its turn. The first session makes them by itself; of the other sessions, ranges arrive.
 */
static void take_turn (struct document *d, int session, int64_t first)
{
    struct idcomp_range range = {
        .has_ids = true,
        .first = first,
        .count = d->turn,
        .cluster_size = d->cluster_size,
    };
    struct idcomp_run runs[2];

    memcpy (range.session, d->session[session], sizeof (range.session));
    if (session == 0 && (idcomp_generate_runs (d->c, d->turn, runs) < 0 || idcomp_take (d->c, &range) < 0))
        die ("generate");
    if (idcomp_finalize (d->c, &range) < 0)
        die ("finalize");
    if (session == 0)
        idcomp_range_fini (&range);
}

static bool build (struct document *d, int i, int end)
{
    idcomp_destroy (d->c);
    d->c = idcomp_create (d->session[0], IDCOMP_STRICT);
    if (idcomp_set_cluster_size (d->c, d->cluster_size) < 0)
        return false;
    int round = d->turn * d->sessions;
    for (int64_t turn = 0; turn < (d->ids + round - 1) / round; turn++)
        for (int s = 0; s < d->sessions; s++)
            take_turn (d, s, turn * d->turn + 1);
    return true;
}

static void take_sample (struct document *d)
{
    uint64_t x = 88172645463325252;

    for (int i = 0; i < SAMPLE;) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        d->op[i] = x % d->ids;
        if (idcomp_to_session (d->c, d->op[i], NULL, &d->id[i]) < 0
            || idcomp_decompress (d->c, d->id[i], &d->uuid[i]) < 0)
            continue; /* this id is reserved for another session */
        idcomp_uuid_format (&d->uuid[i], d->text[i], sizeof (d->text[i]));
        i++;
    }
}

/* --- what is measured --- */

__attribute__ ((noinline)) static int nothing (int64_t id, int64_t *result)
{
    *result = id;
    __asm__ volatile("" ::: "memory");
    return 0;
}

static bool bare (struct document *d, int i, int end)
{
    bool good = true;

    for (; i < end; i++)
        good &= nothing (d->op[i], &d->result[i]) == 0;
    return good;
}

static bool to_session (struct document *d, int i, int end)
{
    bool good = true;
    int from = i;

    for (; i < end; i++)
        good &= idcomp_to_session (d->c, d->op[i], NULL, &d->result[i]) == 0;
    return good && memcmp (d->result + from, d->id + from, (end - from) * sizeof (d->id[0])) == 0;
}

static bool to_op (struct document *d, int i, int end)
{
    bool good = true;
    int from = i;

    for (; i < end; i++)
        good &= idcomp_to_op (d->c, d->id[i], &d->result[i]) == 0;
    return good && memcmp (d->result + from, d->op + from, (end - from) * sizeof (d->op[0])) == 0;
}

static bool decompress (struct document *d, int i, int end)
{
    bool good = true;
    int from = i;

    for (; i < end; i++)
        good &= idcomp_decompress (d->c, d->id[i], &d->uuid_result[i]) == 0;
    return good && memcmp (d->uuid_result + from, d->uuid + from, (end - from) * sizeof (d->uuid[0])) == 0;
}

static bool decompress_text (struct document *d, int i, int end)
{
    bool good = true;
    char text[IDCOMP_UUID_TEXT_MAX];
    struct idcomp_uuid uuid;

    for (; i < end; i++) {
        good &= idcomp_decompress (d->c, d->id[i], &uuid) == 0;
        idcomp_uuid_format (&uuid, text, sizeof (text));
        good &= text[35] == d->text[i][35];
    }
    return good;
}

static bool recompress (struct document *d, int i, int end)
{
    bool good = true;
    int from = i;

    for (; i < end; i++)
        good &= idcomp_recompress (d->c, &d->uuid[i], &d->result[i]) == 0;
    return good && memcmp (d->result + from, d->id + from, (end - from) * sizeof (d->id[0])) == 0;
}

static bool recompress_text (struct document *d, int i, int end)
{
    bool good = true;
    int from = i;

    for (; i < end; i++)
        good &= idcomp_recompress_text (d->c, d->text[i], &d->result[i]) == 0;
    return good && memcmp (d->result + from, d->id + from, (end - from) * sizeof (d->id[0])) == 0;
}

static bool save (struct document *d, int i, int end)
{
    return idcomp_save (d->c, IDCOMP_WITHOUT_LOCAL, d->data, d->size) == (ssize_t)d->size;
}

static bool copy (struct document *d, int i, int end)
{
    memcpy (d->copy, d->data, d->size);
    __asm__ volatile("" ::: "memory");
    return true;
}

static bool encode (struct document *d, int i, int end)
{
    return idcomp_base64_format (d->data, d->size, d->base64, IDCOMP_BASE64_TEXT_SIZE (d->size)) > 0;
}

static bool decode (struct document *d, int i, int end)
{
    size_t len = IDCOMP_BASE64_TEXT_SIZE (d->size) - 1;

    return idcomp_base64_parse (d->base64, len, d->data, d->size, NULL) == (ssize_t)d->size;
}

static bool load (struct document *d, int i, int end)
{
    char session[IDCOMP_UUID_TEXT_MAX];

    session_name (SESSIONS, session);
    struct idcomp *c = idcomp_load (d->data, d->size, session, IDCOMP_STRICT);
    bool good = c != NULL;
    idcomp_destroy (c);
    return good;
}

/* If a document is not finalized, all of its ids are local. */
static bool generate_local (struct document *d, int i, int end)
{
    struct idcomp *c = idcomp_create (d->session[0], IDCOMP_STRICT);
    int64_t id = 0;
    bool good = true;

    for (; i < end; i++)
        good &= idcomp_generate (c, &id) == 0;
    idcomp_destroy (c);
    return good && id == -end;
}

static bool generate_eager (struct document *d, int i, int end)
{
    struct idcomp *c = idcomp_create (d->session[0], IDCOMP_STRICT);
    struct idcomp_range range;
    int64_t id;
    bool good = idcomp_set_cluster_size (c, IDCOMP_CLUSTER_SIZE_MAX) == 0 && idcomp_generate (c, &id) == 0
                && idcomp_take (c, &range) == 0 && idcomp_finalize (c, &range) == 0;

    idcomp_range_fini (&range);
    for (; i < end; i++)
        good &= idcomp_generate (c, &id) == 0;
    idcomp_destroy (c);
    return good && id == end;
}

static void report_memory (struct document *d)
{
    struct idcomp_stats stats = idcomp_stats (d->c);
    struct figures f = { 0 };
    char name[64];
    struct line line = line_of (d, "memory of a cluster", name);

    figures_add (&f, (double)(stats.memory - 16 * stats.local_runs) / stats.clusters);
    figures_end_turn (&f);
    line.unit = "bytes";
    line.figures = &f;
    line_print (&line);
    figures_fini (&f);
}

/* Measure the stored form, unless it is too short: then the time to read the clock would dominate. */
static void measure_stored (struct document *d)
{
    d->size = idcomp_save_size (d->c, IDCOMP_WITHOUT_LOCAL);
    if (d->size < STORED_MIN)
        return;
    d->data = malloc (d->size);
    d->copy = malloc (d->size);
    d->base64 = malloc (IDCOMP_BASE64_TEXT_SIZE (d->size));
    report_whole (d, "save", save);
    report_whole (d, "base64 encode", encode);
    report_whole (d, "base64 decode", decode);
    report_whole (d, "load", load);
    free (d->data);
    free (d->copy);
    free (d->base64);
}

static void measure_document (struct document *d, int64_t ids)
{
    d->ids = ids;
    report (d, "build", build, ids);
    take_sample (d);
    report (d, "to session", to_session, SAMPLE);
    report (d, "to op", to_op, SAMPLE);
    report (d, "decompress", decompress, SAMPLE);
    report (d, "decompress text", decompress_text, SAMPLE);
    report (d, "recompress", recompress, SAMPLE);
    report (d, "recompress text", recompress_text, SAMPLE);

    measure_stored (d);
    report_memory (d);
    idcomp_destroy (d->c);
    d->c = NULL;
}

int main (void)
{
    static const struct document documents[] = {
        { .name = "single", .sessions = 1, .turn = 1000, .cluster_size = 512 },
        { .name = "duo", .sessions = 2, .turn = 1000, .cluster_size = 512 },
        { .name = "fragmented", .sessions = 8, .turn = 16, .cluster_size = 8 },
    };
    struct document *d = calloc (1, sizeof (*d));

    if (!d)
        die ("allocation");
    *d = (struct document){ .name = "", .ids = 1000000 };
    for (int i = 0; i < SESSIONS; i++)
        session_name (i, d->session[i]);
    report (d, "generate local", generate_local, 1000000);
    report (d, "generate eager", generate_eager, 1000000);
    for (size_t i = 0; i < sizeof (documents) / sizeof (documents[0]); i++) {
        memcpy (d, &documents[i], offsetof (struct document, ids));
        for (int64_t ids = 1000; ids <= 1000000; ids *= ids == 1000 ? 100 : 10)
            measure_document (d, ids);
    }
    free (d);
    return EXIT_SUCCESS;
}
