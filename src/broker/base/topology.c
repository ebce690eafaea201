/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* topology.c - the parent of each rank: shapes whose trees are computed, a shape read from a file, and functions for
 * all shapes
 *
 * Each rank but 0 is a child of exactly one rank, its parent. The path from each rank to its parent, and so on, ends at
 * rank 0.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/base/topology.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"
#include "libutil/minmax.h"

struct topo_kind {
    const char *name;
    /* Fill all fields except 'size' and 'kind'. 'arg' is the text after the colon of the URI, or NULL. Returns 0, or -1
     * with errno set and 'errp' filled.
     */
    int (*read) (struct topo *t, const char *arg, idt_error_t *errp);
    uint32_t (*parent) (const struct topo *t, uint32_t rank); /* not called for the root */
    uint32_t (*child_count) (const struct topo *t, uint32_t rank);
    uint32_t (*child) (const struct topo *t, uint32_t rank, uint32_t i);
};

static uint32_t log2_floor (uint32_t n)
{
    return 31 - __builtin_clz (n);
}

/* --- kary --------------------------------------------------------------------------------------------- */

static int read_kary (struct topo *t, const char *arg, idt_error_t *errp)
{
    uint64_t k;

    if (!arg || parse_number (arg, 1, TOPO_MAX_FANOUT, &k) < 0)
        return errsetf (errp, EINVAL, "the fanout must be a number from 1 to %d", TOPO_MAX_FANOUT);
    if (k == 1 && t->size - 1 > TOPO_LEVELS)
        return errsetf (errp, EINVAL,
                        "the last of %u brokers is more than %d levels below rank 0: take kary:2, or more than 2",
                        t->size, TOPO_LEVELS);
    t->k = k;
    t->deepest = t->size - 1;
    snprintf (t->name, sizeof (t->name), "kary:%u", t->k);
    return 0;
}

static uint32_t kary_parent (const struct topo *t, uint32_t rank)
{
    return (rank - 1) / t->k;
}

static uint32_t kary_child_count (const struct topo *t, uint32_t rank)
{
    uint64_t first = (uint64_t)rank * t->k + 1;

    return first >= t->size ? 0 : min_u64 (t->size - first, t->k);
}

static uint32_t kary_child (const struct topo *t, uint32_t rank, uint32_t i)
{
    return rank * t->k + 1 + i;
}

/* --- mincrit ------------------------------------------------------------------------------------------ */

/* The smallest number of routers with which no router has more than TOPO_MINCRIT_FANOUT children. Never 1, because a
 * single router would only add a hop.
 */
static uint32_t choose_routers (uint32_t size)
{
    uint32_t others = size - 1, share = TOPO_MINCRIT_FANOUT + 1; /* a router and its children */

    return others <= TOPO_MINCRIT_FANOUT ? 0 : max_u64 (2, (others - 1) / share + 1);
}

static int read_mincrit (struct topo *t, const char *arg, idt_error_t *errp)
{
    uint64_t k = choose_routers (t->size);

    if (arg && parse_number (arg, 0, TOPO_MAX_FANOUT, &k) < 0)
        return errsetf (errp, EINVAL, "the routers must be a number from 0 to %d", TOPO_MAX_FANOUT);
    snprintf (t->name, sizeof (t->name), "mincrit:%u", (unsigned)k);
    t->k = k > 0 ? k : t->size; /* K 0: all other ranks are children of rank 0, and have no children */
    t->deepest = t->size - 1;
    return 0;
}

static uint32_t mincrit_parent (const struct topo *t, uint32_t rank)
{
    return rank <= t->k ? 0 : (rank - 1) % t->k + 1;
}

static uint32_t mincrit_child_count (const struct topo *t, uint32_t rank)
{
    uint32_t last = t->size - 1;

    if (rank == 0)
        return min_u64 (t->k, last);
    return rank <= t->k ? (last - rank) / t->k : 0;
}

static uint32_t mincrit_child (const struct topo *t, uint32_t rank, uint32_t i)
{
    return rank == 0 ? 1 + i : rank + (i + 1) * t->k;
}

/* --- binomial ----------------------------------------------------------------------------------------- */

