/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* compressor_test.c - what IDCOMP_STRICT refuses; collisions, limits, events, threads */

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <idtree/idcomp.h>

#include "test/tap.h"

#define A "88888888-8888-4888-b088-888888888888"
#define A_PLUS_5 "88888888-8888-4888-b088-88888888888d"
#define A_PLUS_6 "88888888-8888-4888-b088-88888888888e"
#define B "88888888-8888-4888-b188-888888888888"
#define G "0f0f0f0f-0f0f-4f0f-8f0f-0f0f0f0f0f0f"
#define MAX "ffffffff-ffff-4fff-bfff-ffffffffffff"

/* errno of a call that must fail, 0 if it does not */
#define ERR(call) (errno = 0, (call) < 0 ? errno : 0)

static struct idcomp *create (const char *session, int64_t size)
{
    struct idcomp *c = idcomp_create (session, IDCOMP_STRICT);

    if (!c || idcomp_set_cluster_size (c, size) < 0)
        bail_out ("a compressor cannot be made");
    return c;
}

static struct idcomp_range range_of (const char *session, int64_t first, int64_t count, int64_t size)
{
    struct idcomp_range r = { .has_ids = true, .first = first, .count = count, .cluster_size = size };

    snprintf (r.session, sizeof (r.session), "%s", session);
    return r;
}

/* Finalize a range of another session.  Returns 0 or errno. */
static int arrive (struct idcomp *c, const char *session, int64_t first, int64_t count, int64_t size)
{
    struct idcomp_range r = range_of (session, first, count, size);

    return ERR (idcomp_finalize (c, &r));
}

/* Make ids and finalize them in the same compressor. Returns the last one. */
static int64_t make (struct idcomp *c, int n)
{
    struct idcomp_range r;
    int64_t id = 0;

    while (n-- > 0)
        idcomp_generate (c, &id);
    if (idcomp_take (c, &r) < 0 || idcomp_finalize (c, &r) < 0)
        bail_out ("the compressor's own ids cannot be finalized");
    idcomp_range_fini (&r);
    return id;
}

/* --- refused calls --- */

static void check_first_range_out_of_order (void)
{
    struct idcomp *c = create (A, 5);
    int64_t id;

    ok (arrive (c, B, 2, 1, 5) == IDCOMP_ERANGE_ORDER, "the first range of a session must begin at 1");
    ok (idcomp_stats (c).sessions == 1, "a session whose first range was refused is not registered");
    ok (ERR (idcomp_to_session (c, -1, B, &id)) == IDCOMP_EUNKNOWN_SESSION,
        "a session whose first range was refused is unknown as an origin");
    ok (idcomp_expected (c, B) == 1 && arrive (c, B, 1, 1, 5) == 0,
        "a session whose first range was refused can begin with 1 later");
    idcomp_destroy (c);
}

static void check_not_generated (void)
{
    struct idcomp *c = create (A, 5);
    int64_t id;

    ok (arrive (c, A, 1, 1, 5) == IDCOMP_ERANGE_NOT_GENERATED,
        "a range of ids that the local session has not made is refused");
    ok (idcomp_stats (c).clusters == 0, "a range of ids that were not made changes nothing");
    idcomp_generate (c, &id);
    ok (arrive (c, A, 1, 2, 5) == IDCOMP_ERANGE_NOT_GENERATED,
        "a range with one id more than the local session has made is refused");
    ok (arrive (c, A, 1, 1, 5) == 0, "a range of exactly the ids that the local session has made is accepted");
    idcomp_destroy (c);
}

