/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* orderer_test.c - each valid range is ordered once; other ranges are refused */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test/tap.h"
#include "modules/compressor/order/orderer.h"

#define A "11111111-1111-4111-8111-111111111111"
#define A_PLUS_5 "11111111-1111-4111-8111-111111111116"
#define B "22222222-2222-4222-8222-222222222222"
#define C "33333333-3333-4333-8333-333333333333"
#define OWN "00000000-0000-4000-8000-000000000000"

static idt_error_t error;

static struct orderer *create (const struct orderer_limits *limits, const void *form, size_t size, int64_t seq)
{
    struct orderer *o = orderer_create (limits, form, size, seq);

    if (!o)
        bail_out ("cannot create an orderer");
    return o;
}

static const struct orderer_limits roomy = { .sessions = 100, .clusters = 100, .window = 3 };

/* Returns 1: ordered now, 0: ordered before, or minus errno. */
static int add_sized (struct orderer *o, const char *session, int64_t first, int64_t count, int64_t size)
{
    struct idcomp_range range = { .has_ids = true, .first = first, .count = count, .cluster_size = size };

    snprintf (range.session, sizeof (range.session), "%s", session);
    int rc = orderer_add (o, &range, &error);
    return rc < 0 ? -errno : rc;
}

static int add (struct orderer *o, const char *session, int64_t first, int64_t count)
{
    return add_sized (o, session, first, count, 5);
}

static void check_order (void)
{
    struct orderer *o = create (&roomy, NULL, 0, 0);

    ok (orderer_seq (o) == 0, "a new document has no ranges");
    ok (add (o, A, 1, 2) == 1 && orderer_seq (o) == 1, "the first range of a document has number 1");
    ok (add (o, B, 1, 3) == 1 && orderer_seq (o) == 2, "the next range, of another session, has number 2");
    ok (add (o, A, 1, 2) == 0 && orderer_seq (o) == 2, "a range that is sent again is dropped");
    ok (add (o, A, 3, 4) == 1 && add (o, A, 1, 2) == 0 && add (o, A, 3, 4) == 0,
        "older ranges of a session that are sent again are dropped");
    ok (strstr (orderer_range (o, 3), "\"firstGenCount\":3"), "the orderer keeps the text of a range");
    orderer_destroy (o);
}

static void check_refused (void)
{
    struct orderer *o = create (&roomy, NULL, 0, 0);
    struct idcomp_range empty = { .session = A };

    add (o, A, 1, 4);
    ok (add (o, A, 6, 1) == -EINVAL && strstr (error.text, "missing"), "a range after a gap is refused: %s",
        error.text);
    ok (add (o, A, 4, 2) == -EINVAL && strstr (error.text, "part"), "a range that is known in part is refused: %s",
        error.text);
    ok (add (o, B, 2, 1) == -EINVAL, "a first range of a session that does not begin at 1 is refused");
    ok (orderer_add (o, &empty, &error) < 0 && errno == EINVAL, "a range without ids is refused");
    ok (add (o, A, 0, 5) == -EINVAL && add (o, A, -1, 6) == -EINVAL && add (o, A, 5, 0) == -EINVAL
            && add (o, A, 5, -1) == -EINVAL && add (o, A, 1, INT64_MAX) == -EINVAL
            && add (o, A, 5, INT64_MAX) == -EINVAL,
        "a range with numbers out of range is refused");
    ok (add_sized (o, A, 5, 1, 0) == -EINVAL && add_sized (o, A, 5, 1, IDCOMP_CLUSTER_SIZE_MAX + 1) == -EINVAL,
        "a range with a cluster size out of range is refused");
    ok (add (o, "nonsense", 1, 1) == -EINVAL, "a range with an invalid session UUID is refused: %s", error.text);
    ok (add (o, A_PLUS_5, 1, 1) == -EINVAL,
        "a range of a session whose UUIDs collide with another session's is refused: %s", error.text);
    ok (add (o, OWN, 1, 1) == -EINVAL, "a range of the orderer's own session is refused: %s", error.text);
    ok (orderer_seq (o) == 1 && add (o, A, 5, 1) == 1 && add (o, B, 1, 1) == 1, "a refused range changes no session");
    ok (!orderer_range (o, 4) && strstr (orderer_range (o, 3), B), "a refused range leaves no text");
    orderer_destroy (o);
}

static void check_long_range (void)
{
    struct orderer *o = create (&roomy, NULL, 0, 0);
    struct idcomp_range range = { .session = A, .has_ids = true, .first = 1, .count = 40000, .cluster_size = 5 };

    range.nruns = 20000;
    range.runs = calloc (range.nruns, sizeof (range.runs[0]));
    for (size_t i = 0; i < range.nruns; i++)
        range.runs[i] = (struct idcomp_run){ 2 * (int64_t)i + 1, 1 };
    ok (orderer_add (o, &range, &error) < 0 && errno == EINVAL && orderer_seq (o) == 0,
        "a range with a text that is too long is refused: %s", error.text);
    idcomp_range_fini (&range);
    orderer_destroy (o);
}

