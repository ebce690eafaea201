/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* counts_compressor.c - the id compressor: two sessions in turns of 16 ids */
#include <stdlib.h>
#include <string.h>

#include <idtree/idcomp.h>

#include "counts.h"

#define TURN 16
#define TURNS 500
#define IDS (2 * TURN * TURNS)

static const char *const sessions[] = { "5f3b4c1e-8d2a-4f6b-9c7d-0123456789ab",
                                        "a1b2c3d4-e5f6-4789-8abc-def012345678" };

struct bed {
    struct idcomp *c, *local;
    int64_t id[COUNTS_TIMES];
    struct idcomp_uuid uuid[COUNTS_TIMES];
    void *data;
    size_t size;
};

static void build (struct bed *bed)
{
    bed->c = idcomp_create (sessions[0], IDCOMP_STRICT);
    counts_must (bed->c && idcomp_set_cluster_size (bed->c, TURN) == 0, "creating a compressor");
    for (int64_t turn = 0; turn < 2 * (int64_t)TURNS; turn++) {
        struct idcomp_range range = {
            .has_ids = true, .first = turn / 2 * TURN + 1, .count = TURN, .cluster_size = TURN
        };
        struct idcomp_run runs[2];

        memcpy (range.session, sessions[turn % 2], strlen (sessions[turn % 2]) + 1);
        if (turn % 2 == 0)
            counts_must (idcomp_generate_runs (bed->c, TURN, runs) > 0 && idcomp_take (bed->c, &range) == 0,
                         "generating");
        counts_must (idcomp_finalize (bed->c, &range) == 0, "finalizing");
        if (turn % 2 == 0)
            idcomp_range_fini (&range);
    }
}

static void begin_local (void *arg, int unused)
{
    struct bed *bed = arg;

    idcomp_destroy (bed->local);
    bed->local = idcomp_create (sessions[0], IDCOMP_STRICT);
    counts_must (bed->local != NULL, "creating a compressor");
}

static void generate_local (void *arg, int i)
{
    struct bed *bed = arg;
    int64_t id;

    counts_must (idcomp_generate (bed->local, &id) == 0, "generating");
}

static int64_t op_of (int i)
{
    return (int64_t)i * 211 % IDS;
}

static void to_session (void *arg, int i)
{
    struct bed *bed = arg;

    counts_must (idcomp_to_session (bed->c, op_of (i), NULL, &bed->id[i]) == 0, "to session space");
}

static void to_op (void *arg, int i)
{
    struct bed *bed = arg;
    int64_t op;

    counts_must (idcomp_to_op (bed->c, bed->id[i], &op) == 0 && op == op_of (i), "to op space");
}

static void decompress (void *arg, int i)
{
    struct bed *bed = arg;

    counts_must (idcomp_decompress (bed->c, bed->id[i], &bed->uuid[i]) == 0, "decompressing");
}

static void recompress (void *arg, int i)
{
    struct bed *bed = arg;
    int64_t id;

    counts_must (idcomp_recompress (bed->c, &bed->uuid[i], &id) == 0 && id == bed->id[i], "recompressing");
}

static void save (void *arg, int i)
{
    struct bed *bed = arg;

    counts_must (idcomp_save (bed->c, IDCOMP_WITHOUT_LOCAL, bed->data, bed->size) == (ssize_t)bed->size, "saving");
}

static void load (void *arg, int i)
{
    struct bed *bed = arg;
    struct idcomp *c = idcomp_load (bed->data, bed->size, "0f1e2d3c-4b5a-4697-8877-665544332211", IDCOMP_STRICT);

    counts_must (c != NULL, "loading");
    idcomp_destroy (c);
}

void count_compressor (void)
{
    static const struct count counts[] = {
        { "compressor: generate, local", generate_local, begin_local, 0 },
        { "compressor: to session", to_session, NULL, 0 },
        { "compressor: to op", to_op, NULL, 0 },
        { "compressor: decompress", decompress, NULL, 0 },
        { "compressor: recompress", recompress, NULL, 0 },
        { "compressor: save 1000 clusters", save, NULL, 0 },
        { "compressor: load 1000 clusters", load, NULL, 0 },
    };
    struct bed bed = { 0 };

    build (&bed);
    bed.size = idcomp_save_size (bed.c, IDCOMP_WITHOUT_LOCAL);
    bed.data = malloc (bed.size);
    counts_must (bed.data != NULL, "memory");
    counts_run (counts, sizeof (counts) / sizeof (counts[0]), &bed);
    free (bed.data);
    idcomp_destroy (bed.c);
    idcomp_destroy (bed.local);
}