static void check_session_names (void)
{
    struct idcomp *c = create ("88888888-8888-4888-B088-88888888ABCD", 5);
    int64_t id = 0;

    ok (strcmp (idcomp_session (c), "88888888-8888-4888-b088-88888888abcd") == 0,
        "a session's name is converted to lower case");
    idcomp_generate (c, &id);
    ok (arrive (c, "88888888-8888-4888-b088-88888888ABCD", 1, 1, 5) == 0,
        "a range may name its session in any letter case");
    ok (idcomp_to_session (c, -1, "88888888-8888-4888-b088-88888888ABcd", &id) == 0 && id == -1,
        "an origin may name its session in any letter case");
    ok (arrive (c, "8888888888884888b088888888888888", 1, 1, 5) == IDCOMP_EBAD_UUID,
        "a session's name without hyphens is refused in a range");
    ok (arrive (c, "", 1, 1, 5) == IDCOMP_EBAD_UUID, "an empty session name is refused in a range");
    ok (ERR (idcomp_to_session (c, -1, "nobody", &id)) == IDCOMP_EUNKNOWN_SESSION,
        "an origin that is not a UUID is an unknown session");
    ok (ERR (idcomp_recompress_text (c, "8888888888884888b08888888888abcd", &id)) == IDCOMP_EBAD_UUID,
        "a UUID without hyphens cannot be recompressed");
    ok (ERR (idcomp_recompress_text (c, "88888888-8888-1888-b088-88888888abcd", &id)) == IDCOMP_EBAD_UUID,
        "the text of a UUID of version 1 has no id");
    struct idcomp_uuid v1 = { { 0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x18, 0x88, 0xb0, 0x88, 0x88, 0x88, 0x88, 0x88,
                                0xab, 0xcd } };
    ok (ERR (idcomp_recompress (c, &v1, &id)) == IDCOMP_EBAD_UUID, "the bytes of a UUID of version 1 have no id");
    idcomp_destroy (c);
}

/* 2^122 - 2^53 is the first number that is refused. */
static void check_largest_session (void)
{
    struct idcomp *c = idcomp_create (MAX, IDCOMP_STRICT);

    ok (!c && errno == IDCOMP_EBAD_UUID, "the largest UUID cannot be the name of a session");
    c = idcomp_create ("ffffffff-ffff-4fff-bfe0-000000000000", IDCOMP_STRICT);
    ok (!c && errno == IDCOMP_EBAD_UUID, "the UUID number 2^122 - 2^53 cannot be the name of a session");
    c = idcomp_create ("ffffffff-ffff-4fff-bfdf-ffffffffffff", IDCOMP_STRICT);
    ok (c != NULL, "the UUID number 2^122 - 2^53 - 1 can be the name of a session");
    idcomp_destroy (c);
}

static void check_cluster_size (void)
{
    struct idcomp *c = create (A, 5);

    ok (ERR (idcomp_set_cluster_size (c, 0)) == IDCOMP_ECLUSTER_SIZE_LOW, "a cluster size of 0 is refused");
    ok (ERR (idcomp_set_cluster_size (c, IDCOMP_CLUSTER_SIZE_MAX + 1)) == IDCOMP_ECLUSTER_SIZE_HIGH,
        "a cluster size above the maximum is refused");
    ok (idcomp_set_cluster_size (c, IDCOMP_CLUSTER_SIZE_MAX) == 0, "the maximum cluster size is accepted");
    ok (arrive (c, B, 1, 1, 0) == IDCOMP_ECLUSTER_SIZE_LOW, "a range with a cluster size of 0 is refused");
    ok (arrive (c, B, 1, 1, IDCOMP_CLUSTER_SIZE_MAX + 1) == IDCOMP_ECLUSTER_SIZE_HIGH,
        "a range with a cluster size above the maximum is refused");
    ok (arrive (c, B, 1, 0, 1) == IDCOMP_ERANGE_COUNT && arrive (c, B, 1, -1, 1) == IDCOMP_ERANGE_COUNT,
        "a range without ids is refused");
    idcomp_destroy (c);
}

static void check_ghosts (void)
{
    struct idcomp *c = create (A, 5);
    int64_t id = 0;

    ok (ERR (idcomp_ghost_begin (c, A)) == IDCOMP_EGHOST_KNOWN, "the local session cannot be a ghost session");
    arrive (c, B, 1, 1, 5);
    ok (ERR (idcomp_ghost_begin (c, B)) == IDCOMP_EGHOST_KNOWN, "a session with a cluster cannot be a ghost session");
    ok (!idcomp_stats (c).ghost, "after a refused ghost session no ghost session is active");
    ok (ERR (idcomp_ghost_begin (c, "ghost")) == IDCOMP_EBAD_UUID, "the name of a ghost session must be a UUID");
    for (int run = 0; run < 2; run++) {
        ok (idcomp_ghost_begin (c, G) == 0 && idcomp_generate (c, &id) == 0 && id == 6 + run,
            "a ghost session makes a final id, run %d", run);
        idcomp_ghost_end (c);
    }
    idcomp_ghost_end (c);
    ok (idcomp_stats (c).generated == 0, "ids of a ghost session do not count as ids of the local session");
    idcomp_destroy (c);
}

