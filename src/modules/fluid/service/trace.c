/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* trace.c - traced requests for ids: what this rank did for them, and the hops that its ancestors reported
 *
 * The node knows only the cookie of a traced request, and that it is traced. It reports which requests are forwarded
 * together. Everything else about a trace is kept here until the answer, so requests without a trace need no memory and
 * no time for tracing.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "libidtree/json.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "modules/fluid/service/service.h"
#include "modules/fluid/service/wire.h"

#define HEX "0123456789abcdef"

struct traced {
    LIST_ENTRY (traced) link;
    const idt_msg_t *msg;
    struct idt_cred user;
    struct trace_wish wish;
    char span[TRACE_SPAN_LEN + 1];
    char under[TRACE_SPAN_LEN + 1]; /* parent span of the forward that was sent */
    enum node_state came;           /* the node's state at the arrival */
    uint64_t came_us;
    uint64_t came_unix_us;
    uint64_t sent_us; /* when the forward under way was sent; 0: no forward is under way */
    uint32_t tag;     /* of that forward */
    uint32_t asked;
    uint64_t up_us;
    uint32_t forwards;
    uint32_t combined;
    uint32_t from_above;
    bool waits;    /* the request was not answered immediately */
    bool queued;   /* nor was it forwarded immediately */
    json_t *above; /* hops of the ancestors, or NULL */
};

/* --- W3C Trace Context -------------------------------------------------------------------------------- */

static void make_hex (char *buf, size_t len)
{
    uint8_t bits[TRACE_ID_LEN / 2] = { 1 };

    if (getrandom (bits, len / 2, 0) < 0)
        bits[0] = 1; /* a trace id need not be random or secret */
    for (size_t i = 0; i < len; i++)
        buf[i] = HEX[i % 2 ? bits[i / 2] & 15 : bits[i / 2] >> 4];
    buf[len] = '\0';
}

/* Copy 'len' lower-case hexadecimal digits. Returns false if there are fewer, or if all are 0. */
static bool take_hex (const char *text, char *buf, size_t len)
{
    if (strspn (text, HEX) < len || strspn (text, "0") >= len)
        return false;
    memcpy (buf, text, len);
    buf[len] = '\0';
    return true;
}

/* Read "VV-TRACE-SPAN-FF", which a later version may extend by "-...". If it is malformed, make up a trace id and leave
 * the parent span empty.
 */
static void read_wish (const char *text, struct trace_wish *wish)
{
    size_t len = text ? strlen (text) : 0;

    *wish = (struct trace_wish){ "", "" };
    if (len < TRACE_PARENT_SIZE - 1 || (len >= TRACE_PARENT_SIZE && text[TRACE_PARENT_SIZE - 1] != '-')
        || strncmp (text, "ff", 2) == 0 || strspn (text, HEX) != 2 || text[2] != '-' || text[35] != '-'
        || text[52] != '-' || !take_hex (text + 3, wish->trace, TRACE_ID_LEN)
        || !take_hex (text + 36, wish->parent, TRACE_SPAN_LEN)) {
        make_hex (wish->trace, TRACE_ID_LEN);
        wish->parent[0] = '\0';
    }
}

/* --- the requests ------------------------------------------------------------------------------------- */

static struct traced *find (struct service *sv, const idt_msg_t *msg)
{
    struct traced *t;

    LIST_FOREACH (t, &sv->traces.list, link)
        if (t->msg == msg)
            break;
    return t;
}

static void forget (struct service *sv, struct traced *t)
{
    LIST_REMOVE (t, link);
    sv->traces.count--;
    quota_give (&sv->traces.quota, t->user);
    json_decref (t->above);
    free (t);
}

void service_trace_forget (struct service *sv, const idt_msg_t *msg)
{
    struct traced *t = find (sv, msg);

    if (t)
        forget (sv, t);
}

static enum node_state state_at (struct service *sv, uint64_t now_us)
{
    struct node_status status;

    node_status (sv->node, now_us, &status);
    return status.state;
}

/* Whether a request is served without a trace if no trace can be begun. A broker forwards requests of many users, and
 * has checked the quotas of these users itself.
 */
static bool may_go_without (struct idt_cred user)
{
    return errno == ENOMEM || user.rolemask & (IDT_ROLE_OWNER | IDT_ROLE_BROKER);
}

