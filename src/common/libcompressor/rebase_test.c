/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rebase_test.c - a session that loads the final space of a newer stored form keeps its ids, or the form is refused */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test/tap.h"
#include "compressor.h"

#define A "11111111-1111-4111-8111-111111111111"
#define B "22222222-2222-4222-8222-222222222222"
#define C "33333333-3333-4333-8333-333333333333"

static char form[65536];

static struct idcomp *create (const char *session)
{
    struct idcomp *c = idcomp_create (session, IDCOMP_STRICT);

    if (!c || idcomp_set_cluster_size (c, 4) < 0)
        bail_out ("a compressor cannot be made");
    return c;
}

/* Make the next 'n' ids of 'from' final in all compressors. */
static void order (struct idcomp *from, int n, struct idcomp *all[], int nall)
{
    struct idcomp_range range;
    int64_t id;

    while (n-- > 0)
        idcomp_generate (from, &id);
    if (idcomp_take (from, &range) < 0)
        bail_out ("ids cannot be taken");
    for (int i = 0; i < nall; i++)
        if (idcomp_finalize (all[i], &range) < 0)
            bail_out ("a range cannot be finalized");
    idcomp_range_fini (&range);
}

static size_t save (struct idcomp *c)
{
    ssize_t size = idcomp_save (c, IDCOMP_WITHOUT_LOCAL, form, sizeof (form));

    if (size < 0)
        bail_out ("a compressor cannot be saved");
    return size;
}

/* Whether the first 'n' ids of the session have the same UUIDs and the same session space forms as before. */
static bool same_ids (struct idcomp *before, struct idcomp *after, const int64_t id[], int n)
{
    struct idcomp_uuid a, b;
    int64_t back;

    for (int i = 0; i < n; i++)
        if (idcomp_decompress (before, id[i], &a) < 0 || idcomp_decompress (after, id[i], &b) < 0
            || memcmp (&a, &b, sizeof (a)) != 0 || idcomp_recompress (after, &b, &back) < 0 || back != id[i])
            return false;
    return true;
}

static void check_ids_stay (void)
{
    struct idcomp *a = create (A), *b = create (B), *all[] = { a, b };
    struct idcomp_range range;
    int64_t id[20];
    int n = 0;

    while (n < 3)
        idcomp_generate (a, &id[n++]);
    order (a, 0, all, 2);
    order (b, 3, all, 2);
    while (n < 12)
        idcomp_generate (a, &id[n++]);
    idcomp_take (a, &range);
    while (n < 15)
        idcomp_generate (a, &id[n++]);
    idcomp_finalize (b, &range);
    order (b, 9, all + 1, 1);

    struct idcomp *c = compressor_rebase (a, form, save (b));
    ok (c != NULL, "a session with local, eager and announced ids loads a newer form");
    if (!c)
        bail_out (idcomp_strerror (errno));
    ok (strcmp (idcomp_session (c), A) == 0 && idcomp_equal (b, c, IDCOMP_WITHOUT_LOCAL),
        "after loading a newer form, a session is the same session, in the final space of the form");
    ok (same_ids (a, c, id, n),
        "after loading a newer form, each id that was given out has the same UUID and is converted to the same form");
    ok (idcomp_stats (c).generated == n && idcomp_stats (c).finalized == 12 && idcomp_stats (c).next_range_first == 13,
        "after loading a newer form, the announced ids are final, and the other ids are announced next");
    order (c, 1, &b, 1);
    ok (idcomp_expected (b, A) == n + 2,
        "after loading a newer form, the next range of the session continues after the ids that the form has");
    idcomp_range_fini (&range);
    idcomp_destroy (a);
    idcomp_destroy (b);
    idcomp_destroy (c);
}

static void check_new_session (void)
{
    struct idcomp *a = create (A), *b = create (B), *c = create (C), *all[] = { b, c };
    int64_t id[2];

    idcomp_generate (a, &id[0]);
    idcomp_generate (a, &id[1]);
    order (b, 3, all, 2);
    order (c, 3, all, 2);
    struct idcomp *moved = compressor_rebase (a, form, save (b));
    ok (moved && same_ids (a, moved, id, 2) && idcomp_equal (moved, c, IDCOMP_WITHOUT_LOCAL),
        "a session that the newer form does not have keeps its ids");
    idcomp_destroy (a);
    idcomp_destroy (b);
    idcomp_destroy (c);
    idcomp_destroy (moved);
}

static int refused (const struct idcomp *mine, size_t size)
{
    errno = 0;
    struct idcomp *c = compressor_rebase (mine, form, size);
    int error = c ? 0 : errno;

    idcomp_destroy (c);
    return error;
}

static void check_refused (void)
{
    struct idcomp *a = create (A), *b = create (B), *other = create (C), *all[] = { a, b };

    order (b, 3, all, 2);
    size_t size = save (b);
    order (b, 9, all, 2);
    ok (refused (a, size) == ESTALE, "a form with fewer ranges than the session has processed is refused");
    order (other, 3, &other, 1);
    ok (refused (a, save (other)) == ESTALE, "a form of ranges in another order is refused");
    order (a, 3, all, 2);
    order (b, 3, all, 2);
    size = save (b);
    struct idcomp *twin = create (A);
    ok (refused (twin, size) == IDCOMP_ECORRUPT_VALUE, "a form with ids that this session has not made is refused");
    size_t cut = 0;
    while (cut < size && refused (twin, cut) != 0)
        cut++;
    ok (cut == size, "a form that is cut anywhere is refused: %zu of %zu bytes", cut, size);
    ok (refused (twin, idcomp_save (a, IDCOMP_WITH_LOCAL, form, sizeof (form))) == IDCOMP_EHAS_LOCAL_STATE,
        "a form with local state is refused");
    idcomp_destroy (a);
    idcomp_destroy (b);
    idcomp_destroy (twin);
    idcomp_destroy (other);
}

int main (void)
{
    check_ids_stay ();
    check_new_session ();
    check_refused ();
    return done_testing ();
}
