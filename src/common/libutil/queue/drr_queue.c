/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* drr_queue.c - a queue that serves its flows in turns
 *
 * A flow that is in a list ("listed") is ready. The queue serves the first flow of the round while the flow's credit is
 * above 0; an item may take the credit below 0. Then the flow gets a quantum and moves to the end of the round. The
 * listed flows of a group that have items share one quantum.
 *
 * A flow is a newcomer if neither it nor another flow of its group was listed. Newcomers are served before the round,
 * for one quantum (as in fq_codel). When the last item of a flow is served while other flows wait, the flow stays in
 * the round without items until its turn has passed. So a flow that comes and goes is a newcomer only once in a round.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "libutil/errprintf.h"
#include "libutil/queue/budget.h"
#include "libutil/queue/fifo.h"
#include "libutil/queue/drr_queue.h"

#define FIRST_BUCKETS 4

struct item {
    STAILQ_ENTRY (item) link;
    void *item;
    uint32_t cost;
    bool forced;
};

struct flow_group {
    LIST_ENTRY (flow_group) link;
    uint64_t key;
    uint32_t nflows;
    uint32_t listed;  /* number of listed flows of the group */
    uint32_t waiting; /* number of listed flows of the group that have items */
    struct budget account;
};

struct flow {
    struct flow *next; /* next flow in the same hash bucket */
    uint64_t key;
    int64_t credit;
    struct flow_group *group; /* NULL: the flow has no group */
    struct budget account;    /* used if the flow has no group */
    STAILQ_HEAD (, item) items;
    TAILQ_ENTRY (flow) link; /* link in the flow's list */
    size_t nitems;
    unsigned forced; /* number of forced items */
    bool ready;
    enum { LIST_NONE, LIST_NEW, LIST_ROUND } list;
};
TAILQ_HEAD (flow_list, flow);

struct drr_queue {
    struct flow **buckets;
    size_t nbuckets; /* a power of two */
    size_t nflows;
    uint32_t quantum;
    struct budget_pool pool;
    struct flow_list newcomers, round;
    size_t waiting;                  /* number of listed flows with items */
    LIST_HEAD (, flow_group) groups; /* groups that have flows */
    struct freelist flows, items, spare_groups;
};

/* --- groups ---------------------------------------------------------------------------------- */

static struct flow_group *find_or_add_group (struct drr_queue *t, uint64_t key)
{
    struct flow_group *g;

    LIST_FOREACH (g, &t->groups, link)
        if (g->key == key)
            return g;
    if (!(g = freelist_get (&t->spare_groups)))
        return NULL;
    *g = (struct flow_group){ .key = key };
    budget_init (&g->account, &t->pool, 0, 0, BUDGET_NEVER);
    LIST_INSERT_HEAD (&t->groups, g, link);
    return g;
}

static void leave_group (struct drr_queue *t, struct flow *f)
{
    struct flow_group *g = f->group;

    f->group = NULL;
    if (!g || --g->nflows > 0)
        return;
    LIST_REMOVE (g, link);
    freelist_put (&t->spare_groups, g);
}

/* Put a flow into the group 'key', unless the flow has a group or items. Returns 0, or -1 with errno ENOMEM. */
static int join_group (struct drr_queue *t, struct flow *f, uint64_t key)
{
    if (key == DRR_QUEUE_ALONE || f->group || !STAILQ_EMPTY (&f->items))
        return 0;
    if (!(f->group = find_or_add_group (t, key)))
        return -1;
    f->group->nflows++;
    return 0;
}

static struct budget *budget_of (struct flow *f)
{
    return f->group ? &f->group->account : &f->account;
}

static uint64_t group_key (const struct flow *f)
{
    return f->group ? f->group->key : DRR_QUEUE_ALONE;
}

/* --- lists ----------------------------------------------------------------------------------- */

/* The amount that a flow is served in one turn. */
static int64_t share (const struct drr_queue *t, const struct flow *f)
{
    uint32_t n = f->group && f->group->waiting > 1 ? f->group->waiting : 1;

    return t->quantum > n ? t->quantum / n : 1;
}

