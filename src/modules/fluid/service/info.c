/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* info.c - what a rank reports about itself: fluid.info, stats-get, stats-clear */
#include <stdlib.h>

#include "libidtree/json_build.h"
#include "libutil/ranges.h"
#include "modules/fluid/service/service.h"
#include "modules/fluid/service/wire.h"

/* --- fluid.info -------------------------------------------------------------------------------------------- */

static json_t *us_to_ms (int64_t us)
{
    return json_real ((double)us / 1000);
}

static json_t *range (uint64_t lo_ms, uint64_t hi_ms)
{
    return hi_ms > 0 ? json_pack ("[o,o]", wire_number (lo_ms), wire_number (hi_ms)) : json_null ();
}

static void add_root_info (struct service *sv, json_t **o)
{
    struct authority_status s;
    char store[512];

    authority_status (sv->authority, service_now_us (sv), &s);
    service_describe_store (sv, &s, store, sizeof (store));
    json_put_new (o, "horizon_ms", wire_number (s.horizon_ms));
    json_put_new (o, "ahead_ms", us_to_ms (s.ahead_us));
    json_put_new (o, "store", json_string (store));
}

static bool makes_ids (const struct node_status *s)
{
    return s->state == NODE_ACTIVE || s->state == NODE_BORROWING;
}

/* The sublease that this rank holds: generator, sequence numbers, and end. */
static json_t *borrowed (const struct area *a)
{
    uint32_t first = 0, size = area_run (a->granules, &first);

    return json_pack ("{s:I s:[I,I] s:o}", "generator", (json_int_t)a->generator, "sequence", (json_int_t)first,
                      (json_int_t)size, "until_ms", wire_number (a->range.hi_ms));
}

/* The subleases that this rank granted, and the child ranks that hold them. Those ranks may grant parts of them further
 * down.
 */
static json_t *lent (const struct service *sv, uint64_t now_us, const struct node_status *s)
{
    uint32_t ranks[NODE_LENT_MAX];
    size_t n = node_lent_to (sv->node, now_us, ranks);
    char *text = ranges_format (ranks, n);
    json_t *o = json_pack ("{s:I s:I s:s*}", "loans", (json_int_t)s->loans, "per_ms", (json_int_t)s->lent_per_ms,
                           "ranks", text);

    free (text);
    return o;
}

/* What this rank knows itself. A rank that makes no ids adds the parent's answer (above_cb ()). Returns NULL if memory
 * is exhausted.
 */
static json_t *make_info (struct service *sv, struct node_status *s)
{
    const struct node_config *config = &sv->options.node;
    uint64_t now_us = service_now_us (sv);
    json_t *o;

    node_status (sv->node, now_us, s);
    o = json_pack ("{s:I s:s s:I}", "rank", (json_int_t)config->rank, "state", node_state_name (s->state),
                   "max_generators", (json_int_t)config->max_generators);
    if (!o)
        return NULL;
    json_put_new (&o, "generator", s->owns_generator ? json_integer (s->generator) : json_null ());
    if (config->lanes > 1) { /* generators of rank r: r, r + ranks, ... */
        json_put_new (&o, "lanes", json_integer (config->lanes));
        json_put_new (&o, "ranks", json_integer (config->size));
    }
    json_put_new (&o, "served_by", makes_ids (s) ? json_integer (config->rank) : json_null ());
    json_put_new (&o, "timestamp_ms", s->time_known ? wire_number (s->timestamp_ms) : json_null ());
    json_put_new (&o, "epoch", s->has_epoch ? wire_date (s->epoch_ms) : json_null ());
    json_put_new (&o, "lease", range (s->lo_ms, s->hi_ms));
    if (s->state == NODE_BORROWING)
        json_put_new (&o, "share", borrowed (&s->area));
    if (s->owns_generator && config->share != NODE_SHARE_OFF)
        json_put_new (&o, "lends", json_true ());
    if (s->loans > 0)
        json_put_new (&o, "lent", lent (sv, now_us, s));
    json_put_new (&o, "skew_bound_ms", s->time_known ? us_to_ms ((int64_t)s->bound_us) : json_null ());
    if (sv->authority)
        add_root_info (sv, &o);
    return o;
}

/* The parent has answered: take over from it what this rank does not know. */
static void above_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    struct service *sv = up->owner;
    struct node_status s;
    json_t *o = make_info (sv, &s), *above = NULL;

    if (o && !makes_ids (&s) && idt_rpc_get_unpack (f, "o", &above) == 0) {
        json_object_set (o, "served_by", json_object_get (above, "served_by"));
        if (!s.has_epoch)
            json_object_set (o, "epoch", json_object_get (above, "epoch"));
    }
    module_respond_object (sv->h, up->msg, o);
    upcall_destroy (up);
}

void service_info_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct service *sv = arg;
    struct node_status s;
    struct upcall *up = NULL;
    json_t *o = make_info (sv, &s);

    if (!makes_ids (&s) && s.parent_up)
        up = upcall_create (&sv->ups, idt_rpc (h, "fluid.info", NULL, IDT_NODEID_UPSTREAM, 0), -1, above_cb, sv);
    if (up) {
        up->msg = idt_msg_ref (msg);
        json_decref (o);
    }
    else
        module_respond_object (sv->h, msg, o);
}

/* --- statistics ------------------------------------------------------------------------------------------------ */

static json_t *pack_stats (const struct node_stats *s, const struct authority_stats *root, uint64_t lease_requests)
{
    const struct {
        const char *name;
        uint64_t value;
    } counters[] = {
        { "requests", s->requests },
        { "ids", s->ids },
        { "ids_from_above", s->ids_from_above },
        { "page_ids", s->page_ids },
        { "forwarded", s->forwards },
        { "combined", s->combined },
        { "forwards_lost", s->forwards_lost },
        { "spilled", s->spilled },
        { "stalls", s->waiting.stalls },
        { "refused", s->waiting.refused },
        { "unreachable", s->waiting.unreachable },
        { "renewals", s->renewals },
        { "borrowed", s->borrowed },
        { "lent", s->lent },
        { "share_messages", s->share_messages },
        { "lease_messages", s->lease_messages + lease_requests }, /* sent to the parent; at rank 0 received */
        { "stores", root->stores },
        { "store_failures", root->store_failures },
    };
    json_t *o = json_object ();

    for (size_t i = 0; i < sizeof (counters) / sizeof (counters[0]); i++)
        json_put_new (&o, counters[i].name, json_integer ((json_int_t)counters[i].value));
    json_put_new (&o, "longest_stall_ms", us_to_ms ((int64_t)s->waiting.waits.longest_us));
    return o;
}

void service_stats_get_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct service *sv = arg;
    const struct authority_stats none = { 0 }, *root = sv->authority ? authority_stats (sv->authority) : &none;

    module_respond_object (sv->h, msg, pack_stats (node_stats (sv->node), root, sv->lease_requests));
}

/* Also called for the event fluid.stats-clear, which gets no response. */
void service_stats_clear_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct service *sv = arg;

    *node_stats (sv->node) = (struct node_stats){ 0 };
    if (sv->authority)
        *authority_stats (sv->authority) = (struct authority_stats){ 0 };
    sv->lease_requests = 0;
    if (idt_msg_type (msg) == IDT_MSGTYPE_REQUEST)
        module_respond (sv->h, msg, NULL);
}