static void check_limits (void)
{
    const struct orderer_limits tight = { .sessions = 2, .clusters = 3, .window = 1 };
    struct orderer *o = create (&tight, NULL, 0, 0);

    ok (add (o, A, 1, 1) == 1 && add (o, B, 1, 1) == 1, "a document accepts its limit of sessions");
    ok (add (o, C, 1, 1) == -EDQUOT, "a session above the limit of a document is refused: %s", error.text);
    ok (add (o, A, 2, 9) == 1, "sessions of a document at its limit can add ranges");
    ok (add (o, B, 2, 9) == -EDQUOT, "a range above the limit of clusters is refused: %s", error.text);
    ok (add (o, A, 1, 1) == 0, "a range that was ordered before is dropped even at the limit of clusters");
    orderer_destroy (o);
}

static void check_window (void)
{
    struct orderer *o = create (&roomy, NULL, 0, 0);
    int64_t first = 1;

    for (int i = 0; i < 5; i++)
        add (o, A, first++, 1);
    ok (orderer_stored_seq (o) == 0 && orderer_range (o, 1) && orderer_range (o, 5),
        "ranges that are not stored are kept");
    orderer_stored (o);
    ok (orderer_stored_seq (o) == 5 && !orderer_range (o, 2) && orderer_range (o, 3) && orderer_range (o, 5),
        "of the stored ranges only the last ones are kept");
    ok (!orderer_range (o, 6) && !orderer_range (o, 0), "a number without a kept range has no text");
    orderer_destroy (o);
}

static bool equal_forms (void *a, size_t a_size, void *b, size_t b_size)
{
    bool equal = a && b && a_size == b_size && memcmp (a, b, a_size) == 0;

    free (a);
    free (b);
    return equal;
}

static void check_stored_view (void)
{
    struct orderer *o = create (&roomy, NULL, 0, 0);
    size_t then_size, size;

    add (o, A, 1, 4);
    add (o, B, 1, 4);
    orderer_stored (o);
    void *then = orderer_save (o, &then_size);
    add (o, A, 5, 20);
    add (o, C, 1, 2);
    add (o, B, 5, 3);
    void *form = orderer_save_stored (o, &size);
    ok (equal_forms (form, size, then, then_size) && orderer_stored_stats (o).clusters == 2,
        "the stored form has no ranges that were ordered later");
    orderer_stored (o);
    form = orderer_save_stored (o, &size);
    then = orderer_save (o, &then_size);
    ok (equal_forms (form, size, then, then_size) && orderer_stored_stats (o).clusters == 4,
        "when later ranges are stored, the stored form has them");
    orderer_destroy (o);
}

static void check_digests (void)
{
    struct orderer *o = create (&roomy, NULL, 0, 0);
    uint64_t before, d[6];

    orderer_digest (o, 0, &before);
    for (int i = 1; i <= 5; i++) {
        add (o, A, i, 1);
        orderer_digest (o, i, &d[i]);
    }
    orderer_stored (o); /* the window keeps 3 ranges */
    ok (orderer_digest (o, 5, &before) == 0 && before == d[5] && orderer_digest (o, 3, &before) == 0 && before == d[3]
            && orderer_digest (o, 2, &before) == 0 && before == d[2],
        "digests are kept for the ranges that are kept, and for the range before");
    ok (orderer_digest (o, 1, &before) < 0 && orderer_digest (o, 6, &before) < 0,
        "digests of older and of future ranges are not known");
    orderer_destroy (o);
}

static void check_reload (void)
{
    struct orderer *o = create (&roomy, NULL, 0, 0);
    size_t size;

    add (o, A, 1, 4);
    add (o, B, 1, 4);
    void *form = orderer_save (o, &size);
    struct orderer *again = create (&roomy, form, size, 2);
    ok (idcomp_equal (orderer_ids (o), orderer_ids (again), IDCOMP_WITHOUT_LOCAL) && orderer_seq (again) == 2,
        "an orderer that loads a stored form has all its clusters");
    ok (add (again, A, 1, 4) == 0 && add (again, A, 5, 1) == 1 && orderer_seq (again) == 3,
        "an orderer continues to order after it has loaded a form");
    ok (!orderer_range (again, 2) && orderer_range (again, 3),
        "ranges in a loaded form have no text, and later ranges have");
    free (form);
    orderer_destroy (o);
    orderer_destroy (again);
    ok (!orderer_create (&roomy, "damaged", 7, 0) && errno == IDCOMP_ECORRUPT_LENGTH,
        "a damaged stored form is refused");
    errno = EINTR;
    orderer_destroy (NULL);
    ok (errno == EINTR, "orderer_destroy (NULL) does nothing and keeps errno");
}

int main (void)
{
    check_order ();
    check_refused ();
    check_long_range ();
    check_limits ();
    check_window ();
    check_stored_view ();
    check_digests ();
    check_reload ();
    return done_testing ();
}
