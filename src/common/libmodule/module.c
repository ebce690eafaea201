/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module.c - functions that several modules use: attributes, answers, reports of figures, requests to other services */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "libidtree/json.h"
#include "libmodule/module.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"

/* --- attributes -------------------------------------------------------------------------------------------------- */

int module_option_bad (const char *name, const char *value, const char *want, idt_error_t *errp)
{
    return errsetf (errp, EINVAL, "%s=%s: must be %s", name, value, want);
}

int module_option_none (int argc, char **argv, idt_error_t *errp)
{
    return argc == 0
               ? 0
               : errsetf (errp, EINVAL,
                          "'%.64s': this module takes no arguments: set an attribute when the broker starts", argv[0]);
}

static const char *define (idt_t *h, const char *name, const char *unless_given, idt_error_t *errp)
{
    const char *s = idt_attr_define (h, name, unless_given);

    if (!s)
        errprintf (errp, "%s: %s", name, strerror (errno));
    return s;
}

int module_option_number (idt_t *h, const char *name, const char *unless_given, uint32_t min, uint32_t max,
                          uint32_t *value, idt_error_t *errp)
{
    const char *s = unless_given ? define (h, name, unless_given, errp) : idt_attr_get (h, name);
    uint64_t n;
    char want[64];

    if (!s)
        return unless_given ? -1 : 0;
    snprintf (want, sizeof (want), "a number from %u to %u", min, max);
    if (parse_number (s, min, max, &n) < 0)
        return module_option_bad (name, s, want, errp);
    *value = (uint32_t)n;
    return 0;
}

int module_option_duration (idt_t *h, const char *name, const char *unless_given, uint64_t min_ms, uint64_t max_ms,
                            const char *want, uint64_t *ms, idt_error_t *errp)
{
    const char *s = define (h, name, unless_given, errp);

    if (!s)
        return -1;
    if (parse_duration (s, max_ms, ms) < 0 || *ms < min_ms)
        return module_option_bad (name, s, want, errp);
    return 0;
}

int module_option_switch (idt_t *h, const char *name, const char *unless_given, bool *value, idt_error_t *errp)
{
    const char *s = define (h, name, unless_given, errp);

    if (!s)
        return -1;
    return parse_switch (s, value) == 0 ? 0 : module_option_bad (name, s, SWITCH_WORDS, errp);
}

bool module_option_is_off (const char *value)
{
    bool on = true;

    return parse_switch (value, &on) == 0 && !on;
}

/* Only a broker that has the role of rank 0 has root.term. */
static int find_store (idt_t *h, const char *what, struct module_place *place, idt_error_t *errp)
{
    const char *term = idt_attr_get (h, "root.term"), *sync = idt_attr_get (h, "root.store-sync");

    if (!term || parse_number (term, 1, INT64_MAX, &place->term) < 0)
        return errsetf (errp, EINVAL, "rank 0 cannot keep %s in root.store: root.term=%s is not a term", what,
                        term ? term : "");
    if (!(place->uuid = idt_attr_get (h, "instance.uuid")))
        return errsetf (errp, EINVAL, "rank 0 cannot keep %s in root.store: the instance is not known", what);
    place->trust = sync && strcmp (sync, "trust") == 0;
    return 0;
}

int module_option_place (idt_t *h, const char *what, struct module_place *place, idt_error_t *errp)
{
    *place = (struct module_place){ .store = idt_attr_get (h, "root.store") };
    if (place->store && *place->store)
        return find_store (h, what, place, errp);
    place->store = NULL;
    if (!(place->dir = idt_attr_get (h, "statedir")))
        place->dir = idt_attr_get (h, "rundir");
    if (!place->dir || !*place->dir)
        return errsetf (errp, EINVAL, "rank 0 needs a folder to keep %s in: set statedir", what);
    return 0;
}

const char *module_option_root_timeout (idt_t *h)
{
    const char *store = idt_attr_get (h, "root.store");

    return store && *store ? "15s" : "5s";
}

