/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* replica.c - one session's view of a document whose ranges an orderer puts in order
 *
 * 'pending' is the range that was announced and has not been seen in the order. Only settle () drops it, when the
 * compressor expects the generation counts after it. So a response to the announcement has no effect, whether it is
 * lost or arrives before the range.
 *
 * A range requests twice as many reserved ids as it has itself, but at least the default. So a session that makes many
 * ids gets few large clusters instead of many small ones, and most of its ids are final immediately.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "compressor.h"
#include "replica.h"

#define WHY_SIZE 200

struct replica {
    struct idcomp *ids;
    int64_t seq;
    int64_t newest;              /* the highest number of a range that is known to exist */
    struct idcomp_range pending; /* if its has_ids is set: announced, and not seen in the order yet */
    bool under_way;
    char why[WHY_SIZE]; /* why the replica is broken; "": it is not broken */
};

void replica_destroy (struct replica *r)
{
    if (!r)
        return;
    int saved = errno;
    idcomp_range_fini (&r->pending);
    idcomp_destroy (r->ids);
    free (r);
    errno = saved;
}

struct replica *replica_create (const char *session, const void *form, size_t size, int64_t seq)
{
    struct replica *r = calloc (1, sizeof (*r));

    if (!r)
        return NULL;
    if (!(r->ids = idcomp_load (form, size, session, IDCOMP_STRICT))) {
        replica_destroy (r);
        return NULL;
    }
    r->seq = seq;
    r->newest = seq;
    return r;
}

struct idcomp *replica_ids (const struct replica *r)
{
    return r->ids;
}

int64_t replica_seq (const struct replica *r)
{
    return r->seq;
}

void replica_digest (const struct replica *r, char text[REPLICA_DIGEST_TEXT])
{
    snprintf (text, REPLICA_DIGEST_TEXT, REPLICA_DIGEST, compressor_digest (r->ids));
}

/* --- broken --- */

void replica_break (struct replica *r, const char *why)
{
    if (!*r->why)
        snprintf (r->why, sizeof (r->why), "%s", why);
}

const char *replica_broken (const struct replica *r)
{
    return *r->why ? r->why : NULL;
}

/* Break the replica, because range or stored form number 'seq' contradicts it; errno is the reason. */
static int fail_broken (struct replica *r, const char *what, int64_t seq)
{
    char why[WHY_SIZE];

    snprintf (why, sizeof (why), "%s %lld is refused: %s", what, (long long)seq,
              errno == ESTALE ? "it contradicts ids that are already final" : idcomp_strerror (errno));
    replica_break (r, why);
    return errset (EPIPE);
}

/* --- ranges received --- */

/* Note that ranges up to 'seq' are finalized. If the announced range is among them, drop it. */
static void settle (struct replica *r, int64_t seq)
{
    assert (seq > r->seq);
    r->seq = seq;
    replica_heard (r, seq);
    if (r->pending.has_ids && idcomp_expected (r->ids, r->pending.session) >= r->pending.first + r->pending.count) {
        idcomp_range_fini (&r->pending);
        r->under_way = false;
    }
}

int replica_apply (struct replica *r, int64_t seq, const struct idcomp_range *range)
{
    if (replica_broken (r))
        return errset (EPIPE);
    if (seq <= r->seq)
        return 0;
    replica_heard (r, seq);
    if (seq > r->seq + 1)
        return errset (EAGAIN);
    if (idcomp_finalize (r->ids, range) < 0)
        return errno == ENOMEM ? -1 : fail_broken (r, "range", seq);
    settle (r, seq);
    return 0;
}

void replica_heard (struct replica *r, int64_t newest)
{
    if (newest > r->newest)
        r->newest = newest;
}

bool replica_missing (const struct replica *r)
{
    return r->newest > r->seq && !replica_broken (r);
}

int replica_load (struct replica *r, const void *form, size_t size, int64_t seq)
{
    if (replica_broken (r))
        return errset (EPIPE);
    if (seq <= r->seq)
        return 0;
    struct idcomp *ids = compressor_rebase (r->ids, form, size);
    if (!ids)
        return errno == ENOMEM ? -1 : fail_broken (r, "stored form", seq);
    idcomp_destroy (r->ids);
    r->ids = ids;
    settle (r, seq);
    return 0;
}

/* --- announcements --- */

/* Take the ids that were made since the last range. Returns false if there are no such ids or no memory. */
static bool take (struct replica *r)
{
    struct idcomp_stats stats = idcomp_stats (r->ids);
    int64_t spare = 2 * (stats.generated - stats.next_range_first + 1);

    if (spare < IDCOMP_CLUSTER_SIZE_DEFAULT)
        spare = IDCOMP_CLUSTER_SIZE_DEFAULT;
    if (spare > IDCOMP_CLUSTER_SIZE_MAX)
        spare = IDCOMP_CLUSTER_SIZE_MAX;
    idcomp_set_cluster_size (r->ids, spare);
    return idcomp_take (r->ids, &r->pending) == 0 && r->pending.has_ids;
}

const struct idcomp_range *replica_announce (struct replica *r)
{
    if (r->under_way || replica_broken (r) || (!r->pending.has_ids && !take (r)))
        return NULL;
    r->under_way = true;
    return &r->pending;
}

void replica_announce_again (struct replica *r)
{
    r->under_way = false;
}

bool replica_settled (const struct replica *r)
{
    struct idcomp_stats stats = idcomp_stats (r->ids);

    return stats.finalized == stats.generated;
}
