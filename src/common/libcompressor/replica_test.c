/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* replica_test.c - a replica finalizes each range once, in order, and loses no id
 *
 * Random histories that include the orderer are in src/modules/compressor/order/history_test.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test/tap.h"
#include "replica.h"

#define A "11111111-1111-4111-8111-111111111111"
#define B "22222222-2222-4222-8222-222222222222"
#define EMPTY "AAAAAAAAAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

static unsigned char form[65536];

static struct replica *create (const char *session)
{
    ssize_t size = idcomp_base64_parse (EMPTY, strlen (EMPTY), form, sizeof (form), NULL);
    struct replica *r = replica_create (session, form, size, 0);

    if (!r)
        bail_out ("a replica cannot be made");
    return r;
}

static int64_t make (struct replica *r)
{
    int64_t id = 0;

    idcomp_generate (replica_ids (r), &id);
    return id;
}

static struct idcomp_range range_of (const char *session, int64_t first, int64_t count)
{
    struct idcomp_range range = { .has_ids = true, .first = first, .count = count, .cluster_size = 4 };

    strcpy (range.session, session);
    return range;
}

static void check_announcing (void)
{
    struct replica *r = create (A);
    const struct idcomp_range *range;

    ok (!replica_announce (r) && replica_settled (r), "a replica without new ids has no announcement");
    make (r);
    range = replica_announce (r);
    ok (range && range->first == 1 && range->count == 1, "a new id is announced");
    make (r);
    ok (!replica_announce (r), "no further id is announced while an announcement is in progress");
    replica_announce_again (r);
    range = replica_announce (r);
    ok (range && range->first == 1 && range->count == 1, "a lost announcement is repeated unchanged");
    replica_heard (r, 1);
    ok (!replica_announce (r) && !replica_settled (r), "the response to an announcement alone does not end it");
    ok (replica_apply (r, 1, range) == 0, "the announcement ends when its range arrives in the order");
    range = replica_announce (r);
    ok (range && range->first == 2 && range->count == 1, "after an announcement the ids made meanwhile are announced");
    ok (replica_apply (r, 2, range) == 0 && !replica_announce (r) && replica_settled (r),
        "a replica makes announcements until all its ids are in the order");
    replica_destroy (r);
}

static void check_order (void)
{
    struct replica *r = create (A);
    struct idcomp_range first = range_of (B, 1, 2), second = range_of (B, 3, 2);

    ok (!replica_missing (r), "a new replica misses no range");
    ok (replica_apply (r, 2, &second) < 0 && errno == EAGAIN,
        "a range that arrives before an earlier one is not finalized");
    ok (replica_missing (r) && replica_seq (r) == 0,
        "a range that arrives before an earlier one shows that ranges are missing");
    ok (replica_apply (r, 1, &first) == 0 && replica_missing (r) && replica_seq (r) == 1,
        "after a missing range was finalized, the range that arrived too early is still missing");
    ok (replica_apply (r, 2, &second) == 0 && !replica_missing (r) && replica_seq (r) == 2,
        "when the range that arrived too early arrives again, no range is missing");
    ok (replica_apply (r, 1, &first) == 0 && replica_apply (r, 2, &second) == 0
            && idcomp_stats (replica_ids (r)).allocated_finals == 6,
        "a range that arrives twice is ignored");
    replica_heard (r, 5);
    ok (replica_missing (r) && replica_seq (r) == 2,
        "ranges are missing when a replica hears of a range above its own last one");
    replica_heard (r, 4);
    ok (replica_missing (r) && replica_seq (r) == 2, "a number below the known latest range changes nothing");
    replica_destroy (r);
}

static void check_load (void)
{
    struct replica *a = create (A), *b = create (B);
    int64_t id = make (a);
    struct idcomp_uuid before, after;

    struct idcomp_range other = range_of (B, 1, 3);
    idcomp_decompress (replica_ids (a), id, &before);
    const struct idcomp_range *mine = replica_announce (a);
    for (int i = 0; i < 3; i++)
        make (b);
    replica_apply (b, 1, &other);
    replica_apply (b, 2, mine);
    ssize_t size = idcomp_save (replica_ids (b), IDCOMP_WITHOUT_LOCAL, form, sizeof (form));
    replica_heard (a, 2);
    ok (replica_load (a, form, size, 2) == 0 && replica_seq (a) == 2 && !replica_missing (a),
        "a stored form replaces the ranges in it");
    ok (replica_settled (a) && !replica_announce (a),
        "an announced range that is in a loaded form is no longer announced");
    ok (idcomp_decompress (replica_ids (a), id, &after) == 0 && memcmp (&before, &after, sizeof (after)) == 0,
        "an id that was given out has the same UUID after loading a form");
    ok (replica_load (a, form, 3, 2) == 0, "a form that has no further ranges is ignored");
    ok (replica_load (a, form, 3, 3) < 0 && errno == EPIPE && replica_broken (a),
        "a damaged form makes the replica broken");
    diag ("%s", replica_broken (a));
    replica_destroy (a);
    replica_destroy (b);
}

static void check_large_ranges (void)
{
    struct replica *r = create (A);
    struct idcomp_run runs[2];

    idcomp_generate_runs (replica_ids (r), 100000, runs);
    const struct idcomp_range *range = replica_announce (r);
    ok (range->cluster_size == 200000, "a session that makes many ids requests twice as many reserved ones");
    replica_apply (r, 1, range);
    ok (idcomp_generate_runs (replica_ids (r), 200000, runs) == 1 && runs[0].first >= 0,
        "the next ids of a session with many reserved ids are final immediately");
    replica_destroy (r);
    r = create (A);
    make (r);
    ok (replica_announce (r)->cluster_size == IDCOMP_CLUSTER_SIZE_DEFAULT,
        "a session that makes few ids requests the default number of reserved ids");
    idcomp_generate_runs (replica_ids (r), INT64_C (1) << 40, runs);
    replica_announce_again (r);
    replica_apply (r, 1, replica_announce (r));
    ok (replica_announce (r)->cluster_size == IDCOMP_CLUSTER_SIZE_MAX,
        "the number of reserved ids that a session requests is limited");
    replica_destroy (r);
}

static void check_broken (void)
{
    struct replica *r = create (A);
    struct idcomp_range range = range_of (A, 1, 1);

    ok (replica_apply (r, 1, &range) < 0 && errno == EPIPE && replica_broken (r),
        "a range with ids of this session that it has not made makes the replica broken");
    diag ("%s", replica_broken (r));
    make (r);
    replica_heard (r, 9);
    ok (!replica_announce (r) && !replica_missing (r) && replica_apply (r, 1, &range) < 0 && errno == EPIPE
            && replica_load (r, form, 32, 9) < 0 && errno == EPIPE,
        "a broken replica makes no announcement and accepts no range");
    replica_break (r, "another reason");
    ok (strstr (replica_broken (r), "range 1"), "a broken replica keeps the first reason");
    replica_destroy (r);
    errno = EINTR;
    replica_destroy (NULL);
    ok (errno == EINTR, "replica_destroy accepts NULL and keeps errno");
    ok (!replica_create ("nonsense", form, 32, 0) && errno == IDCOMP_EBAD_UUID, "a replica needs a session");
}

int main (void)
{
    check_announcing ();
    check_order ();
    check_load ();
    check_large_ranges ();
    check_broken ();
    return done_testing ();
}
