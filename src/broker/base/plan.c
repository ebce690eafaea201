/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* plan.c - which process hosts which rank, and how many open files a process needs
 *
 * If the subtree of a rank is too large for a process, the rank is planned alone. So is rank 0. Below such ranks, each
 * largest subtree that is not too large is a piece, and stays whole. Pieces are assigned to processes, the largest
 * first, each to the process with the fewest ranks. Each rank that is planned alone then goes to the process of its
 * parent if this process has fewer ranks than the fair share, else to the process with the fewest ranks.
 */
#include "config.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "broker/base/plan.h"
#include "libutil/errprintf.h"

struct plan {
    uint32_t size;
    uint32_t processes;
    /* The tables are NULL if plan_process () and the others compute their results without them. */
    uint32_t *process; /* process of each rank */
    uint32_t *ranks;   /* ranks in order of process, ascending within each */
    uint32_t *first;   /* index of a process's first rank in 'ranks'; one more entry at the end */
    bool *known;       /* whether other processes must know the rank */
};

struct plan_piece {
    uint32_t rank; /* rank at the top of the subtree */
    uint32_t size;
};

/* Data that is needed only while a plan is made. */
struct draft {
    const struct topo *t;
    struct plan *p;
    uint32_t fair;            /* ranks of each process if all had equally many, rounded up */
    uint32_t *order;          /* all ranks, parents before their children */
    uint32_t *below;          /* size of the subtree of each rank */
    uint32_t *load;           /* ranks of each process */
    struct plan_piece *piece; /* largest first */
    uint32_t npieces;
};

/* --- pieces -------------------------------------------------------------------------------------- */

static void sort_ranks (struct draft *d)
{
    uint32_t size = d->p->size;

    d->order[0] = 0;
    for (uint32_t i = 0, end = 1; i < size; i++) {
        uint32_t rank = d->order[i], count = topo_child_count (d->t, rank);

        for (uint32_t j = 0; j < count; j++)
            d->order[end++] = topo_child (d->t, rank, j);
        d->below[rank] = 1;
    }
    for (uint32_t i = size - 1; i > 0; i--)
        d->below[topo_parent (d->t, d->order[i])] += d->below[d->order[i]];
}

/* Whether the subtree of a rank is too large for a process. A subtree up to a quarter above the fair share stays whole,
 * because dividing it between two processes would be worse.
 */
static bool stands_alone (const struct draft *d, uint32_t rank)
{
    return rank == 0 || d->below[rank] > d->fair + d->fair / 4;
}

static bool is_piece (const struct draft *d, uint32_t rank)
{
    return !stands_alone (d, rank) && stands_alone (d, topo_parent (d->t, rank));
}

static int compare_pieces (const void *a, const void *b)
{
    const struct plan_piece *x = a, *y = b;

    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static void find_pieces (struct draft *d)
{
    for (uint32_t rank = 1; rank < d->p->size; rank++)
        if (is_piece (d, rank))
            d->piece[d->npieces++] = (struct plan_piece){ rank, d->below[rank] };
    qsort (d->piece, d->npieces, sizeof (d->piece[0]), compare_pieces);
}

/* --- processes ----------------------------------------------------------------------------------- */

static void host (struct draft *d, uint32_t rank, uint32_t process, uint32_t count)
{
    d->p->process[rank] = process;
    d->load[process] += count;
}

static uint32_t lightest (const struct draft *d)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < d->p->processes; i++)
        if (d->load[i] < d->load[best])
            best = i;
    return best;
}

static void assign (struct draft *d)
{
    host (d, 0, 0, 1);
    for (uint32_t i = 0; i < d->npieces; i++)
        host (d, d->piece[i].rank, lightest (d), d->piece[i].size);
    for (uint32_t i = 1; i < d->p->size; i++) {
        uint32_t rank = d->order[i], above = d->p->process[topo_parent (d->t, rank)];

        if (stands_alone (d, rank))
            host (d, rank, d->load[above] < d->fair ? above : lightest (d), 1);
        else if (!is_piece (d, rank))
            d->p->process[rank] = above;
    }
}

/* If there are fewer pieces than processes, some processes host no rank. Remove these, and number the others
 * consecutively.
 */
static void close_up (struct draft *d)
{
    struct plan *p = d->p;
    uint32_t count = 0;

    for (uint32_t i = 0; i < p->processes; i++)
        d->load[i] = d->load[i] > 0 ? count++ : 0;
    for (uint32_t rank = 0; rank < p->size; rank++)
        p->process[rank] = d->load[p->process[rank]];
    assert (count >= 1 && count <= p->processes);
    p->processes = count;
}

