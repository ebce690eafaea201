/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* relay.c - lease requests combined and split
 *
 * Requests wait in one list in order of arrival; those sent on carry the tag of the combined request they went with.
 * They leave the list only in answer_item (), which answers them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "modules/fluid/lease/relay.h"

struct item {
    struct item *next;
    void *cookie;
    uint64_t received_us;
    uint32_t tag; /* 0: waits */
    size_t nwant;
    struct lease_want want[];
};

struct relay {
    uint64_t lease_ms;
    relay_reply_f reply;
    void *arg;

    struct item *first, **end;
    size_t nwants; /* of all items */
    uint64_t due_us;
    uint32_t last_tag;

    struct lease_back *back; /* that wait */
    size_t nback;
    bool odd_epoch; /* some child named an epoch */
    int64_t epoch_ms;

    struct lease_request out; /* the last combined request: its arrays are ours */
};

static void free_request (struct lease_request *req)
{
    free ((void *)req->want);
    free ((void *)req->back);
    *req = (struct lease_request){ 0 };
}

void relay_destroy (struct relay *r)
{
    if (!r)
        return;
    int saved = errno;
    while (r->first) {
        struct item *item = r->first;
        r->first = item->next;
        free (item);
    }
    free (r->back);
    free_request (&r->out);
    free (r);
    errno = saved;
}

struct relay *relay_create (uint64_t lease_ms, relay_reply_f reply, void *arg)
{
    struct relay *r = calloc (1, sizeof (*r));

    if (r) {
        *r = (struct relay){ .lease_ms = lease_ms, .reply = reply, .arg = arg, .due_us = UINT64_MAX };
        r->end = &r->first;
    }
    return r;
}

/* Whether a sender cannot wait: it holds nothing, or not for long. */
static bool urgent (const struct relay *r, uint64_t now_ms, const struct lease_request *req)
{
    for (size_t i = 0; i < req->nwant; i++)
        if (req->want[i].have_hi_ms < now_ms + r->lease_ms / 3)
            return true;
    return false;
}

static int add_backs (struct relay *r, const struct lease_back *back, size_t nback)
{
    if (nback == 0)
        return 0;
    struct lease_back *all = realloc (r->back, (r->nback + nback) * sizeof (*all));
    if (!all) {
        errno = ENOMEM;
        return -1;
    }
    memcpy (all + r->nback, back, nback * sizeof (*all));
    r->back = all;
    r->nback += nback;
    return 0;
}

int relay_add_back (struct relay *r, const struct lease_back *back)
{
    return add_backs (r, back, 1);
}

int relay_add (struct relay *r, uint64_t now_us, uint64_t now_ms, void *cookie, const struct lease_request *req)
{
    if (r->nwants + req->nwant > RELAY_MAX_WANTS || r->nback + req->nback > RELAY_MAX_WANTS) {
        errno = ENOBUFS;
        return -1;
    }
    struct item *item = calloc (1, sizeof (*item) + req->nwant * sizeof (item->want[0]));
    if (!item || add_backs (r, req->back, req->nback) < 0) {
        free (item);
        errno = ENOMEM;
        return -1;
    }
    *item = (struct item){ .cookie = cookie, .received_us = now_us, .nwant = req->nwant };
    if (req->nwant > 0)
        memcpy (item->want, req->want, req->nwant * sizeof (item->want[0]));
    *r->end = item;
    r->end = &item->next;
    r->nwants += item->nwant;
    if (req->has_epoch) {
        r->odd_epoch = true;
        r->epoch_ms = req->epoch_ms;
    }
    uint64_t due_us = urgent (r, now_ms, req) ? now_us : now_us + r->lease_ms * 1000 / 12;
    if (r->due_us > due_us)
        r->due_us = due_us;
    return 0;
}

uint64_t relay_due (const struct relay *r)
{
    return r->due_us;
}

static size_t count_waiting (const struct relay *r)
{
    size_t n = 0;

    for (const struct item *item = r->first; item; item = item->next)
        if (item->tag == 0)
            n += item->nwant;
    return n;
}

