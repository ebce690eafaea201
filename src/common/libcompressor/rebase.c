/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rebase.c - a session that takes over the final space of a newer stored form
 *
 * Both are stored forms (stored.c tells the cells): sessions and clusters come from the newer one, with the
 * local session moved to the front, and the local state from the older one.  So what is made of them passes
 * all that is asked of a stored form.
 *
 * What is final stays: the clusters of 'mine' must be the first ones of the newer form, of the same sessions
 * and as large, and as many of their ids finalized or more.  Only the last one may have grown.  Eager ids
 * stay, too: they lie in those clusters.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "cells.h"
#include "rebase.h"

struct form {
    const unsigned char *header;
    const unsigned char *sessions;
    const unsigned char *clusters;
    const unsigned char *rest; /* local state */
    size_t nsessions;
    size_t nclusters;
    size_t rest_size;
};

static unsigned char *put_bytes (unsigned char *p, const void *data, size_t size)
{
    memcpy (p, data, size);
    return p + size;
}

/* The number in a cell as an index or count, SIZE_MAX if it is none below 'limit'. */
static size_t get_index (const unsigned char *cell, size_t limit)
{
    double d = get_number (cell);

    if (!(d >= 0 && d < (double)limit) || d != (double)(size_t)d)
        return SIZE_MAX;
    return (size_t)d;
}

/* Find the parts of a form.  Returns 0, or -1 with errno set. */
static int split (struct form *f, const unsigned char *data, size_t size)
{
    size_t cells = size / CELL;

    errno = IDCOMP_ECORRUPT_TRUNCATED;
    if (cells < HEADER_CELLS)
        return -1;
    f->header = data;
    f->nsessions = get_index (data + NSESSIONS * CELL, cells);
    f->nclusters = get_index (data + NCLUSTERS * CELL, cells);
    if (f->nsessions == SIZE_MAX || f->nclusters == SIZE_MAX)
        return -1;
    f->sessions = data + HEADER_CELLS * CELL;
    f->clusters = f->sessions + f->nsessions * SESSION_CELLS * CELL;
    f->rest = f->clusters + f->nclusters * CLUSTER_CELLS * CELL;
    if (HEADER_CELLS + f->nsessions * SESSION_CELLS + f->nclusters * CLUSTER_CELLS > cells)
        return -1;
    f->rest_size = data + size - f->rest;
    return 0;
}

static const unsigned char *session_at (const struct form *f, size_t i)
{
    return f->sessions + i * SESSION_CELLS * CELL;
}

static const unsigned char *cluster_at (const struct form *f, size_t i, enum cluster field)
{
    return f->clusters + (i * CLUSTER_CELLS + field) * CELL;
}

static bool same_session (const unsigned char *a, const unsigned char *b)
{
    return memcmp (a, b, SESSION_CELLS * CELL) == 0;
}

/* Where the local session is in the newer form; its nsessions if it is not. */
static size_t find_session (const struct form *f, const unsigned char *session)
{
    size_t i = 0;

    while (i < f->nsessions && !same_session (session_at (f, i), session))
        i++;
    return i;
}

/* The owner of a cluster; NULL: none. */
static const unsigned char *owner_of (const struct form *f, size_t cluster)
{
    size_t i = get_index (cluster_at (f, cluster, SESSION), f->nsessions);

    return i == SIZE_MAX ? NULL : session_at (f, i);
}

/* True if cluster 'i' of 'mine' may have become that of 'newer'. */
static bool cluster_continues (const struct form *mine, const struct form *newer, size_t i)
{
    const unsigned char *a = owner_of (mine, i), *b = owner_of (newer, i);
    double old = get_number (cluster_at (mine, i, CAPACITY));
    double now = get_number (cluster_at (newer, i, CAPACITY));

    return a && b && same_session (a, b) && (i + 1 == mine->nclusters ? now >= old : now == old)
           && get_number (cluster_at (newer, i, COUNT)) >= get_number (cluster_at (mine, i, COUNT));
}

static bool continues (const struct form *mine, const struct form *newer)
{
    if (newer->nclusters < mine->nclusters)
        return false;
    for (size_t i = 0; i < mine->nclusters; i++)
        if (!cluster_continues (mine, newer, i))
            return false;
    return true;
}

/* Write the clusters of the newer form; its sessions but the local one, which was 'local', have moved. */
static unsigned char *put_clusters (unsigned char *p, const struct form *newer, size_t local)
{
    for (size_t i = 0; i < newer->nclusters; i++) {
        size_t owner = get_index (cluster_at (newer, i, SESSION), newer->nsessions);

        p = put_number (p, owner == local ? 0 : owner < local ? (double)owner + 1 : (double)owner);
        p = put_bytes (p, cluster_at (newer, i, CAPACITY), (CLUSTER_CELLS - 1) * CELL);
    }
    return p;
}

/* Write both as one form; returns its size.  'buf' has room for both. */
static size_t join (unsigned char *buf, const struct form *mine, const struct form *newer)
{
    size_t local = find_session (newer, session_at (mine, 0));
    unsigned char *p = put_bytes (buf, newer->header, CELL);

    p = put_number (p, 1);
    p = put_number (p, (double)(newer->nsessions + (local == newer->nsessions)));
    p = put_number (p, (double)newer->nclusters);
    p = put_bytes (p, session_at (mine, 0), SESSION_CELLS * CELL);
    for (size_t i = 0; i < newer->nsessions; i++)
        if (i != local)
            p = put_bytes (p, session_at (newer, i), SESSION_CELLS * CELL);
    p = put_clusters (p, newer, local);
    p = put_bytes (p, mine->rest, mine->rest_size);
    return p - buf;
}

/* A summary, and nothing but one. */
static int split_summary (struct form *f, const unsigned char *data, size_t size)
{
    if (size % CELL != 0)
        return errset (IDCOMP_ECORRUPT_LENGTH);
    if (split (f, data, size) < 0)
        return -1;
    if (get_number (f->header + LOCAL_STATE * CELL) != 0)
        return errset (IDCOMP_EHAS_LOCAL_STATE);
    if (f->rest_size > 0)
        return errset (IDCOMP_ECORRUPT_TRAILING);
    for (size_t i = 0; i < f->nclusters; i++)
        if (!owner_of (f, i))
            return errset (IDCOMP_ECORRUPT_SESSION_INDEX);
    return 0;
}

struct idcomp *compressor_rebase (const struct idcomp *mine, const void *form, size_t size)
{
    size_t mine_size = idcomp_save_size (mine, IDCOMP_WITH_LOCAL);
    struct idcomp *c = NULL;
    struct form old, newer;

    if (split_summary (&newer, form, size) < 0)
        return NULL;
    unsigned char *buf = malloc (mine_size + mine_size + size);
    if (!buf || idcomp_save (mine, IDCOMP_WITH_LOCAL, buf, mine_size) < 0 || split (&old, buf, mine_size) < 0)
        goto done;
    if (continues (&old, &newer))
        c = idcomp_load (buf + mine_size, join (buf + mine_size, &old, &newer), NULL, IDCOMP_STRICT);
    else
        errno = ESTALE;
done:
    free (buf);
    return c;
}
