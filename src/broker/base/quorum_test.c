/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* quorum_test.c - the size of the quorum, and when it is reached */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "broker/base/quorum.h"
#include "test/tap.h"

static void test_parse (void)
{
    static const struct {
        const char *text;
        uint32_t size, need; /* 'need' 0: the text is refused */
    } cases[] = {
        { "1", 1, 1 },           { "20", 20, 20 },
        { "90%", 20, 18 },       { "91%", 20, 19 },
        { "1%", 20, 1 },         { "100%", 1000000, 1000000 },
        { "50%", 3, 2 },         { "21", 20, 0 },
        { "0", 20, 0 },          { "0%", 20, 0 },
        { "101%", 20, 0 },       { "-1", 20, 0 },
        { "", 20, 0 },           { "%", 20, 0 },
        { "%%", 20, 0 },         { "5 %", 20, 0 },
        { "1.5", 20, 0 },        { "all", 20, 0 },
        { "4294967297", 20, 0 }, { "00000000000000000001%", 20, 0 },
    };

    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
        uint32_t need = 0;
        int rc = quorum_parse (cases[i].text, cases[i].size, &need);

        ok (cases[i].need > 0 ? rc == 0 && need == cases[i].need : rc < 0 && errno == EINVAL && need == 0,
            "quorum '%s' of %u brokers is %u, or refused if 0", cases[i].text, cases[i].size, cases[i].need);
    }
}

/* 'own' or 'cluster' NULL: this attribute is not set. */
static int init (struct quorum *q, struct attrs **attrs, const char *own, const char *cluster, idt_error_t *err)
{
    *attrs = attrs_create ();
    if (own)
        attr_give (*attrs, "broker.quorum", own, err);
    if (cluster)
        attr_give_at (*attrs, "cluster.quorum", cluster, "conf:7", err);
    return quorum_init (q, *attrs, 20, err);
}

static void test_attributes (void)
{
    struct attrs *attrs;
    struct quorum q;
    idt_error_t err;

    ok (init (&q, &attrs, NULL, NULL, &err) == 0 && q.need == 20 && !q.is_given && q.warn_s == 0.,
        "the quorum is all brokers unless an attribute is set");
    attrs_destroy (attrs);
    ok (init (&q, &attrs, NULL, "90%", &err) == 0 && q.need == 18 && q.is_given
            && !strcmp (attr_get (attrs, "broker.quorum", NULL), "90%"),
        "cluster.quorum sets the quorum");
    ok (attr_set (attrs, "broker.quorum", "5", &err) == 0 && q.need == 5, "cluster.quorum may be changed");
    ok (attr_set (attrs, "broker.quorum", "21", &err) < 0 && strstr (err.text, "from 1 to 20") && q.need == 5,
        "a quorum above the size of the instance is refused: %s", err.text);
    attrs_destroy (attrs);
    ok (init (&q, &attrs, NULL, "21", &err) < 0 && errno == EINVAL
            && strstr (err.text, "conf:7: attribute cluster.quorum=21: must be a number of ranks from 1 to 20"),
        "a quorum above the size that a file sets is refused with the line of the file: %s", err.text);
    attrs_destroy (attrs);
    ok (init (&q, &attrs, "3", "4", &err) < 0 && errno == EINVAL && strstr (err.text, "set only one of them"),
        "two attributes for the quorum are refused: %s", err.text);
    attrs_destroy (attrs);
}

static void test_take (void)
{
    struct quorum q = { .size = 20, .need = 18 };

    ok (!quorum_take (&q, 17, false) && quorum_take (&q, 18, false) && q.is_reached,
        "a quorum of 18 brokers is reached when 18 brokers have joined");
    ok (!quorum_take (&q, 1, false) && q.is_reached && !quorum_take (&q, 20, true),
        "the quorum is reported as reached once, even if brokers leave later");
    q = (struct quorum){ .size = 20, .need = 20 };
    ok (!quorum_take (&q, 20, false) && quorum_take (&q, 20, true),
        "a quorum of all brokers is reached when each broker has joined at its own place in the tree");
    q = (struct quorum){ .size = 20, .need = 18 };
    q.need = 2;
    ok (quorum_take (&q, 2, false), "the quorum may be lowered before it is reached");
    q = (struct quorum){ .size = 1, .need = 1 };
    ok (quorum_take (&q, 1, true), "in an instance of one broker the quorum is reached by that broker");
}

int main (void)
{
    test_parse ();
    test_attributes ();
    test_take ();
    return done_testing ();
}