/* The original accepts the local session as a ghost session, and then makes the same ids again. */
static void check_own_ghost (void)
{
    struct idcomp *c = idcomp_create (A, IDCOMP_ORIGINAL);
    struct idcomp_run ghost[2];
    struct idcomp_run own[2];

    ok (idcomp_ghost_begin (c, A) == 0 && idcomp_generate_runs (c, 2, ghost) == 1,
        "original mode: the local session can be a ghost session");
    idcomp_ghost_end (c);
    ok (idcomp_generate_runs (c, 3, own) == 2 && own[0].first == ghost[0].first && own[0].count == 2
            && own[1].first == -3,
        "original mode: ids that the local session made as a ghost session are made again");
    idcomp_destroy (c);
}

/* --- collisions --- */

static void check_broken (struct idcomp *c, const char *how)
{
    struct idcomp_range r;
    struct idcomp_uuid uuid;
    struct idcomp_run runs[2];
    unsigned char buf[4096] = { 0 };
    int64_t id = 0;
    struct idcomp_uuid some = idcomp_uuid_random (buf);

    ok (ERR (idcomp_generate (c, &id)) == IDCOMP_EBROKEN && ERR (idcomp_generate_runs (c, 1, runs)) == IDCOMP_EBROKEN
            && ERR (idcomp_generate_unique (c, &id, &uuid)) == IDCOMP_EBROKEN,
        "%s: a broken compressor makes no ids", how);
    ok (ERR (idcomp_take (c, &r)) == IDCOMP_EBROKEN && ERR (idcomp_take_unfinalized (c, &r)) == IDCOMP_EBROKEN
            && ERR (idcomp_reset_ranges (c)) == IDCOMP_EBROKEN && arrive (c, G, 1, 1, 1) == IDCOMP_EBROKEN
            && ERR (idcomp_ghost_begin (c, G)) == IDCOMP_EBROKEN,
        "%s: a broken compressor takes and finalizes no ranges", how);
    ok (ERR (idcomp_to_op (c, 0, &id)) == IDCOMP_EBROKEN && ERR (idcomp_to_session (c, 0, NULL, &id)) == IDCOMP_EBROKEN
            && ERR (idcomp_decompress (c, 0, &uuid)) == IDCOMP_EBROKEN
            && ERR (idcomp_recompress (c, &some, &id)) == IDCOMP_EBROKEN
            && ERR (idcomp_recompress_text (c, A, &id)) == IDCOMP_EBROKEN,
        "%s: a broken compressor converts no ids", how);
    ok (ERR (idcomp_save (c, IDCOMP_WITH_LOCAL, buf, sizeof (buf))) == IDCOMP_EBROKEN && idcomp_stats (c).broken,
        "%s: a broken compressor cannot be stored", how);
    idcomp_destroy (c);
}

