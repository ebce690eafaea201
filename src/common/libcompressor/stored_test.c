/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* stored_test.c - the stored form: the valid values of each cell, and what IDCOMP_ORIGINAL accepts */

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <idtree/idcomp.h>

#include "test/tap.h"

#define A "88888888-8888-4888-b088-888888888888"
#define B "88888888-8888-4888-b188-888888888888"
#define NEW "0f0f0f0f-0f0f-4f0f-8f0f-0f0f0f0f0f0f"
#define CELLS_MAX 64

/* The cells of UUIDs A and B, see uuid.h. */
#define A_LOW UINT64_C (0x3088888888888888)
#define B_LOW UINT64_C (0x3188888888888888)
#define AB_HIGH UINT64_C (0x0222222222222222)
#define UUID(low) (low), AB_HIGH

struct form {
    uint64_t cell[CELLS_MAX];
    size_t n;
};

static uint64_t num (double d)
{
    uint64_t word;

    memcpy (&word, &d, sizeof (word));
    return word;
}

static void add (struct form *f, uint64_t cell)
{
    f->cell[f->n++] = htole64 (cell);
}

static void add_numbers (struct form *f, const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add (f, num (v[i]));
}

#define NUMBERS(f, ...) \
    add_numbers (f, (const double[]){ __VA_ARGS__ }, sizeof ((const double[]){ __VA_ARGS__ }) / sizeof (double))

/* The form of A with a cluster of 8 (all finalized), B with one of 4 (all), A with one of 6 (2 finalized). A made 16
 * ids: 1-4, 6, 9, 15 and 16 are local, the others were eager.
 */
static struct form example (bool local)
{
    struct form f = { .n = 0 };

    NUMBERS (&f, 2, local, 2, 3);
    add (&f, A_LOW);
    add (&f, AB_HIGH);
    add (&f, B_LOW);
    add (&f, AB_HIGH);
    NUMBERS (&f, 0, 8, 8, 1, 4, 4, 0, 6, 2);
    if (local)
        NUMBERS (&f, 16, 11, 4, 1, 4, 6, 1, 9, 1, 15, 2);
    return f;
}

/* Load a form from memory of exactly its size. Returns 0 and the compressor, or errno. */
static int load (const struct form *f, size_t cells, const char *session, int flags, struct idcomp **c)
{
    unsigned char *data = malloc (cells * 8 + 1);

    memcpy (data, f->cell, cells * 8);
    errno = 0;
    *c = idcomp_load (data, cells * 8, session, flags);
    free (data);
    return *c ? 0 : errno;
}

/* Load a form.  Returns 0 or errno. */
static int result (const struct form *f, const char *session, int flags)
{
    struct idcomp *c;
    int error = load (f, f->n, session, flags, &c);

    idcomp_destroy (c);
    return error;
}

static bool saves_as (struct idcomp *c, const struct form *f, enum idcomp_state state)
{
    unsigned char data[8 * CELLS_MAX];

    return idcomp_save_size (c, state) == f->n * 8 && idcomp_save (c, state, data, sizeof (data)) == (ssize_t)(f->n * 8)
           && memcmp (data, f->cell, f->n * 8) == 0;
}

/* Whether loading with IDCOMP_STRICT either fails with an error of the library, or gives a compressor that is stored as
 * the same bytes.
 */
static bool is_sound (const struct form *f, bool local)
{
    enum idcomp_state state = local ? IDCOMP_WITH_LOCAL : IDCOMP_WITHOUT_LOCAL;
    struct idcomp *c;
    int error = load (f, f->n, local ? NULL : NEW, IDCOMP_STRICT, &c);
    bool good = error ? idcomp_error_name (error) != NULL : saves_as (c, f, state);

    idcomp_destroy (c);
    return good;
}