int service_trace_begin (struct service *sv, const idt_msg_t *msg, const struct trace_wish *wish, uint64_t now_us,
                         idt_error_t *errp)
{
    struct idt_cred user = idt_msg_cred (msg);

    if (quota_take (&sv->traces.quota, user, errp) < 0)
        return may_go_without (user) ? 0 : -1;
    struct traced *t = calloc (1, sizeof (*t));
    if (!t) {
        quota_give (&sv->traces.quota, user);
        return 0;
    }
    t->user = user;
    t->msg = msg;
    t->wish = *wish;
    t->came = state_at (sv, now_us);
    t->came_us = now_us;
    t->came_unix_us = clock_us (CLOCK_REALTIME);
    make_hex (t->span, TRACE_SPAN_LEN);
    LIST_INSERT_HEAD (&sv->traces.list, t, link);
    sv->traces.count++;
    return 1;
}

void service_trace_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct service *sv = arg;
    const char *after = "0", *parent = NULL;
    struct trace_wish wish;
    json_int_t count = 1;
    idt_error_t err;
    fluid_t id = 0;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &err, "{s?I s?s s?s}", "count", &count, "after", &after, "traceparent", &parent) < 0) {
        module_respond_error (h, msg, EPROTO, err.text);
        return;
    }
    if (after[strspn (after, "0123456789")] != '\0' || fluid_parse (after, strlen (after), &id, NULL) < 0)
        module_respond_error (h, msg, EPROTO, "malformed request: after must be an id in decimal, as a string");
    else {
        read_wish (parent, &wish);
        service_ask (sv, msg, count > 0 && count <= UINT32_MAX ? (uint32_t)count : 0, id, &wish);
        struct traced *t = find (sv, msg);
        if (t)
            t->waits = true;
    }
    json_decref (o);
}

/* --- answers ------------------------------------------------------------------------------------------ */

static const char *waited_for (const struct traced *t)
{
    if (!t->waits)
        return "";
    if (t->forwards > 0)
        return t->queued ? "forward" : "";
    if (t->came == NODE_IDLE)
        return "parent";
    return t->came == NODE_ACTIVE || t->came == NODE_SHARING ? "turn" : "lease";
}

static json_t *describe (struct service *sv, const struct traced *t, uint32_t ids, uint64_t now_us)
{
    return json_pack ("{s:I s:s s:s s:s s:o s:I s:I s:s s:I s:I s:I s:I}", "rank", (json_int_t)sv->options.node.rank,
                      "state", node_state_name (state_at (sv, now_us)), "span", t->span, "parent", t->wish.parent,
                      "start_us", wire_number (t->came_unix_us), "took_us", (json_int_t)(now_us - t->came_us), "up_us",
                      (json_int_t)t->up_us, "waited_for", waited_for (t), "forwards", (json_int_t)t->forwards,
                      "combined", (json_int_t)t->combined, "ids", (json_int_t)ids, "ids_from_above",
                      (json_int_t)(t->from_above < ids ? t->from_above
                                                       : ids)); /* ids that arrived too late are not counted */
}

static json_t *pack_runs (const struct id_run *run, size_t nruns)
{
    json_t *runs = json_array ();
    char text[FLUID_TEXT_MAX];

    for (size_t i = 0; i < nruns; i++) {
        fluid_format (run[i].first, FLUID_F58, text, sizeof (text));
        json_add_new (&runs, json_pack ("[s,I]", text, (json_int_t)run[i].n));
    }
    return runs;
}

static uint32_t count_ids (const struct id_run *run, size_t nruns)
{
    uint32_t ids = 0;

    for (size_t i = 0; i < nruns; i++)
        ids += run[i].n;
    return ids;
}

void service_trace_reply (struct service *sv, const idt_msg_t *msg, const struct id_run *run, size_t nruns)
{
    struct traced *t = find (sv, msg);
    json_t *hops = json_array ();

    if (t) {
        json_add_new (&hops, describe (sv, t, count_ids (run, nruns), service_now_us (sv)));
        json_array_extend (hops, t->above);
    }
    module_respond_object (sv->h, msg,
                           json_pack ("{s:o s:s s:o}", "runs", pack_runs (run, nruns), "trace_id",
                                      t ? t->wish.trace : "", "trace", hops));
    if (t)
        forget (sv, t);
}

/* --- to the parent ------------------------------------------------------------------------------------ */

void service_goes_up_cb (void *arg, void *cookie, uint32_t tag, uint32_t requests, uint32_t ids)
{
    struct service *sv = arg;
    struct traced *t = find (sv, cookie);
    uint64_t now_us;

    if (!t)
        return;
    now_us = clock_us (CLOCK_BOOTTIME);
    if (t->forwards++ == 0)
        t->queued = t->waits;
    t->combined = requests > t->combined ? requests : t->combined;
    t->sent_us = now_us;
    t->tag = tag;
    t->asked = ids;
    strcpy (t->under, t->span);
}

