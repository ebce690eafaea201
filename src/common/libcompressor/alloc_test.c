/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* alloc_test.c - the 1st, 2nd, 3rd ... allocation of each call fails, until the call succeeds
 *
 * A call that fails must return ENOMEM and change nothing, so that the same call can succeed later. The test compares
 * the stored forms before and after.
 */

#include <errno.h>
#include <string.h>
#include <idtree/idcomp.h>

#include "test/tap.h"
#include "test/failing_alloc.h"

#define A "88888888-8888-4888-b088-888888888888"
#define G "0f0f0f0f-0f0f-4f0f-8f0f-0f0f0f0f0f0f"
#define SESSIONS 12
#define ROUNDS 30

/* The state of a compressor; the caller frees it. */
struct state {
    void *data;
    long size;
};

static struct state state_of (const struct idcomp *c)
{
    struct state s = { .size = idcomp_save_size (c, IDCOMP_WITH_LOCAL) };

    s.data = malloc (s.size);
    if (idcomp_save (c, IDCOMP_WITH_LOCAL, s.data, s.size) != s.size)
        bail_out ("the state cannot be saved");
    return s;
}

static bool unchanged (const struct idcomp *c, const struct state *before)
{
    struct state now = state_of (c);
    bool same = now.size == before->size && memcmp (now.data, before->data, now.size) == 0;

    free (now.data);
    return same;
}

/* A call on a compressor; 'n' is the number of the round. Returns 0, or -1 with errno. */
typedef int (*call_f) (struct idcomp *c, int n);

static int call_generate (struct idcomp *c, int n)
{
    struct idcomp_run runs[2];

    /* in most cases one eager and one local id */
    return idcomp_generate_runs (c, 2, runs) > 0 ? 0 : -1;
}

static int call_finalize (struct idcomp *c, int n)
{
    struct idcomp_range r = { .has_ids = true, .count = 3, .cluster_size = 1 };

    snprintf (r.session, sizeof (r.session), "%08x-8888-4888-b188-888888888888", n * 5 % SESSIONS);
    r.first = idcomp_expected (c, r.session);
    return idcomp_finalize (c, &r);
}

/* Take new ids with one of the two functions, and finalize them. */
static int call_take (struct idcomp *c, int n)
{
    struct idcomp_range r = { .nruns = 0 };
    int rc = n % 2 ? idcomp_take (c, &r) : idcomp_take_unfinalized (c, &r);

    if (rc < 0)
        return rc;
    int saved = countdown;
    countdown = -1;
    if (idcomp_finalize (c, &r) < 0)
        bail_out ("a range that was taken cannot be finalized");
    countdown = saved;
    idcomp_range_fini (&r);
    return 0;
}

/* Each ghost session runs twice. */
static int call_ghost (struct idcomp *c, int n)
{
    char name[IDCOMP_UUID_TEXT_MAX];
    int64_t id;

    snprintf (name, sizeof (name), "%08x-8888-4888-a288-888888888888", n / 2);
    if (idcomp_ghost_begin (c, name) < 0)
        return -1;
    int rc = idcomp_generate (c, &id);
    idcomp_ghost_end (c);
    return rc;
}

/* Store the compressor and load it again. */
static int call_reload (struct idcomp *c, int n)
{
    unsigned char data[16384];
    ssize_t size = idcomp_save (c, IDCOMP_WITH_LOCAL, data, sizeof (data));
    struct idcomp *d = size < 0 ? NULL : idcomp_load (data, size, NULL, IDCOMP_STRICT);

    if (!d)
        return -1;
    idcomp_destroy (d);
    return 0;
}

static int call_create (struct idcomp *c, int n)
{
    struct idcomp *d = idcomp_create (G, IDCOMP_STRICT);

    idcomp_destroy (d);
    return d ? 0 : -1;
}

/* With IDCOMP_ORIGINAL a session keeps the text that names it. */
static int call_create_original (struct idcomp *c, int n)
{
    struct idcomp *d = idcomp_create ("88888888-8888-4888-B088-888888888888", IDCOMP_ORIGINAL);

    idcomp_destroy (d);
    return d ? 0 : -1;
}

static int call_decode (struct idcomp *c, int n)
{
    static const char text[] = "{\"sessionId\":\"" A
                               "\",\"ids\":{\"firstGenCount\":1,\"count\":9,\"requestedClusterSize\":1,"
                               "\"localIdRanges\":[[1,1],[3,1],[5,1],[7,1],[9,1]]}}";
    struct idcomp_range r;

    if (idcomp_range_parse (text, strlen (text), &r, NULL) < 0)
        return -1;
    idcomp_range_fini (&r);
    return 0;
}

static const struct {
    const char *name;
    call_f call;
} calls[] = {
    { "generate", call_generate },
    { "finalize", call_finalize },
    { "take", call_take },
    { "ghost", call_ghost },
    { "save and load", call_reload },
    { "create", call_create },
    { "create (original)", call_create_original },
    { "decode", call_decode },
};

/* Repeat the call, with one more allocation allowed each time, until it succeeds. */
static bool survives (struct idcomp *c, call_f call, int n)
{
    struct state before = state_of (c);
    bool good = true;
    bool done = false;

    for (int allowed = 0; !done && good; allowed++) {
        countdown = allowed;
        done = call (c, n) == 0;
        int error = errno;
        countdown = -1;
        good = done || (error == ENOMEM && unchanged (c, &before));
    }
    free (before.data);
    return good;
}

int main (void)
{
    size_t ncalls = sizeof (calls) / sizeof (calls[0]);
    bool good[sizeof (calls) / sizeof (calls[0])];
    int failed[sizeof (calls) / sizeof (calls[0])] = { 0 };
    struct idcomp *c = idcomp_create (A, IDCOMP_STRICT);

    memset (good, true, sizeof (good));
    idcomp_set_cluster_size (c, 1);
    for (int n = 0; n < ROUNDS; n++) {
        for (size_t i = 0; i < ncalls; i++) {
            failures = 0;
            good[i] &= survives (c, calls[i].call, n);
            failed[i] += failures;
        }
    }
    for (size_t i = 0; i < ncalls; i++)
        ok (good[i], "%s: a failure of any of %d allocations changes nothing", calls[i].name, failed[i]);
    ok (failed[0] > 1 && failed[1] > SESSIONS && failed[2] > 1,
        "each of the tested calls has at least one allocation that failed");
    idcomp_destroy (c);
    return done_testing ();
}