static void check_round_trip (void)
{
    for (int local = 0; local < 2; local++) {
        struct form f = example (local);
        struct idcomp *c;
        ok (load (&f, f.n, local ? NULL : NEW, IDCOMP_STRICT, &c) == 0, "a form is loaded, local state %d", local);
        ok (saves_as (c, &f, local ? IDCOMP_WITH_LOCAL : IDCOMP_WITHOUT_LOCAL),
            "a form that was loaded is stored as the same bytes");
        unsigned char buf[8];
        errno = 0;
        ok (idcomp_save (c, IDCOMP_WITH_LOCAL, buf, idcomp_save_size (c, IDCOMP_WITH_LOCAL) - 1) < 0 && errno == ENOSPC,
            "a form is not stored if the buffer is one byte too small");
        ok (strcmp (idcomp_session (c), local ? A : NEW) == 0,
            "after loading, the local session has the name that the form has for it, or else the name given");
        idcomp_destroy (c);
    }
}

static void check_cuts (void)
{
    for (int local = 0; local < 2; local++) {
        struct form f = example (local);
        struct idcomp *c;
        bool good = true;
        for (size_t cells = 0; cells < f.n; cells++)
            good &= load (&f, cells, local ? NULL : NEW, IDCOMP_STRICT, &c) == IDCOMP_ECORRUPT_TRUNCATED;
        ok (good, "a form that is cut after any cell is refused as truncated, local state %d", local);
        add (&f, 0);
        ok (result (&f, local ? NULL : NEW, IDCOMP_STRICT) == IDCOMP_ECORRUPT_TRAILING,
            "a form with one more cell at its end is refused");
    }
    struct form f = example (true);
    errno = 0;
    ok (!idcomp_load (f.cell, f.n * 8 - 3, NULL, IDCOMP_STRICT) && errno == IDCOMP_ECORRUPT_LENGTH,
        "a form whose size is not a multiple of 8 bytes is refused");
}

/* Put unusual values into each cell of each form. */
static void check_values (void)
{
    const double odd[] = { -1,
                           -0.0,
                           0,
                           0.5,
                           1,
                           2,
                           3,
                           5,
                           7,
                           9,
                           12,
                           17,
                           4096,
                           4294967296.0,
                           9007199254740991.0,
                           9007199254740992.0,
                           9007199254740994.0,
                           1e300,
                           INFINITY,
                           -INFINITY,
                           NAN };
    size_t n = sizeof (odd) / sizeof (odd[0]);
    bool good = true;

    for (int local = 0; local < 2; local++) {
        struct form f = example (local);
        for (size_t cell = 0; cell < f.n; cell++) {
            uint64_t was = f.cell[cell];
            for (size_t i = 0; i < n; i++) {
                f.cell[cell] = htole64 (num (odd[i]));
                /* -0 is read as 0, which is written as +0 */
                good &= is_sound (&f, local) || (odd[i] == 0 && signbit (odd[i]));
                struct idcomp *c;
                load (&f, f.n, local ? NULL : NEW, IDCOMP_ORIGINAL, &c);
                idcomp_destroy (c);
            }
            f.cell[cell] = was;
        }
    }
    ok (good, "forms with unusual values in a cell are refused, or stored unchanged");
}

struct wrong {
    const char *what;
    int error;
    struct {
        size_t cell; /* 0: none */
        double value;
    } change[2];
};