/* Count a listed flow that got its first item ('n' is 1), or that lost its last one ('n' is -1). */
static void count_waiting (struct drr_queue *t, struct flow *f, int n)
{
    assert (f->list != LIST_NONE && (n > 0 || t->waiting > 0));
    t->waiting += n;
    if (f->group)
        f->group->waiting += n;
}

static struct flow_list *list_of (struct drr_queue *t, const struct flow *f)
{
    return f->list == LIST_NEW ? &t->newcomers : &t->round;
}

/* Put a flow that has items into a list. */
static void enter_list (struct drr_queue *t, struct flow *f, bool is_new)
{
    f->list = is_new && (!f->group || f->group->listed == 0) ? LIST_NEW : LIST_ROUND;
    TAILQ_INSERT_TAIL (list_of (t, f), f, link);
    if (f->group)
        f->group->listed++;
    count_waiting (t, f, 1);
}

static void leave_list (struct drr_queue *t, struct flow *f)
{
    if (f->list == LIST_NONE)
        return;
    TAILQ_REMOVE (list_of (t, f), f, link);
    if (f->group)
        f->group->listed--;
    if (!STAILQ_EMPTY (&f->items))
        count_waiting (t, f, -1);
    f->list = LIST_NONE;
}

static void to_end_of_round (struct drr_queue *t, struct flow *f)
{
    TAILQ_REMOVE (list_of (t, f), f, link);
    f->list = LIST_ROUND;
    TAILQ_INSERT_TAIL (&t->round, f, link);
}

/* --- flows by key ---------------------------------------------------------------------------- */

static struct flow **bucket_of (const struct drr_queue *t, uint64_t key)
{
    return &t->buckets[(key * UINT64_C (0x9e3779b97f4a7c15) >> 32) & (t->nbuckets - 1)];
}

static struct flow *find (const struct drr_queue *t, uint64_t key)
{
    struct flow *f = *bucket_of (t, key);

    while (f && f->key != key)
        f = f->next;
    return f;
}

/* Double the table. If memory is short, the table keeps its size and the chains become longer. */
static void grow (struct drr_queue *t)
{
    struct flow **old = t->buckets;
    size_t n = t->nbuckets;
    struct flow **buckets = calloc (2 * n, sizeof (buckets[0]));

    if (!buckets)
        return;
    t->buckets = buckets;
    t->nbuckets = 2 * n;
    for (size_t i = 0; i < n; i++) {
        for (struct flow *f = old[i], *next; f; f = next) {
            struct flow **head = bucket_of (t, f->key);

            next = f->next;
            f->next = *head;
            *head = f;
        }
    }
    free (old);
}

static struct flow *find_or_add (struct drr_queue *t, uint64_t key)
{
    struct flow *f = find (t, key);

    if (f || !(f = freelist_get (&t->flows)))
        return f;
    *f = (struct flow){ .key = key, .ready = true };
    if (t->nflows++ >= t->nbuckets)
        grow (t);
    budget_init (&f->account, &t->pool, 0, 0, BUDGET_NEVER);
    STAILQ_INIT (&f->items);
    f->next = *bucket_of (t, key);
    *bucket_of (t, key) = f;
    return f;
}

/* Free a flow, unless it has items, is not ready, or is listed. */
static void forget_idle (struct drr_queue *t, struct flow *f)
{
    struct flow **link = bucket_of (t, f->key);

    if (!STAILQ_EMPTY (&f->items) || !f->ready || f->list != LIST_NONE)
        return;
    while (*link != f)
        link = &(*link)->next;
    *link = f->next;
    t->nflows--;
    leave_group (t, f);
    freelist_put (&t->flows, f);
}

/* --- items ----------------------------------------------------------------------------------- */

