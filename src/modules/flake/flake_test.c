/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flake_test.c - which claims the module of rank 0 accepts (the test acts as its broker), and how answers are split */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <idtree/idtree.h>

#include "libidtree/transport.h"
#include "test/tap.h"
#include "modules/flake/answer.h"
#include "modules/flake/naming.h"

#define BELOW_UUID "11111111-0000-4000-8000-000000000000"
#define BELOW(rank) ((rank) == 1 || (rank) == 3) /* ranks on that side of rank 0 */

struct rig {
    idt_t *h;
    void *ctx;
    const idt_msg_t *answer; /* the last one */
};

static int rig_send (void *impl, const idt_msg_t *msg)
{
    struct rig *rig = impl;

    if (idt_msg_type (msg) == IDT_MSGTYPE_RESPONSE) {
        idt_msg_unref (rig->answer);
        rig->answer = idt_msg_ref (msg);
    }
    return 0;
}

static const char *rig_attr_get (void *impl, const char *name)
{
    if (strcmp (name, "rank") == 0)
        return "0";
    errno = ENOENT;
    return NULL;
}

static const char *rig_attr_define (void *impl, const char *name, const char *value)
{
    return value;
}

static bool rig_covers (void *impl, const idt_msg_t *request, uint32_t rank)
{
    const char *from = idt_msg_route_newest (request);

    return from && strcmp (from, BELOW_UUID) == 0 && BELOW (rank);
}

static void rig_log (void *impl, int level, const char *name, const char *text)
{
}

static void rig_destroy (void *impl)
{
}

static const struct idt_transport transport = {
    .send = rig_send,
    .attr_get = rig_attr_get,
    .attr_define = rig_attr_define,
    .overlay_covers = rig_covers,
    .log = rig_log,
    .destroy = rig_destroy,
};

static void rig_init (struct rig *rig)
{
    idt_error_t err;

    *rig = (struct rig){ 0 };
    if (!(rig->h = idt_handle_create (&transport, rig)) || !idt_get_reactor (rig->h)
        || idt_handle_set_module (rig->h, "flake") < 0)
        bail_out ("cannot create a handle");
    if (idt_module.init (rig->h, 0, NULL, &rig->ctx, &err) < 0)
        bail_out (err.text);
}

static void rig_fini (struct rig *rig)
{
    idt_module.fini (rig->h, rig->ctx);
    idt_msg_unref (rig->answer);
    idt_close (rig->h);
}

/* Send the claim of a rank for its own number, which needs no time, from the broker below rank 0. Returns the errno of
 * the answer, or -1 if no answer was sent.
 */
static int claim (struct rig *rig, uint32_t rank, uint32_t roles)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);
    char payload[128];

    snprintf (payload, sizeof (payload), "{\"fingerprint\":%u,\"node\":\"a\",\"rank\":%u}", (unsigned)naming_own (rank),
              (unsigned)rank);
    idt_msg_set_topic (msg, "flake.claim");
    idt_msg_set_string (msg, payload);
    idt_msg_set_matchtag (msg, 1);
    idt_msg_set_cred (msg, (struct idt_cred){ 0, roles });
    idt_msg_route_clear (msg);
    idt_msg_route_push (msg, BELOW_UUID);
    idt_msg_unref (rig->answer);
    rig->answer = NULL;
    idt_handle_dispatch (rig->h, msg);
    idt_msg_unref (msg);
    return rig->answer ? (int)idt_msg_errnum (rig->answer) : -1;
}

static void test_claims (void)
{
    const uint32_t broker = IDT_ROLE_OWNER | IDT_ROLE_BROKER;
    struct rig rig;
    int good = 0;

    rig_init (&rig);
    for (uint32_t rank = 0; rank < 7; rank++)
        good += claim (&rig, rank, broker) == (BELOW (rank) ? 0 : EPERM);
    ok (good == 7, "a broker can claim a name for itself and for ranks below it only");
    bool refused = claim (&rig, 2, broker) == EPERM;
    ok (refused && strstr (idt_msg_string (rig.answer), "must be the rank of the requesting broker"),
        "the refusal of a claim has the reason: %s", idt_msg_string (rig.answer));
    ok (claim (&rig, 1, IDT_ROLE_OWNER) == EPERM && claim (&rig, 1, IDT_ROLE_ALL) == EPERM,
        "a client cannot claim a name");
    rig_fini (&rig);
}

static bool takes (struct answer_ids *ids, uint32_t first, uint32_t n, const char *want)
{
    char *text = answer_take (ids, first, n);
    bool good = text && strcmp (text, want) == 0;

    free (text);
    return good;
}

static void test_answers (void)
{
    static const char *bad[] = { NULL,
                                 "",
                                 "{}",
                                 "{\"ids\":[",
                                 "{\"ids\":[]}",
                                 "{\"ids\":[\"a\",\"b\",\"c\"]}",
                                 "{\"ids\":[\"a\"]}",
                                 "{\"ids\":[\"a\",\"b\"]",
                                 "{\"ids\":[\"a\",\"b\"]} ",
                                 "{\"ids\":[\"a\",\"b\",]}",
                                 "{\"ids\":[\"a\"\"b\"]}",
                                 "{\"ids\":[\"a\",\"\"]}",
                                 "{\"ids\":[\"a\",\"\\\"\"]}",
                                 "{\"ids\":[\"a\",b]}",
                                 "{\"ids\":[\"a\",\"b" };
    struct answer_ids ids;
    size_t taken = 0;

    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++)
        taken += answer_read (&ids, bad[i], 2);
    ok (taken == 0, "a text that is not a response of two ids is refused");
    ok (answer_read (&ids, "{\"ids\":[\"a\",\"bb\",\"c\",\"d\",\"ee\"]}", 5),
        "the text of a response of five ids is read");
    ok (takes (&ids, 0, 1, "{\"ids\":[\"a\"]}") && takes (&ids, 2, 2, "{\"ids\":[\"c\",\"d\"]}")
            && takes (&ids, 4, 1, "{\"ids\":[\"ee\"]}"),
        "a response of five ids is split into parts, and some of its ids may be skipped");
    answer_read (&ids, "{\"ids\":[\"a\",\"bb\"]}", 2);
    ok (takes (&ids, 0, 2, "{\"ids\":[\"a\",\"bb\"]}"), "a part of a response may be the whole response");
}

int main (void)
{
    test_claims ();
    test_answers ();
    return done_testing ();
}