static int read_binomial (struct topo *t, const char *arg, idt_error_t *errp)
{
    if (arg)
        return errsetf (errp, EINVAL, "nothing may follow 'binomial'");
    snprintf (t->name, sizeof (t->name), "binomial");
    t->deepest = (uint32_t)(1ULL << log2_floor (t->size)) - 1; /* highest rank with only 1 bits */
    return 0;
}

static uint32_t binomial_parent (const struct topo *t, uint32_t rank)
{
    return rank & (rank - 1);
}

/* For each bit below the lowest set bit of the rank, the rank with that bit added is a child, if it is below the size.
 */
static uint32_t binomial_child_count (const struct topo *t, uint32_t rank)
{
    uint32_t below = t->size - 1 - rank, bits = rank > 0 ? __builtin_ctz (rank) : 32;

    return below == 0 ? 0 : min_u64 (bits, log2_floor (below) + 1);
}

static uint32_t binomial_child (const struct topo *t, uint32_t rank, uint32_t i)
{
    return rank + ((uint32_t)1 << i);
}

/* --- custom: the file ------------------------------------------------------------------------------- */

/* Read at most 'size' bytes, the size that the file had first: the file may grow, or may be a device without an end. */
static ssize_t read_bytes (int fd, char *buf, size_t size)
{
    ssize_t n;
    size_t len = 0;

    while (len < size && (n = read (fd, buf + len, size - len)) != 0) {
        if (n < 0 && errno != EINTR)
            return -1;
        len += n > 0 ? n : 0;
    }
    return len;
}

static json_t *parse (int fd, size_t size, idt_error_t *errp)
{
    char *buf = malloc (size + 1);
    json_error_t at;
    json_t *list = NULL;
    ssize_t len;

    if (!buf || (len = read_bytes (fd, buf, size)) < 0)
        errprintf (errp, "%s", strerror (errno));
    else if (!(list = json_loadb (buf, len, 0, &at)))
        errsetf (errp, EINVAL, "is not JSON: line %d, column %d: %s", at.line, at.column, at.text);
    free (buf);
    return list;
}

/* Load the file. The call does not block if 'path' is a pipe. */
static json_t *load (const char *path, idt_error_t *errp)
{
    int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    json_t *list = NULL;
    struct stat st;

    if (fd < 0 || fstat (fd, &st) < 0)
        errprintf (errp, "%s", strerror (errno));
    else if (!S_ISREG (st.st_mode))
        errsetf (errp, EINVAL, "is not a regular file");
    else if (st.st_size > TOPO_CUSTOM_BYTES)
        errsetf (errp, EFBIG, "has %jd bytes, more than %d", (intmax_t)st.st_size, TOPO_CUSTOM_BYTES);
    else
        list = parse (fd, st.st_size, errp);
    if (fd >= 0)
        close (fd);
    return list;
}

/* --- custom: the list ------------------------------------------------------------------------------- */

static int take_parent (struct topo *t, uint32_t rank, const json_t *parent, idt_error_t *errp)
{
    if (rank == 0) {
        t->parents[0] = TOPO_NONE;
        return json_is_null (parent) ? 0 : errsetf (errp, EINVAL, "rank 0 is the root: its parent must be null");
    }
    if (json_is_null (parent))
        return errsetf (errp, EINVAL, "rank %u has no parent: only rank 0 is the root", rank);
    if (!json_is_integer (parent))
        return errsetf (errp, EINVAL, "the parent of rank %u is not a whole number", rank);
    if (json_integer_value (parent) < 0 || json_integer_value (parent) >= t->size)
        return errsetf (errp, EINVAL, "the parent of rank %u is %" JSON_INTEGER_FORMAT ": must be 0 to %u", rank,
                        json_integer_value (parent), t->size - 1);
    t->parents[rank] = (uint32_t)json_integer_value (parent);
    return 0;
}

/* Check the length of the list, before tables of that size are made. */
static int check_count (const struct topo *t, const json_t *list, idt_error_t *errp)
{
    if (!json_is_array (list))
        return errsetf (errp, EINVAL, "is not a JSON list of parents, as in [null, 0, 0, 1]");
    if (json_array_size (list) != t->size)
        return errsetf (errp, EINVAL, "is a list of %zu parents, but there are %u brokers", json_array_size (list),
                        t->size);
    return 0;
}