/* Make a flow wait that had no items and got one. */
static void begins_to_wait (struct drr_queue *t, struct flow *f)
{
    if (f->list != LIST_NONE) {
        count_waiting (t, f, 1);
        return;
    }
    enter_list (t, f, true);
    f->credit = share (t, f);
}

/* Take a flow without items out of the round and out of its group, because its next item is of another group. Then the
 * flow is treated like a new flow.
 */
static void change_group (struct drr_queue *t, struct flow *f)
{
    leave_list (t, f);
    leave_group (t, f);
}

typedef enum budget_verdict (*charge_f) (struct budget *a, uint64_t bytes, uint64_t now_us);

static int put (struct drr_queue *t, uint64_t group, uint64_t key, void *item, uint32_t cost, charge_f charge)
{
    struct flow *f = find_or_add (t, key);
    struct item *i = freelist_get (&t->items);
    bool was_idle = f && STAILQ_EMPTY (&f->items);
    bool forced = charge == budget_force;
    int errnum = ENOMEM;

    assert (item);
    if (was_idle && f->list != LIST_NONE && group_key (f) != group)
        change_group (t, f);
    if (!f || !i || join_group (t, f, group) < 0)
        goto error;
    if ((forced && f->forced >= DRR_QUEUE_MAX_FORCED) || charge (budget_of (f), cost, 0) == BUDGET_FULL) {
        errnum = EXFULL;
        goto error;
    }
    *i = (struct item){ .item = item, .cost = cost, .forced = forced };
    f->forced += forced;
    STAILQ_INSERT_TAIL (&f->items, i, link);
    f->nitems++;
    if (was_idle && f->ready)
        begins_to_wait (t, f);
    return 0;
error:
    freelist_put (&t->items, i);
    if (f)
        forget_idle (t, f);
    return errset (errnum);
}

int drr_queue_put (struct drr_queue *t, uint64_t key, void *item, uint32_t cost)
{
    return put (t, DRR_QUEUE_ALONE, key, item, cost, budget_charge);
}

int drr_queue_put_of (struct drr_queue *t, uint64_t group, uint64_t key, void *item, uint32_t cost)
{
    return put (t, group, key, item, cost, budget_charge);
}

int drr_queue_force (struct drr_queue *t, uint64_t group, uint64_t key, void *item, uint32_t cost)
{
    return put (t, group, key, item, cost, budget_force);
}

static void *take (struct drr_queue *t, struct flow *f)
{
    struct item *i = STAILQ_FIRST (&f->items);
    void *item = i->item;

    STAILQ_REMOVE_HEAD (&f->items, link);
    f->nitems--;
    f->forced -= i->forced;
    f->credit -= i->cost;
    budget_release (budget_of (f), 1, i->cost, 0);
    freelist_put (&t->items, i);
    return item;
}

static struct flow *first (const struct drr_queue *t)
{
    struct flow *f = TAILQ_FIRST (&t->newcomers);

    return f ? f : TAILQ_FIRST (&t->round);
}

/* End the turn of a flow without items. */
static void end_idle (struct drr_queue *t, struct flow *f)
{
    leave_list (t, f);
    forget_idle (t, f);
}

/* Find the flow whose turn it is. If only one flow waits, it gets a full quantum. Its earlier credit does not count. */
static struct flow *turn (struct drr_queue *t)
{
    struct flow *f = NULL;

    while (t->waiting > 0 && (f = first (t)) && (STAILQ_EMPTY (&f->items) || f->credit <= 0)) {
        if (STAILQ_EMPTY (&f->items)) {
            end_idle (t, f);
            continue;
        }
        f->credit += share (t, f);
        if (t->waiting == 1) {
            f->credit = t->quantum;
            break;
        }
        to_end_of_round (t, f);
    }
    return t->waiting > 0 ? f : NULL;
}

/* Handle a flow whose last item was taken. If no other flow waits, its turn has passed, and so have the turns of all
 * flows without items.
 */
static void ends_waiting (struct drr_queue *t, struct flow *f)
{
    count_waiting (t, f, -1);
    if (t->waiting > 0) {
        to_end_of_round (t, f);
        return;
    }
    while ((f = first (t)))
        end_idle (t, f);
}