/* Move what waits into 'want', marking it as sent. */
static void take_waiting (struct relay *r, uint32_t tag, struct lease_want *want)
{
    for (struct item *item = r->first; item; item = item->next) {
        if (item->tag != 0)
            continue;
        item->tag = tag;
        memcpy (want, item->want, item->nwant * sizeof (*want));
        want += item->nwant;
    }
}

uint32_t relay_flush (struct relay *r, uint64_t now_us, const struct lease_want *own, struct lease_request *req)
{
    size_t nwant = count_waiting (r) + (own != NULL);

    free_request (&r->out);
    if (nwant + r->nback == 0 && r->due_us == UINT64_MAX)
        return 0;
    struct lease_want *want = malloc ((nwant + 1) * sizeof (*want));
    if (!want) {
        r->due_us = now_us + r->lease_ms * 1000 / 12;
        return 0;
    }
    if (++r->last_tag == 0)
        r->last_tag++;
    take_waiting (r, r->last_tag, want);
    if (own)
        want[nwant - 1] = *own;
    r->out = (struct lease_request){ want, nwant, r->back, r->nback, r->odd_epoch, r->epoch_ms };
    r->back = NULL;
    r->nback = 0;
    r->odd_epoch = false;
    r->due_us = UINT64_MAX;
    *req = r->out;
    return r->last_tag;
}

/* Order of generator, then incarnation. */
static int compare (uint32_t ga, const char *ia, uint32_t gb, const char *ib)
{
    return ga != gb ? (ga < gb ? -1 : 1) : strcmp (ia, ib);
}

static int compare_grants (const void *a, const void *b)
{
    const struct lease_grant *x = a, *y = b;

    return compare (x->generator, x->incarnation, y->generator, y->incarnation);
}

/* The grant in sorted 'grant' that answers 'want'; NULL: none.  OWN_ANSWER: two that want one generator are told apart. */
static const struct lease_grant *find (const struct lease_want *want, const struct lease_grant *grant, size_t n)
{
    struct lease_grant key = { .generator = want->generator };

    memcpy (key.incarnation, want->incarnation, sizeof (key.incarnation));
    return n > 0 ? bsearch (&key, grant, n, sizeof (key), compare_grants) : NULL;
}

/* Unlink the item at '*link' and answer it with its share of 'grant' (sorted). */
static void answer_item (struct relay *r, uint64_t now_us, struct item **link, const struct lease_grant *grant,
                         size_t ngrant)
{
    struct item *item = *link;
    struct lease_grant *share = ngrant > 0 ? malloc ((item->nwant + 1) * sizeof (*share)) : NULL;
    size_t n = 0;

    *link = item->next;
    if (r->end == &item->next)
        r->end = link;
    r->nwants -= item->nwant;
    for (size_t i = 0; share && i < item->nwant; i++) {
        const struct lease_grant *g = find (&item->want[i], grant, ngrant);
        if (g)
            share[n++] = *g;
    }
    r->reply (r->arg, now_us, item->cookie, item->received_us, share, n);
    free (share);
    free (item);
}

void relay_answered (struct relay *r, uint64_t now_us, uint32_t tag, const struct lease_grant *grant, size_t ngrant)
{
    struct lease_grant *sorted = ngrant > 0 ? malloc (ngrant * sizeof (*sorted)) : NULL;
    struct item **link = &r->first;

    if (sorted) {
        memcpy (sorted, grant, ngrant * sizeof (*sorted));
        qsort (sorted, ngrant, sizeof (*sorted), compare_grants);
    }
    while (*link) {
        if ((*link)->tag == tag && tag != 0)
            answer_item (r, now_us, link, sorted, sorted ? ngrant : 0);
        else
            link = &(*link)->next;
    }
    free (sorted);
}

void relay_drop_old (struct relay *r, uint64_t now_us, uint64_t before_us)
{
    while (r->first && r->first->received_us < before_us)
        answer_item (r, now_us, &r->first, NULL, 0);
    if (!r->first && r->nback == 0)
        r->due_us = UINT64_MAX;
}

uint64_t relay_oldest (const struct relay *r)
{
    return r->first ? r->first->received_us : UINT64_MAX;
}