/* Whether the path from 'rank' over its parents does not end at rank 0. */
static bool is_in_cycle (const struct topo *t, uint32_t rank)
{
    for (uint32_t steps = 0; rank > 0; steps++, rank = t->parents[rank])
        if (steps == t->size)
            return true;
    return false;
}

/* Compute the level of 'rank', and of the ranks on the path up to the first one whose level is known. So each rank is
 * visited at most twice. In 'levels', 0 means rank 0, or not yet known.
 */
static int take_level (struct topo *t, uint32_t *levels, uint32_t rank, idt_error_t *errp)
{
    uint32_t steps = 0, level, up;

    for (up = rank; up > 0 && levels[up] == 0 && steps <= TOPO_LEVELS; up = t->parents[up])
        steps++;
    if ((level = levels[up] + steps) > TOPO_LEVELS) {
        if (is_in_cycle (t, rank))
            return errsetf (errp, EINVAL, "the parents of rank %u form a cycle: they do not lead to rank 0", rank);
        return errsetf (errp, EINVAL, "rank %u is more than %d levels below rank 0", rank, TOPO_LEVELS);
    }
    if (level > levels[t->deepest])
        t->deepest = rank;
    for (up = rank; up > 0 && levels[up] == 0; up = t->parents[up])
        levels[up] = level--;
    return 0;
}

/* The caller has filled 'levels' with 0. */
static int take_list (struct topo *t, const json_t *list, uint32_t *levels, idt_error_t *errp)
{
    for (uint32_t rank = 0; rank < t->size; rank++)
        if (take_parent (t, rank, json_array_get (list, rank), errp) < 0)
            return -1;
    for (uint32_t rank = 1; rank < t->size; rank++)
        if (take_level (t, levels, rank, errp) < 0)
            return -1;
    return 0;
}

/* Fill 'by_parent'. The caller has filled 'next' with 0; it is used for the index of the next child of each parent. */
static void sort_by_parent (struct topo *t, uint32_t *next)
{
    uint32_t sum = 0;

    for (uint32_t rank = 1; rank < t->size; rank++)
        next[t->parents[rank]]++;
    for (uint32_t rank = 0; rank < t->size; rank++) {
        uint32_t count = next[rank];

        next[rank] = sum;
        sum += count;
    }
    for (uint32_t rank = 1; rank < t->size; rank++)
        t->by_parent[next[t->parents[rank]]++] = rank;
}

/* The name contains a hash (FNV-1a) of the whole tree, because hosts may have different files, or the file may have
 * changed since another rank read it.
 */
static void make_name (struct topo *t)
{
    uint64_t hash = 0xcbf29ce484222325;

    for (uint32_t rank = 0; rank < t->size; rank++)
        for (int shift = 0; shift < 32; shift += 8)
            hash = (hash ^ (t->parents[rank] >> shift & 0xff)) * 0x100000001b3;
    snprintf (t->name, sizeof (t->name), "custom:%016" PRIx64, hash);
}

static int make_tables (struct topo *t, const json_t *list, idt_error_t *errp)
{
    uint32_t *scratch = calloc (t->size, sizeof (scratch[0]));
    int rc = -1;

    t->parents = calloc (t->size, sizeof (t->parents[0]));
    t->by_parent = calloc (t->size, sizeof (t->by_parent[0]));
    if (!scratch || !t->parents || !t->by_parent)
        errsetf (errp, ENOMEM, "out of memory");
    else if (take_list (t, list, scratch, errp) == 0) {
        memset (scratch, 0, t->size * sizeof (scratch[0]));
        sort_by_parent (t, scratch);
        make_name (t);
        rc = 0;
    }
    free (scratch);
    return rc;
}

static int read_custom (struct topo *t, const char *path, idt_error_t *errp)
{
    json_t *list;
    int rc;

    if (!path || *path == '\0')
        return errsetf (errp, EINVAL, "a file must follow, as in custom:/etc/idtree/tree.json");
    if (!(list = load (path, errp)))
        return -1;
    rc = check_count (t, list, errp) < 0 ? -1 : make_tables (t, list, errp);
    json_decref (list);
    return rc;
}

