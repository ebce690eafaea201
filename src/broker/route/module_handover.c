/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module_handover.c - modules that left a handover and are not loaded now
 *
 * Each of these modules is represented by a peer of the router (PEER_ABSENT).  The peer has the service with the
 * module's name and a list of waiting requests.  All requests wait equally long, so the order of arrival is also the
 * order of the deadlines.  A timer checks the deadlines while requests wait.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "broker/base/uuid_key.h"
#include "broker/route/module_handover.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

#define PERIOD_MS 100. /* between two checks for requests whose deadline has passed */

struct handover_waiting {
    TAILQ_ENTRY (handover_waiting) link;
    const idt_msg_t *msg;
    double until; /* deadline in seconds of CLOCK_MONOTONIC_COARSE */
};

struct module_handover {
    struct peer peer;
    struct module_handovers *as;
    char name[64 + 1];
    void *data;
    size_t size;
    TAILQ_HEAD (, handover_waiting) waiting; /* in order of arrival */
    size_t count, bytes;
};

struct module_handovers {
    struct router *router;
    uint32_t rank;
    idt_watcher_t *timer;
    struct module_handover *list[MODULE_HANDOVER_MAX];
    size_t n;
    bool stopped;
};

/* --- waiting requests -------------------------------------------------------------------------------- */

static void fail (struct module_handover *a, const idt_msg_t *request, int errnum, const char *text)
{
    idt_msg_t *msg;

    if (idt_msg_has_flag (request, IDT_MSGFLAG_NORESPONSE) || !(msg = idt_msg_respond (request, errnum)))
        return;
    idt_msg_set_cred (msg, idt_msg_cred (request));
    idt_msg_set_string (msg, text);
    router_response_new (a->as->router, &a->peer, msg);
}

static void fail_not_loaded (struct module_handover *a, const idt_msg_t *request)
{
    idt_error_t error;

    errprintf (&error,
               a->as->stopped ? "%s is not loaded on rank %u, and this broker is stopping"
                              : "%s is not loaded on rank %u: idtree module load -r %u %s",
               a->name, a->as->rank, a->as->rank, a->name);
    fail (a, request, a->as->stopped ? EHOSTUNREACH : ENOSYS, error.text);
}

/* Remove a request from the list.  The reference to the message passes to the caller. */
static const idt_msg_t *take (struct module_handover *a, struct handover_waiting *w)
{
    const idt_msg_t *msg = w->msg;

    assert (a->count > 0 && a->bytes >= idt_msg_encode_size (msg));
    TAILQ_REMOVE (&a->waiting, w, link);
    a->count--;
    a->bytes -= idt_msg_encode_size (msg);
    free (w);
    return msg;
}

static bool is_from (const idt_msg_t *msg, const idt_msg_t *other)
{
    return strcmp (idt_msg_route_oldest (msg), idt_msg_route_oldest (other)) == 0;
}

static size_t count_from (const struct module_handover *a, const idt_msg_t *msg)
{
    struct handover_waiting *w;
    size_t n = 0;

    TAILQ_FOREACH (w, &a->waiting, link)
        n += is_from (w->msg, msg);
    return n;
}

static void forget_from (struct module_handover *a, const idt_msg_t *disconnect)
{
    struct handover_waiting *w = TAILQ_FIRST (&a->waiting), *next;

    for (; w; w = next) {
        next = TAILQ_NEXT (w, link);
        if (is_from (w->msg, disconnect))
            idt_msg_unref (take (a, w));
    }
}

static void hold (struct module_handover *a, const idt_msg_t *msg)
{
    size_t bytes = idt_msg_encode_size (msg);
    struct handover_waiting *w;

    if (a->count >= MODULE_HANDOVER_MAX_REQUESTS || a->bytes + bytes > MODULE_HANDOVER_MAX_BYTES
        || count_from (a, msg) >= MODULE_HANDOVER_MAX_EACH || !(w = malloc (sizeof (*w)))) {
        fail (a, msg, EAGAIN, "too many requests wait for a module that is not loaded");
        return;
    }
    w->msg = idt_msg_ref (msg);
    w->until = clock_s (CLOCK_MONOTONIC_COARSE) + MODULE_HANDOVER_WAIT_MS * 1E-3;
    TAILQ_INSERT_TAIL (&a->waiting, w, link);
    a->count++;
    a->bytes += bytes;
    idt_watcher_start (a->as->timer);
}