static void check_collisions (void)
{
    struct idcomp *c = create (B, 5);

    arrive (c, A, 1, 1, 5); /* A ... A+5 */
    ok (arrive (c, A_PLUS_6, 1, 1, 5) == 0,
        "a session whose UUIDs begin after the last cluster of another session is accepted");
    ok (arrive (c, A_PLUS_5, 1, 1, 5) == IDCOMP_ECOLLISION,
        "a session whose UUIDs begin inside a cluster of another session collides");
    ok (idcomp_stats (c).clusters == 2 && idcomp_stats (c).sessions == 3, "a cluster that collides is not added");
    check_broken (c, "new cluster");

    c = create (B, 5);
    arrive (c, A_PLUS_6, 1, 1, 1);
    arrive (c, A, 1, 1, 4);
    ok (arrive (c, A, 2, 5, 1) == IDCOMP_ECOLLISION,
        "a cluster that would grow into the UUIDs of another session collides");
    ok (idcomp_stats (c).allocated_finals == 7, "a cluster that collides does not grow");
    check_broken (c, "expansion");

    int64_t id;
    c = create (B, 5);
    arrive (c, A, 1, 1, 5);
    ok (idcomp_ghost_begin (c, A_PLUS_5) == 0 && ERR (idcomp_generate (c, &id)) == IDCOMP_ECOLLISION,
        "a ghost session whose UUIDs are inside a cluster of another session collides");
    idcomp_ghost_end (c);
    check_broken (c, "ghost");
}

static void check_orderer (void)
{
    struct idcomp *c = idcomp_create (B, IDCOMP_ORDERER);

    arrive (c, A, 1, 1, 5);
    ok (arrive (c, A_PLUS_5, 1, 1, 5) == IDCOMP_ECOLLISION && arrive (c, A_PLUS_6, 1, 1, 5) == 0,
        "an orderer refuses a range that collides, and accepts further ranges");
    ok (idcomp_stats (c).clusters == 2 && idcomp_expected (c, A_PLUS_5) == 1,
        "a range that an orderer refused has no effect");
    idcomp_destroy (c);
}

/* --- limits --- */

#define LIMIT (IDCOMP_ID_MAX + 1)

static void check_limits (void)
{
    struct idcomp *c = create (A, 5);
    struct idcomp_run runs[2];
    int64_t id;

    ok (arrive (c, B, 1, INT64_MAX, 1) == IDCOMP_ELIMIT, "a range of 2^63 - 1 ids is refused");
    ok (arrive (c, B, 1, LIMIT, 1) == IDCOMP_ELIMIT, "a range that would exceed 2^53 final ids is refused");
    ok (arrive (c, B, 1, LIMIT - 5, 6) == IDCOMP_ELIMIT, "reserved ids count towards the limit of 2^53 final ids");
    ok (arrive (c, B, 1, LIMIT - 6, 5) == 0, "a range may use all final ids up to the limit except one");
    ok (arrive (c, B, LIMIT - 5, 5, 5) == 0, "a range may use the reserved ids below the limit");
    ok (arrive (c, B, LIMIT, 1, 1) == IDCOMP_ELIMIT, "at the limit of final ids no further id can be reserved");
    ok (arrive (c, G, 1, 1, 1) == IDCOMP_ELIMIT, "at the limit of final ids another session cannot reserve an id");
    ok (idcomp_ghost_begin (c, G) == 0 && ERR (idcomp_generate_runs (c, 2, runs)) == IDCOMP_ELIMIT,
        "a ghost session has the same limit of final ids");
    ok (idcomp_generate (c, &id) == 0 && id == IDCOMP_ID_MAX, "the largest final id, 2^53 - 1, can be made");
    ok (ERR (idcomp_generate (c, &id)) == IDCOMP_ELIMIT, "after the largest final id no id can be made");
    idcomp_ghost_end (c);
    idcomp_destroy (c);

    c = create (A, 5);
    ok (ERR (idcomp_generate_runs (c, 0, runs)) == EINVAL, "a request for 0 ids fails with EINVAL");
    ok (ERR (idcomp_generate_runs (c, LIMIT, runs)) == IDCOMP_ELIMIT, "a session cannot make more than 2^53 - 1 ids");
    ok (idcomp_generate_runs (c, LIMIT - 1, runs) == 1 && runs[0].first == -1 && runs[0].count == LIMIT - 1,
        "a session can make 2^53 - 1 ids");
    ok (ERR (idcomp_generate (c, &id)) == IDCOMP_ELIMIT, "after 2^53 - 1 ids a session can make no further id");
    idcomp_destroy (c);
}