static void check_rules (void)
{
    static const struct wrong rules[] = {
        { "a flag of 7", IDCOMP_ECORRUPT_VALUE, { { 1, 7 } } },
        { "a cluster without a session", IDCOMP_ECORRUPT_SESSION_INDEX, { { 8, 2 } } },
        { "a session index with a fraction", IDCOMP_ECORRUPT_SESSION_INDEX, { { 8, 0.5 } } },
        { "a cluster of session -1", IDCOMP_ECORRUPT_SESSION_INDEX, { { 8, -1 } } },
        { "a reserve before the last cluster", IDCOMP_ECORRUPT_VALUE, { { 10, 7 } } },
        { "more finalized ids than the cluster has", IDCOMP_ECORRUPT_VALUE, { { 10, 9 } } },
        { "a cluster of 0 ids", IDCOMP_ECORRUPT_VALUE, { { 15, 0 } } },
        { "an empty cluster", IDCOMP_ECORRUPT_VALUE, { { 12, 0 }, { 13, 0 } } },
        { "runs beyond the ids made", IDCOMP_ECORRUPT_VALUE, { { 17, 12 } } },
        { "more final ids than the limit",
          IDCOMP_ECORRUPT_VALUE,
          { { 12, 9007199254740992.0 }, { 13, 9007199254740992.0 } } },
        { "a reserve above 2^20", IDCOMP_ECORRUPT_VALUE, { { 15, 1048576 + 3 } } },
        { "finalized ids that were not made", IDCOMP_ECORRUPT_VALUE, { { 17, 9 } } },
        { "more ids than the limit", IDCOMP_ECORRUPT_VALUE, { { 17, 9007199254740992.0 } } },
        { "a next range at 0", IDCOMP_ECORRUPT_VALUE, { { 18, 0 } } },
        { "a next range beyond the next id", IDCOMP_ECORRUPT_VALUE, { { 18, 18 } } },
        { "a run at 0", IDCOMP_ECORRUPT_VALUE, { { 20, 0 } } },
        { "an empty run", IDCOMP_ECORRUPT_VALUE, { { 21, 0 } } },
        { "adjacent runs", IDCOMP_ECORRUPT_VALUE, { { 21, 5 } } },
        { "runs that overlap", IDCOMP_ECORRUPT_VALUE, { { 21, 6 } } },
        { "runs out of order", IDCOMP_ECORRUPT_LOCAL_RANGES, { { 24, 6 } } },
        { "a run of ids that were not made", IDCOMP_ECORRUPT_VALUE, { { 27, 3 } } },
        { "an id that is in no cluster and no run", IDCOMP_ECORRUPT_VALUE, { { 26, 16 }, { 27, 1 } } },
        { "an id after the last run", IDCOMP_ECORRUPT_VALUE, { { 27, 1 } } },
    };

    for (size_t i = 0; i < sizeof (rules) / sizeof (rules[0]); i++) {
        struct form f = example (true);
        for (int k = 0; k < 2; k++)
            if (rules[i].change[k].cell)
                f.cell[rules[i].change[k].cell] = htole64 (num (rules[i].change[k].value));
        int error = result (&f, NULL, IDCOMP_STRICT);
        if (!ok (error == rules[i].error, "a form with this damage is refused: %s", rules[i].what))
            diag ("got %s", error ? idcomp_strerror (error) : "a compressor");
    }
}

static void check_bounds (void)
{
    struct form f = example (true);

    f.cell[15] = htole64 (num (1048576 + 2));
    f.cell[17] = htole64 (num (16)); /* all ids after the finalized ones may have been eager */
    ok (result (&f, NULL, IDCOMP_STRICT) == 0, "a form with a reserve of 2^20 is accepted");
    f = example (true);
    f.cell[18] = htole64 (num (17));
    ok (result (&f, NULL, IDCOMP_STRICT) == 0, "a form whose next range begins at the next id is accepted");
    f = example (true);
    f.cell[26] = htole64 (num (14));
    f.cell[27] = htole64 (num (3));
    ok (result (&f, NULL, IDCOMP_STRICT) == 0, "a form with a run that begins within the clusters is accepted");
    f = example (true);
    f.n -= 4; /* without the last two runs */
    f.cell[19] = htole64 (num (2));
    f.cell[18] = f.cell[17] = htole64 (num (10));
    ok (result (&f, NULL, IDCOMP_STRICT) == 0, "a form in which all ids that were made are finalized is accepted");
    f.cell[18] = f.cell[17] = htole64 (num (9));
    ok (result (&f, NULL, IDCOMP_STRICT) == IDCOMP_ECORRUPT_VALUE,
        "a form with more finalized ids than were made is refused");
}

/* --- sessions --- */