static struct traced *next_of (struct traced *t, uint32_t tag)
{
    while (t && (t->sent_us == 0 || t->tag != tag))
        t = LIST_NEXT (t, link);
    return t;
}

idt_future_t *service_trace_up (struct service *sv, uint32_t tag, uint32_t count, fluid_t after)
{
    struct traced *first = sv->traces.refused ? NULL : next_of (LIST_FIRST (&sv->traces.list), tag);
    char parent[TRACE_PARENT_SIZE], text[24];

    if (!first)
        return errset_null (ENOENT);
    for (struct traced *t = first; t; t = next_of (LIST_NEXT (t, link), tag))
        strcpy (t->under, first->span);
    snprintf (parent, sizeof (parent), "00-%s-%s-01", first->wish.trace, first->span);
    snprintf (text, sizeof (text), "%ju", (uintmax_t)after);
    return idt_rpc_pack (sv->h, "fluid.trace", IDT_NODEID_UPSTREAM, 0, "{s:I s:s s:s}", "count", (json_int_t)count,
                         "after", text, "traceparent", parent);
}

/* Copy the hops of the forward's answer to 't'. The first hop gets the span of 't' as its parent. */
static void add_above (struct traced *t, const json_t *hops)
{
    size_t i;
    json_t *hop;

    if (!t->above)
        t->above = json_array ();
    json_array_foreach (hops, i, hop) {
        const char *parent = json_string_value (json_object_get (hop, "parent"));
        json_t *own = json_array_size (t->above) < TRACE_HOPS - 1 ? json_copy (hop) : NULL;

        if (own && parent && strcmp (parent, t->under) == 0)
            json_object_set_new (own, "parent", json_string (t->span));
        if (own)
            json_array_append_new (t->above, own);
    }
}

/* Forward 'tag' has ended: with ids, or without ('came' is false). */
static void ended (struct service *sv, uint32_t tag, bool came, const json_t *hops)
{
    uint64_t now_us = clock_us (CLOCK_BOOTTIME);
    struct traced *t = next_of (LIST_FIRST (&sv->traces.list), tag);

    for (; t; t = next_of (LIST_NEXT (t, link), tag)) {
        t->up_us += now_us - t->sent_us;
        t->sent_us = 0;
        t->from_above += came ? t->asked : 0;
        add_above (t, hops);
    }
}

void service_trace_ended (struct service *sv, uint32_t tag, bool came)
{
    ended (sv, tag, came, NULL);
}

/* Read runs from JSON. Returns an array that the caller frees, and its length in '*n'. Returns NULL with errno EPROTO
 * or ENOMEM.
 */
static struct id_run *read_runs (const json_t *runs, size_t *n)
{
    struct id_run *run;
    size_t i;
    json_t *pair;

    if (json_array_size (runs) == 0 || json_array_size (runs) > NODE_MAX_COUNT)
        return errset_null (EPROTO);
    if (!(run = calloc (json_array_size (runs), sizeof (*run))))
        return NULL;
    json_array_foreach (runs, i, pair) {
        const char *text = json_string_value (json_array_get (pair, 0));
        json_int_t ids = json_integer_value (json_array_get (pair, 1));

        if (!text || ids < 1 || ids > FLUID_PER_MS || fluid_parse (text, strlen (text), &run[i].first, NULL) < 0) {
            free (run);
            return errset_null (EPROTO);
        }
        run[i].n = (uint32_t)ids;
    }
    *n = json_array_size (runs);
    return run;
}

static bool are_objects (const json_t *hops)
{
    size_t i;
    json_t *hop;

    json_array_foreach (hops, i, hop)
        if (!json_is_object (hop))
            return false;
    return json_is_array (hops);
}

struct id_run *service_trace_came (struct service *sv, uint32_t tag, idt_future_t *f, size_t *n)
{
    json_t *runs = NULL, *hops = NULL;
    struct id_run *run = NULL;
    int errnum;

    if (idt_rpc_get_unpack (f, "{s:o s:o}", "runs", &runs, "trace", &hops) == 0)
        run = read_runs (runs, n);
    errnum = errno;
    sv->traces.refused |= !run && errnum == ENOSYS;
    ended (sv, tag, run, run && are_objects (hops) ? hops : NULL);
    errno = errnum;
    return run;
}