/* --- custom: the tree ------------------------------------------------------------------------------- */

static uint32_t custom_parent (const struct topo *t, uint32_t rank)
{
    return t->parents[rank];
}

/* The index in 'by_parent' at which the children of 'rank' begin, or would begin if it had any. */
static uint32_t first_child (const struct topo *t, uint32_t rank)
{
    uint32_t low = 0, high = t->size - 1;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (t->parents[t->by_parent[middle]] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint32_t custom_child_count (const struct topo *t, uint32_t rank)
{
    return first_child (t, rank + 1) - first_child (t, rank);
}

static uint32_t custom_child (const struct topo *t, uint32_t rank, uint32_t i)
{
    return t->by_parent[first_child (t, rank) + i];
}

/* --- all ------------------------------------------------------------------------------------------------ */

static const struct topo_kind kinds[] = {
    { "kary", read_kary, kary_parent, kary_child_count, kary_child },
    { "mincrit", read_mincrit, mincrit_parent, mincrit_child_count, mincrit_child },
    { "binomial", read_binomial, binomial_parent, binomial_child_count, binomial_child },
    { "custom", read_custom, custom_parent, custom_child_count, custom_child },
};

static const struct topo_kind *find_kind (const char *uri)
{
    size_t len = strcspn (uri, ":");

    for (size_t i = 0; i < sizeof (kinds) / sizeof (kinds[0]); i++)
        if (strlen (kinds[i].name) == len && strncmp (uri, kinds[i].name, len) == 0)
            return &kinds[i];
    return NULL;
}

static int read_uri (struct topo *t, const char *uri, idt_error_t *errp)
{
    const char *colon = strchr (uri, ':');
    idt_error_t err = { "unknown: use kary:K (as in kary:32), mincrit, mincrit:K, binomial or custom:FILE" };

    errno = EINVAL;
    /* limits the URI, so that a long path does not cut off the reason */
    if (!(t->kind = find_kind (uri)) || t->kind->read (t, colon ? colon + 1 : NULL, &err) < 0)
        return errprintf (errp, "topology '%.80s': %s", uri, err.text);
    return 0;
}

struct topo *topo_create (const char *uri, uint32_t size, idt_error_t *errp)
{
    struct topo *t = calloc (1, sizeof (*t));

    assert (size > 0);
    if (!t)
        return errsetf_null (errp, ENOMEM, "out of memory");
    t->size = size;
    if (read_uri (t, uri, errp) < 0) {
        topo_destroy (t);
        return NULL;
    }
    return t;
}

void topo_destroy (struct topo *t)
{
    int saved_errno = errno;

    if (t) {
        free (t->parents);
        free (t->by_parent);
    }
    free (t);
    errno = saved_errno;
}

uint32_t topo_parent (const struct topo *t, uint32_t rank)
{
    assert (rank < t->size);
    return rank == 0 ? TOPO_NONE : t->kind->parent (t, rank);
}

uint32_t topo_child_count (const struct topo *t, uint32_t rank)
{
    assert (rank < t->size);
    return t->kind->child_count (t, rank);
}

uint32_t topo_child (const struct topo *t, uint32_t rank, uint32_t i)
{
    uint32_t child = t->kind->child (t, rank, i);

    assert (child < t->size);
    return child;
}

uint32_t topo_level (const struct topo *t, uint32_t rank)
{
    uint32_t level = 0;

    for (; rank > 0; rank = t->kind->parent (t, rank))
        level++;
    return level;
}

uint32_t topo_maxlevel (const struct topo *t)
{
    return topo_level (t, t->deepest);
}

/* Unless the shape is custom, a parent has a lower number than its children, so the search ends when it passes 'rank'.
 */
uint32_t topo_child_toward (const struct topo *t, uint32_t rank, uint32_t to)
{
    uint32_t end = t->parents ? 0 : rank;

    while (to > end) {
        uint32_t parent = t->kind->parent (t, to);

        if (parent == rank)
            return to;
        to = parent;
    }
    return TOPO_NONE;
}