static int module_handover_send (void *arg, const idt_msg_t *msg)
{
    struct module_handover *a = arg;

    if (router_is_disconnect (msg))
        forget_from (a, msg);
    else if (a->as->stopped)
        fail_not_loaded (a, msg);
    else
        hold (a, msg);
    return 0;
}

/* Fail the requests whose deadline has passed, or all requests if this broker is stopping. */
static void fail_late (struct module_handovers *as)
{
    double t = clock_s (CLOCK_MONOTONIC_COARSE);
    size_t left = 0;

    for (size_t i = 0; i < as->n; i++) {
        struct module_handover *a = as->list[i];
        struct handover_waiting *w;

        while ((w = TAILQ_FIRST (&a->waiting)) && (as->stopped || w->until <= t)) {
            const idt_msg_t *msg = take (a, w);
            fail_not_loaded (a, msg);
            idt_msg_unref (msg);
        }
        left += a->count;
    }
    if (left == 0)
        idt_watcher_stop (as->timer);
}

static void timer_cb (idt_watcher_t *w, int revents, void *arg)
{
    fail_late (arg);
}

/* --- modules that are not loaded ----------------------------------------------------------------------- */

static void module_handover_destroy (struct module_handover *a)
{
    if (!a)
        return;
    while (a->count > 0)
        idt_msg_unref (take (a, TAILQ_FIRST (&a->waiting)));
    free (a->data);
    free (a);
}

static struct module_handover *find (struct module_handovers *as, const char *name)
{
    for (size_t i = 0; i < as->n; i++)
        if (strcmp (as->list[i]->name, name) == 0)
            return as->list[i];
    return NULL;
}

static struct module_handover *module_handover_create (struct module_handovers *as, const char *name)
{
    struct module_handover *a = calloc (1, sizeof (*a));

    if (!a)
        return NULL;
    a->as = as;
    TAILQ_INIT (&a->waiting);
    a->peer = (struct peer){ .kind = PEER_ABSENT, .send = module_handover_send, .arg = a };
    snprintf (a->name, sizeof (a->name), "%s", name);
    if (uuid_make (a->peer.uuid) < 0 || router_peer_add (as->router, &a->peer) < 0
        || router_service_add (as->router, a->name, &a->peer) < 0) {
        router_peer_remove (as->router, &a->peer);
        module_handover_destroy (a);
        return NULL;
    }
    return a;
}

void module_handovers_add_new (struct module_handovers *as, const char *name, void *data, size_t size)
{
    struct module_handover *a = as->n < MODULE_HANDOVER_MAX ? module_handover_create (as, name) : NULL;

    if (!a) {
        free (data);
        return;
    }
    a->data = data;
    a->size = size;
    as->list[as->n++] = a;
    assert (as->n <= MODULE_HANDOVER_MAX);
}

const void *module_handovers_pause (struct module_handovers *as, const char *name, size_t *size)
{
    struct module_handover *a = find (as, name);

    if (!a)
        return NULL;
    router_service_remove (as->router, a->name, &a->peer);
    *size = a->size;
    return a->data;
}

void module_handovers_resume (struct module_handovers *as, const char *name)
{
    struct module_handover *a = find (as, name);

    if (a)
        router_service_add (as->router, a->name, &a->peer);
}

void module_handovers_end (struct module_handovers *as, const char *name)
{
    struct module_handover *a = find (as, name);
    size_t i = 0;

    if (!a)
        return;
    while (as->list[i] != a)
        i++;
    as->list[i] = as->list[--as->n];
    router_peer_remove (as->router, &a->peer);
    while (a->count > 0)
        router_request_again_new (as->router, take (a, TAILQ_FIRST (&a->waiting)));
    module_handover_destroy (a);
}

void module_handovers_stop (struct module_handovers *as)
{
    as->stopped = true;
    fail_late (as);
}

/* --- life ------------------------------------------------------------------------------------------------ */

struct module_handovers *module_handovers_create (idt_reactor_t *r, struct router *router, uint32_t rank)
{
    struct module_handovers *as = calloc (1, sizeof (*as));

    if (!as)
        return NULL;
    *as = (struct module_handovers){ .router = router, .rank = rank };
    if (!(as->timer = idt_timer_watcher_create (r, PERIOD_MS, PERIOD_MS, timer_cb, as))) {
        free (as);
        return NULL;
    }
    return as;
}

void module_handovers_destroy (struct module_handovers *as)
{
    if (!as)
        return;
    while (as->n > 0) {
        struct module_handover *a = as->list[--as->n];

        router_peer_remove (as->router, &a->peer);
        module_handover_destroy (a);
    }
    idt_watcher_destroy (as->timer);
    free (as);
}