/* A UUID far above a session is not one of its ids, even if the distance modulo 2^64 is small. */
static void check_far_uuid (void)
{
    struct idcomp *c = create ("00000000-0000-4000-8000-000000000000", 5);
    int64_t id;

    make (c, 3);
    ok (idcomp_recompress_text (c, "00000000-0000-4000-8000-000000000001", &id) == 0 && id == -2,
        "a UUID of the session has an id");
    ok (ERR (idcomp_recompress_text (c, "00000000-0000-4004-8000-000000000001", &id)) == IDCOMP_ENOT_COMPRESSED,
        "a UUID that is larger by 2^64 than one of the session has no id");
    ok (ERR (idcomp_recompress_text (c, MAX, &id)) == IDCOMP_ENOT_COMPRESSED, "the largest UUID has no id");
    idcomp_destroy (c);
}

/* --- making ids, events --- */

static void check_runs (void)
{
    struct idcomp *c = create (A, 3);
    struct idcomp_run runs[2];

    make (c, 2); /* 0 ... 4 are reserved, 0 and 1 used */
    ok (idcomp_generate_runs (c, 5, runs) == 2 && runs[0].first == 2 && runs[0].count == 3 && runs[1].first == -6
            && runs[1].count == 2,
        "if more ids are made at a time than are reserved, the first are eager and the others local");
    struct idcomp_stats s = idcomp_stats (c);
    ok (s.generated == 7 && s.finalized == 2 && s.eager == 3 && s.local == 2 && s.next_range_first == 3
            && s.local_runs == 2,
        "the statistics count eager and local ids");
    idcomp_destroy (c);
}

static void note_event (const struct idcomp_event *event, void *arg)
{
    struct idcomp_event *log = arg;

    while (log->session)
        log++;
    *log = *event;
}

static void check_events (void)
{
    struct idcomp_event log[8] = { { 0 } };
    struct idcomp *c = create (A, 3);

    idcomp_set_event_cb (c, note_event, log);
    make (c, 2);
    make (c, 4);
    ok (log[0].type == IDCOMP_FIRST_CLUSTER && log[1].type == IDCOMP_STATUS && log[1].local == 2 && log[1].eager == 0,
        "the first range reports a cluster and its ids");
    ok (log[2].type == IDCOMP_CLUSTER_EXPANSION && log[2].previous_capacity == 5 && log[2].new_capacity == 9
            && log[2].overflow == 1,
        "the next range of a session reports that its cluster has grown");
    ok (log[3].type == IDCOMP_STATUS && log[3].eager == 3 && log[3].local == 1,
        "the event of a grown cluster has only the ids of the last range");
    ok (!log[4].session && strcmp (log[3].session, A) == 0, "no other event is reported when a cluster grows");
    arrive (c, B, 1, 1, 1);
    ok (!log[4].session, "ranges of other sessions report no event");
    idcomp_set_event_cb (c, NULL, NULL);
    make (c, 1);
    ok (!log[4].session, "without a callback no event is reported");
    idcomp_destroy (c);
}

static void check_equal (void)
{
    struct idcomp *a = create (A, 3);
    struct idcomp *b = create (A, 3);
    int64_t id;

    ok (idcomp_equal (a, b, IDCOMP_WITH_LOCAL), "two new compressors with the same session are equal");
    make (a, 4);
    make (b, 4);
    ok (idcomp_equal (a, b, IDCOMP_WITH_LOCAL),
        "compressors with the same session are equal after the same operations");
    idcomp_generate (a, &id); /* an eager id leaves no run */
    ok (!idcomp_equal (a, b, IDCOMP_WITH_LOCAL) && idcomp_equal (a, b, IDCOMP_WITHOUT_LOCAL),
        "one more id in one of two equal compressors makes their local states differ");
    arrive (a, B, 1, 1, 1);
    ok (!idcomp_equal (a, b, IDCOMP_WITHOUT_LOCAL) && !idcomp_equal (b, a, IDCOMP_WITHOUT_LOCAL),
        "one more cluster in one of two equal compressors makes them differ");
    idcomp_destroy (a);
    idcomp_destroy (b);
}

/* --- threads --- */

