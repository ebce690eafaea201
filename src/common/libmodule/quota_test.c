/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* quota_test.c - each user has a limit over all connections, half is left to the owner, and limits.md has the same
 * table
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libmodule/quota.h"
#include "test/tap.h"

#define DOCUMENT SRCDIR "/doc/design/limits.md"

static const struct idt_cred owner = { 100, IDT_ROLE_OWNER | IDT_ROLE_LOCAL }, broker = { 100, IDT_ROLE_BROKER };

static struct idt_cred guest (uint32_t n)
{
    return (struct idt_cred){ 1000 + n, IDT_ROLE_USER };
}

static struct idt_cred member (uint32_t n)
{
    return (struct idt_cred){ 500000 + n, IDT_ROLE_USER | IDT_ROLE_GROUP };
}

/* Take until a refusal. Returns how many a user gets. */
static uint32_t take_all (struct quota *q, struct idt_cred user)
{
    uint32_t n = 0;

    while (n < 100000 && quota_take (q, user, NULL) == 0)
        n++;
    return n;
}

static void test_rule (enum quota_kind kind)
{
    const struct quota_rule *r = quota_rule (kind);
    bool has_all = r->all != QUOTA_NO_LIMIT;
    idt_error_t err = { "" };
    struct quota q;
    uint32_t n, last;

    quota_init (&q, kind);
    ok (take_all (&q, guest (0)) == r->guest && quota_take (&q, guest (0), &err) < 0 && errno == r->errnum
            && strstr (err.text, "user 1000") && strstr (err.text, r->name),
        "%s: a guest may have %u: %s", r->name, r->guest, err.text);
    ok (take_all (&q, member (0)) == r->member, "%s: a member may have %u", r->name, r->member);
    quota_give (&q, guest (0));
    ok (take_all (&q, guest (0)) == 1, "%s: an item that is given back can be taken again", r->name);
    for (n = 1; (last = take_all (&q, guest (n))) > 0; n++)
        ;
    ok (q.others == r->others && quota_take (&q, member (1), &err) < 0 && strstr (err.text, "all users but the owner"),
        "%s: all users except the owner together may have %u: %s", r->name, r->others, err.text);
    ok (has_all ? r->others <= r->all / 2 : true, "%s: all users except the owner together may have at most half",
        r->name);
    ok (quota_take (&q, broker, NULL) == 0 && take_all (&q, owner) == (has_all ? r->all - r->others - 1 : 100000),
        "%s: the owner and the modules of brokers may have what other users cannot have", r->name);
    quota_fini (&q);
    ok (quota_take (&q, guest (7), NULL) == 0, "%s: after quota_fini () the quota is empty", r->name);
    quota_give (&q, guest (7));
    ok (q.total == 0 && q.others == 0 && q.nusers == 0, "%s: a user that holds nothing has no entry", r->name);
    quota_fini (&q);
}

/* The row of limits.md for a rule. */
static void describe (const struct quota_rule *r, char *buf, size_t size)
{
    char all[16] = "-";

    if (r->all != QUOTA_NO_LIMIT)
        snprintf (all, sizeof (all), "%u", r->all);
    snprintf (buf, size, "| %s | %s | %u | %u | %u | %s |", r->name, all, r->others, r->member, r->guest,
              r->errnum == EAGAIN ? "EAGAIN" : "ENOSPC");
}

static void test_document (void)
{
    char line[200], *text = calloc (1, 100000);
    FILE *f = fopen (DOCUMENT, "r");
    size_t rows = 0;

    if (!f || !text || fread (text, 1, 99999, f) == 0)
        bail_out ("cannot read " DOCUMENT);
    fclose (f);
    for (int kind = 0; kind < QUOTA_KINDS; kind++) {
        describe (quota_rule (kind), line, sizeof (line));
        ok (strstr (text, line) != NULL, "the file limits.md has the line: %s", line);
    }
    for (const char *p = text; (p = strstr (p, "| EAGAIN |\n")) || (p = NULL); p++)
        rows++;
    for (const char *p = text; (p = strstr (p, "| ENOSPC |\n")) || (p = NULL); p++)
        rows++;
    ok (rows == QUOTA_KINDS, "the file limits.md has no line of a quota that does not exist");
    free (text);
}

int main (void)
{
    for (int kind = 0; kind < QUOTA_KINDS; kind++)
        test_rule (kind);
    test_document ();
    return done_testing ();
}