static void list_ranks (struct plan *p)
{
    for (uint32_t rank = 0; rank < p->size; rank++)
        p->first[p->process[rank] + 1]++;
    for (uint32_t i = 0; i < p->processes; i++)
        p->first[i + 1] += p->first[i];
    for (uint32_t rank = 0; rank < p->size; rank++)
        p->ranks[p->first[p->process[rank]]++] = rank;
    /* the loop has advanced first[i] to the end of the ranks of process i, where those of process i + 1 begin */
    memmove (p->first + 1, p->first, p->processes * sizeof (p->first[0]));
    p->first[0] = 0;
}

static void mark_known (struct draft *d)
{
    struct plan *p = d->p;

    for (uint32_t rank = 1; rank < p->size; rank++) {
        if (p->process[rank] == p->process[topo_parent (d->t, rank)])
            continue;
        p->known[rank] = true;
        for (uint32_t up = rank; up > 0 && !p->known[up = topo_parent (d->t, up)];)
            p->known[up] = true;
    }
}

static int make_tables (struct plan *p, const struct topo *t)
{
    struct draft d = { .t = t, .p = p, .fair = (p->size - 1) / p->processes + 1 };
    int rc = -1;

    p->process = calloc (p->size, sizeof (p->process[0]));
    p->ranks = calloc (p->size, sizeof (p->ranks[0]));
    p->first = calloc (p->processes + 1, sizeof (p->first[0]));
    p->known = calloc (p->size, sizeof (p->known[0]));
    d.order = calloc (p->size, sizeof (d.order[0]));
    d.below = calloc (p->size, sizeof (d.below[0]));
    d.load = calloc (p->processes, sizeof (d.load[0]));
    d.piece = calloc (p->size, sizeof (d.piece[0]));
    if (p->process && p->ranks && p->first && p->known && d.order && d.below && d.load && d.piece) {
        sort_ranks (&d);
        find_pieces (&d);
        assign (&d);
        close_up (&d);
        list_ranks (p);
        mark_known (&d);
        rc = 0;
    }
    free (d.order);
    free (d.below);
    free (d.load);
    free (d.piece);
    return rc;
}

/* --- life ---------------------------------------------------------------------------------------- */

struct plan *plan_create (uint32_t size, uint32_t processes, const struct topo *t, idt_error_t *errp)
{
    struct plan *p = calloc (1, sizeof (*p));

    assert (processes >= 1 && processes <= size);
    assert (!t || t->size == size);
    if (p) {
        p->size = size;
        p->processes = processes;
        if (processes == 1 || processes == size || make_tables (p, t) == 0)
            return p;
    }
    plan_destroy (p);
    return errsetf_null (errp, ENOMEM, "out of memory");
}

void plan_destroy (struct plan *p)
{
    if (!p)
        return;
    free (p->process);
    free (p->ranks);
    free (p->first);
    free (p->known);
    free (p);
}

uint32_t plan_processes (const struct plan *p)
{
    return p->processes;
}

uint32_t plan_process (const struct plan *p, uint32_t rank)
{
    assert (rank < p->size);
    return p->process ? p->process[rank] : p->processes == 1 ? 0 : rank;
}

uint32_t plan_count (const struct plan *p, uint32_t process)
{
    assert (process < p->processes);
    return p->first ? p->first[process + 1] - p->first[process] : p->size / p->processes;
}

uint32_t plan_rank (const struct plan *p, uint32_t process, uint32_t i)
{
    assert (i < plan_count (p, process));
    return p->ranks ? p->ranks[p->first[process] + i] : p->processes == 1 ? i : process;
}

bool plan_is_known (const struct plan *p, uint32_t rank)
{
    assert (rank < p->size);
    return p->known ? p->known[rank] : p->processes > 1;
}

/* --- open files ---------------------------------------------------------------------------------- */

#define OWN_FILES 40 /* rank 0 with all modules has 35 files open, and a few more temporarily */

uint64_t plan_files_need (uint64_t children)
{
    return 2 * (OWN_FILES + children);
}

uint64_t plan_files_open (int first)
{
    DIR *dir = opendir ("/proc/self/fd");
    struct dirent *entry;
    uint64_t n = 0;

    while (dir && (entry = readdir (dir)))
        n += entry->d_name[0] != '.' && atoi (entry->d_name) >= first && atoi (entry->d_name) != dirfd (dir);
    if (dir)
        closedir (dir);
    return n;
}

int plan_files_check (uint64_t children, uint64_t inherited, idt_error_t *errp)
{
    uint64_t need = plan_files_need (children) + inherited;
    struct rlimit r;

    if (getrlimit (RLIMIT_NOFILE, &r) < 0 || r.rlim_max == RLIM_INFINITY || r.rlim_max >= need)
        return 0;
    return errsetf (errp, EMFILE,
                    "a process may have %ju open files (ulimit -Hn), and a broker needs %" PRIu64 " (children: %" PRIu64
                    ", files that were open before: %" PRIu64 "): raise the limit",
                    (uintmax_t)r.rlim_max, need, children, inherited);
}