static void *convert_all (void *arg)
{
    const struct idcomp *c = arg;
    bool good = true;

    for (int64_t final = 0; final < 100; final++) {
        struct idcomp_uuid uuid;
        int64_t id = 0;
        int64_t op = 0;
        int64_t same = 0;
        good &= idcomp_to_session (c, final, NULL, &id) == 0 && idcomp_decompress (c, id, &uuid) == 0
                && idcomp_recompress (c, &uuid, &same) == 0 && same == id && idcomp_to_op (c, id, &op) == 0
                && op == final;
        good &= ERR (idcomp_decompress (c, 100000 + final, &uuid)) == IDCOMP_EUNKNOWN_ID;
    }
    return good ? arg : NULL;
}

static void check_threads (void)
{
    struct idcomp *c = create (A, 3);
    pthread_t thread[4];
    bool good = true;

    for (int i = 0; i < 30; i++) {
        make (c, 4);
        arrive (c, B, 1 + i * 4, 4, 2);
    }
    for (int i = 0; i < 4; i++)
        if (pthread_create (&thread[i], NULL, convert_all, c) != 0)
            bail_out ("a thread cannot be made");
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join (thread[i], &result);
        good &= result == c;
    }
    ok (good, "four threads use one compressor at the same time");
    idcomp_destroy (c);
}

/* --- errors --- */

static void check_errors (void)
{
    bool good = true;

    for (int e = IDCOMP_EBASE + 1; e < IDCOMP_EEND; e++)
        good &= idcomp_error_name (e) && *idcomp_strerror (e) && idcomp_errno (e) > 0 && idcomp_errno (e) < 4096;
    ok (good, "each error has a name, a text and a nearest errno value");
    ok (strcmp (idcomp_error_name (IDCOMP_ERANGE_ORDER), "RANGE_ORDER") == 0,
        "an error's name is its symbol without the prefix");
    ok (idcomp_errno (IDCOMP_ELIMIT) == EOVERFLOW && idcomp_errno (IDCOMP_EBROKEN) == ENOTRECOVERABLE,
        "the nearest errno value shows the kind of an error");
    ok (!idcomp_error_name (ENOMEM) && idcomp_errno (ENOMEM) == ENOMEM
            && strcmp (idcomp_strerror (ENOMEM), strerror (ENOMEM)) == 0,
        "errno values of the system are returned unchanged");
    ok (!idcomp_error_name (IDCOMP_EBASE) && !idcomp_error_name (IDCOMP_EEND),
        "the numbers before and after the errors of this library have no name");
    errno = EINTR;
    idcomp_destroy (NULL);
    ok (errno == EINTR, "idcomp_destroy accepts NULL and keeps errno");
}

/* The errno of an attempt to make ids in a child process, in one of three ways. */
static int errno_in_child (struct idcomp *c, int way)
{
    struct idcomp_run runs[2];
    struct idcomp_uuid uuid;
    int64_t id;
    int status;
    pid_t pid = fork ();

    if (pid == 0) {
        int errnum = way == 0   ? ERR (idcomp_generate (c, &id))
                     : way == 1 ? ERR (idcomp_generate_runs (c, 10, runs))
                                : ERR (idcomp_generate_unique (c, &id, &uuid));

        idcomp_destroy (c);
        _exit (errnum);
    }
    return waitpid (pid, &status, 0) == pid && WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

/* Parent and child would continue with the same generation count. */
static void check_fork (void)
{
    struct idcomp *c = create (A, 5);
    int refused = 0;
    int64_t id = 0;

    for (int way = 0; way < 3; way++)
        refused += errno_in_child (c, way) == EPERM;
    ok (refused == 3, "a child process makes no ids, because they would be its parent's ids");
    ok (idcomp_generate (c, &id) == 0 && id == -1, "the parent process can continue");
    idcomp_destroy (c);
}

int main (void)
{
    check_first_range_out_of_order ();
    check_not_generated ();
    check_session_names ();
    check_largest_session ();
    check_cluster_size ();
    check_ghosts ();
    check_own_ghost ();
    check_collisions ();
    check_orderer ();
    check_limits ();
    check_far_uuid ();
    check_runs ();
    check_events ();
    check_equal ();
    check_threads ();
    check_fork ();
    check_errors ();
    return done_testing ();
}