static void check_sessions (void)
{
    struct form f = example (false);

    ok (result (&f, NULL, IDCOMP_STRICT) == IDCOMP_ENO_SESSION_ID,
        "loading a form without local state needs the name of a session");
    ok (result (&f, A, IDCOMP_STRICT) == IDCOMP_ESESSION_EXISTS,
        "loading a form as a session that is in the form is refused");
    ok (result (&f, "88888888-8888-4888-B088-888888888888", IDCOMP_STRICT) == IDCOMP_ESESSION_EXISTS,
        "loading a form as a session that is in the form is refused in any letter case");
    ok (result (&f, "new", IDCOMP_STRICT) == IDCOMP_EBAD_UUID,
        "loading a form as a session that is not a UUID is refused");
    f.cell[5] = htole64 (UINT64_C (1) << 58);
    ok (result (&f, NEW, IDCOMP_STRICT) == IDCOMP_ECORRUPT_VALUE,
        "a form with a session of more than 122 bits is refused");
    f.cell[5] = htole64 ((UINT64_C (1) << 58) - 1);
    f.cell[4] = htole64 (UINT64_MAX);
    ok (result (&f, NEW, IDCOMP_STRICT) == IDCOMP_ECORRUPT_VALUE, "a session too close to the largest UUID is refused");
    f = example (true);
    ok (result (&f, NEW, IDCOMP_STRICT) == IDCOMP_EHAS_LOCAL_STATE,
        "a form with local state cannot be loaded as a new session");
    f.cell[6] = f.cell[4];
    ok (result (&f, NULL, IDCOMP_STRICT) == IDCOMP_ESESSION_EXISTS, "a form that has a session twice is refused");
    f.cell[4] = f.cell[6] = htole64 (B_LOW);
    ok (result (&f, NULL, IDCOMP_STRICT) == IDCOMP_ESESSION_EXISTS,
        "a form that has another session than the local one twice is refused");
}

/* Many sessions in any order: all are found after loading. */
static void check_many (void)
{
    enum { N = 500 };
    struct idcomp *c = idcomp_create (NEW, IDCOMP_STRICT);
    char name[IDCOMP_UUID_TEXT_MAX];
    bool good = true;

    for (int i = 0; i < N; i++) {
        struct idcomp_range r = { .has_ids = true, .first = 1, .count = 1, .cluster_size = 1 };
        snprintf (r.session, sizeof (r.session), "%08x-8888-4888-b088-888888888888", i * 7919U % N * 0x10001U);
        good &= idcomp_finalize (c, &r) == 0;
    }
    size_t size = idcomp_save_size (c, IDCOMP_WITHOUT_LOCAL);
    unsigned char *data = malloc (size);
    idcomp_save (c, IDCOMP_WITHOUT_LOCAL, data, size);
    struct idcomp *d = idcomp_load (data, size, A, IDCOMP_STRICT);
    free (data);
    for (int i = 0; d && i < N; i++) {
        int64_t id = -1;
        snprintf (name, sizeof (name), "%08x-8888-4888-b088-888888888888", i * 7919U % N * 0x10001U);
        good &= idcomp_recompress_text (d, name, &id) == 0 && id == i * 2;
    }
    ok (good && d && idcomp_equal (c, d, IDCOMP_WITHOUT_LOCAL), "%d sessions are stored, loaded and found", N);
    idcomp_destroy (c);
    idcomp_destroy (d);
}

/* --- IDCOMP_ORIGINAL accepts what the original accepts --- */