/* --- answers ----------------------------------------------------------------------------------------------------- */

static void sent (idt_t *h, const idt_msg_t *msg, int rc)
{
    if (rc < 0)
        idt_log (h, LOG_ERR, "%s: cannot answer: %s", idt_msg_topic (msg), strerror (errno));
}

void module_respond (idt_t *h, const idt_msg_t *msg, const char *s)
{
    sent (h, msg, idt_respond (h, msg, s));
}

void module_respond_raw (idt_t *h, const idt_msg_t *msg, const void *data, size_t size)
{
    sent (h, msg, idt_respond_raw (h, msg, data, size));
}

void module_respond_error (idt_t *h, const idt_msg_t *msg, int errnum, const char *text)
{
    sent (h, msg, idt_respond_error (h, msg, errnum, text));
}

void module_respond_new (idt_t *h, const idt_msg_t *msg, char *s)
{
    if (s)
        module_respond (h, msg, s);
    else
        module_respond_error (h, msg, ENOMEM, NULL);
    free (s);
}

void module_respond_object (idt_t *h, const idt_msg_t *msg, json_t *o)
{
    module_respond_new (h, msg, o ? json_dumps (o, JSON_COMPACT) : NULL);
    json_decref (o);
}

bool module_same_client (const idt_msg_t *msg, const idt_msg_t *disconnect)
{
    const char *a = idt_msg_route_oldest (msg), *b = idt_msg_route_oldest (disconnect);

    return a && b && strcmp (a, b) == 0;
}

/* --- NAME.metrics ------------------------------------------------------------------------------------------------ */

/* Make a report. An empty one is not {}, because {} means that the module never reports anything. */
static json_t *report_new (uint32_t rank, bool states, bool brief, module_report_f report, void *arg)
{
    struct metrics *m = metrics_create (rank + 1);

    if (!m)
        return NULL;
    report (arg, states, m);
    if (brief)
        metrics_leave_out_zeros (m);
    json_t *o = metrics_report_new (m);
    metrics_destroy (m);
    if (o && json_object_size (o) == 0)
        json_put_new (&o, "quiet", json_boolean (!states));
    return o;
}

void module_report (idt_t *h, const idt_msg_t *msg, uint32_t rank, module_report_f report, void *arg)
{
    int states = 0, brief = 0;
    idt_error_t err;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &err, "{s?b s?b}", "states", &states, "brief", &brief) < 0) {
        module_respond_error (h, msg, EPROTO, err.text);
        return;
    }
    module_respond_object (h, msg, report_new (rank, states, brief, report, arg));
    json_decref (o);
}

/* --- requests to other services ----------------------------------------------------------------------------------- */

void upcall_destroy (struct upcall *up)
{
    if (!up)
        return;
    LIST_REMOVE (up, link);
    idt_future_destroy (up->f);
    idt_msg_unref (up->msg);
    freelist_put (&up->list->spare, up);
}

struct upcall *upcall_create (struct upcalls *list, idt_future_t *f, double timeout_ms, idt_future_f cb, void *owner)
{
    struct upcall *up = NULL;

    if (list->spare.size == 0)
        freelist_init (&list->spare, sizeof (*up));
    if (!f || !(up = freelist_get (&list->spare))) {
        idt_future_destroy (f);
        return NULL;
    }
    *up = (struct upcall){ .list = list, .owner = owner, .f = f };
    LIST_INSERT_HEAD (&list->calls, up, link);
    if (idt_future_then (f, timeout_ms, cb, up) < 0) {
        upcall_destroy (up);
        return NULL;
    }
    return up;
}

void upcalls_stop (struct upcalls *list, idt_t *h, const char *text)
{
    struct upcall *up;

    while ((up = LIST_FIRST (&list->calls))) {
        if (up->msg)
            module_respond_error (h, up->msg, EHOSTUNREACH, text);
        upcall_destroy (up);
    }
    freelist_fini (&list->spare);
}