void *drr_queue_next (struct drr_queue *t)
{
    struct flow *f = turn (t);
    void *item;

    if (!f)
        return NULL;
    item = take (t, f);
    if (STAILQ_EMPTY (&f->items))
        ends_waiting (t, f);
    return item;
}

void drr_queue_ready (struct drr_queue *t, uint64_t key, bool ready)
{
    struct flow *f = ready ? find (t, key) : find_or_add (t, key);

    if (!f || f->ready == ready)
        return;
    leave_list (t, f);
    f->ready = ready;
    if (f->ready && !STAILQ_EMPTY (&f->items))
        enter_list (t, f, false);
    forget_idle (t, f);
}

/* --- forgetting ------------------------------------------------------------------------------ */

/* Drop a flow with its items. The items are removed before the callback is called, because the callback may use the
 * queue.
 */
static void drop (struct drr_queue *t, struct flow *f, drr_queue_f cb, void *arg)
{
    STAILQ_HEAD (, item) items = STAILQ_HEAD_INITIALIZER (items);
    struct item *i;

    leave_list (t, f);
    STAILQ_CONCAT (&items, &f->items);
    f->nitems = 0;
    f->forced = 0;
    STAILQ_FOREACH (i, &items, link)
        budget_release (budget_of (f), 1, i->cost, 0);
    f->ready = true;
    forget_idle (t, f);
    while ((i = STAILQ_FIRST (&items))) {
        STAILQ_REMOVE_HEAD (&items, link);
        if (cb)
            cb (i->item, arg);
        freelist_put (&t->items, i);
    }
}

void drr_queue_drain (struct drr_queue *t, drr_queue_f cb, void *arg)
{
    for (size_t i = 0; i < t->nbuckets; i++)
        while (t->buckets[i])
            drop (t, t->buckets[i], cb, arg);
}

/* --- life ------------------------------------------------------------------------------------ */

struct drr_queue *drr_queue_create (uint32_t quantum, uint64_t max_items, uint64_t max_cost)
{
    struct drr_queue *t = calloc (1, sizeof (*t));

    assert (quantum > 0);
    if (!t || !(t->buckets = calloc (FIRST_BUCKETS, sizeof (t->buckets[0])))) {
        free (t);
        return errset_null (ENOMEM);
    }
    t->nbuckets = FIRST_BUCKETS;
    t->quantum = quantum;
    t->pool.max_items = max_items ? max_items : BUDGET_NO_LIMIT;
    t->pool.max_bytes = max_cost ? max_cost : BUDGET_NO_LIMIT;
    TAILQ_INIT (&t->newcomers);
    TAILQ_INIT (&t->round);
    freelist_init (&t->flows, sizeof (struct flow));
    freelist_init (&t->items, sizeof (struct item));
    freelist_init (&t->spare_groups, sizeof (struct flow_group));
    LIST_INIT (&t->groups);
    return t;
}

void drr_queue_destroy (struct drr_queue *t)
{
    int saved_errno = errno;

    if (!t)
        return;
    drr_queue_drain (t, NULL, NULL);
    assert (t->nflows == 0 && t->waiting == 0 && t->pool.items == 0 && LIST_EMPTY (&t->groups));
    freelist_fini (&t->flows);
    freelist_fini (&t->items);
    freelist_fini (&t->spare_groups);
    free (t->buckets);
    free (t);
    errno = saved_errno;
}

size_t drr_queue_count (const struct drr_queue *t)
{
    return t->pool.items;
}

uint64_t drr_queue_cost (const struct drr_queue *t)
{
    return t->pool.bytes;
}

bool drr_queue_waiting (const struct drr_queue *t)
{
    return t->waiting > 0;
}

size_t drr_queue_flow_count (const struct drr_queue *t, uint64_t key)
{
    const struct flow *f = find (t, key);

    return f ? f->nitems : 0;
}