static void check_lenient (void)
{
    struct form f = example (true);
    struct idcomp *c;

    f.cell[21] = htole64 (num (5));
    ok (load (&f, f.n, NULL, IDCOMP_ORIGINAL, &c) == 0 && idcomp_stats (c).local_runs == 3,
        "original mode: adjacent runs of a form are merged");
    idcomp_destroy (c);

    f = example (false);
    f.cell[1] = htole64 (num (7));
    ok (result (&f, NEW, IDCOMP_ORIGINAL) == 0, "original mode: a flag of 7 means that a form has no local state");

    f = example (false);
    f.cell[11] = htole64 (num (0));
    ok (result (&f, NEW, IDCOMP_STRICT) == IDCOMP_ECORRUPT_VALUE,
        "a form without local state that has a session without clusters is refused");
    ok (result (&f, NEW, IDCOMP_ORIGINAL) == 0,
        "original mode: a form without local state may have a session without clusters");

    f = example (true);
    f.cell[17] = htole64 (num (3));
    ok (load (&f, f.n, NULL, IDCOMP_ORIGINAL, &c) == 0 && saves_as (c, &f, IDCOMP_WITH_LOCAL),
        "original mode: a form may have fewer ids made than finalized");
    idcomp_destroy (c);

    f = example (true);
    f.cell[10] = htole64 (num (5));
    ok (load (&f, f.n, NULL, IDCOMP_ORIGINAL, &c) == 0 && saves_as (c, &f, IDCOMP_WITH_LOCAL),
        "original mode: clusters before the last one of a session may have a reserve");
    idcomp_destroy (c);

    f = example (false);
    f.cell[8] = htole64 (num (-1));
    ok (load (&f, f.n, NEW, IDCOMP_ORIGINAL, &c) == 0 && idcomp_stats (c).finalized == 8,
        "original mode: session -1 in a cluster means the new session");
    idcomp_destroy (c);

    f = (struct form){ .n = 0 };
    NUMBERS (&f, 2, 0, NAN, -3);
    ok (result (&f, NEW, IDCOMP_ORIGINAL) == 0, "original mode: NaN and negative counts in a form mean 0");
    f = example (false);
    f.cell[3] = htole64 (num (2.5));
    ok (result (&f, NEW, IDCOMP_ORIGINAL) == 0, "original mode: a count of two and a half in a form means three");
    ok (result (&f, NEW, IDCOMP_STRICT) == IDCOMP_ECORRUPT_VALUE,
        "strict mode: a count with a fraction in a form is refused");
}

static int fault_of (const char *text)
{
    char data[16];
    size_t pos = 99;

    return idcomp_base64_parse (text, strlen (text), data, sizeof (data), &pos) < 0 ? (int)pos : -1;
}

static void check_base64 (void)
{
    char data[3], text[IDCOMP_BASE64_TEXT_SIZE (sizeof (data))];

    ok (idcomp_base64_format ("foo", 3, text, IDCOMP_BASE64_TEXT_SIZE (3)) == 4 && strcmp (text, "Zm9v") == 0
            && idcomp_base64_parse (text, 4, data, sizeof (data), NULL) == 3 && memcmp (data, "foo", 3) == 0,
        "a form is written as base64 text and read again");
    ok (idcomp_base64_parse ("Zm9", 3, data, sizeof (data), NULL) < 0 && errno == IDCOMP_ECORRUPT_BASE64,
        "a form whose text is not base64 is refused");
    ok (fault_of ("Zm9") == 3 && fault_of ("Zm9vZ") == 5 && fault_of ("Zm9vZ!9v") == 5 && fault_of ("Zm9v=m9v") == 4
            && fault_of ("Zm=v") == 2 && fault_of ("Zm9=Zm9v") == 3 && fault_of ("Zm9v!m9v") == 4,
        "the position of an error in the text of a form is reported");
    ok (idcomp_base64_format ("foo", 3, text, 4) < 0 && errno == ENOSPC,
        "writing the text of a form needs space for the NUL");
    ok (idcomp_base64_parse (text, 4, data, 2, NULL) < 0 && errno == ENOSPC,
        "reading the text of a form needs space for all bytes");
}

int main (void)
{
    check_round_trip ();
    check_cuts ();
    check_values ();
    check_rules ();
    check_bounds ();
    check_sessions ();
    check_many ();
    check_lenient ();
    check_base64 ();
    return done_testing ();
}
