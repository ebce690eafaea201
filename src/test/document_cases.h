/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document_cases.h - for tests: what each backend of a document store must do
 *
 * Included by test programs only. They prepare an empty place, and remove it afterwards.
 */
#ifndef TEST_DOCUMENT_CASES_H
#define TEST_DOCUMENT_CASES_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "modules/compressor/root/document_store.h"
#include "test/tap.h"

static idt_error_t error;

/* The content that was read, as text: ID:NAME/UUID@SEQ=FORM followed by the ranges; and NAME:OWNER of each document. */
static char content[16384], owners[4096];

static int document_cb (void *arg, const struct document_store_document *doc, idt_error_t *errp)
{
    size_t n = strlen (content), m = strlen (owners);

    snprintf (content + n, sizeof (content) - n, "%s%lld:%s/%s@%lld=%.*s", n > 0 ? ";" : "", (long long)doc->id,
              doc->name, doc->uuid, (long long)doc->seq, (int)doc->form_size, (const char *)doc->form);
    snprintf (owners + m, sizeof (owners) - m, "%s:%d ", doc->name, (int)doc->owner);
    return 0;
}

static int range_cb (void *arg, int64_t seq, const char *text, idt_error_t *errp)
{
    size_t n = strlen (content);

    snprintf (content + n, sizeof (content) - n, ",%s", text);
    return 0;
}

/* Open a store, and read its content. Returns NULL with errno set and 'error' filled. */
static struct document_store *open_place (const struct module_place *place)
{
    static const struct document_store_reader reader = { document_cb, range_cb };

    content[0] = owners[0] = '\0';
    error.text[0] = '\0';
    struct document_store *st = document_store_create (place, "broker 12345678, process 1 on here", &reader, NULL,
                                                       &error);
    document_store_open (st);
    if (document_store_wait (st, &error) > 0)
        return st;
    document_store_close (st);
    return NULL;
}

static struct document_store *reopen (struct document_store *st, const struct module_place *place)
{
    document_store_close (st);
    return open_place (place);
}

static int commit (struct document_store *st, const struct document_store_change *changes, size_t n)
{
    document_store_commit (st, changes, n);
    return document_store_wait (st, &error);
}

static const char *ab[] = { "a", "b" }, *cd[] = { "c", "d" }, *ef[] = { "e", "f" };

static const struct document_store_change made[] = {
    { .document = { 1, "one", "U1", 0, "x", 1, 1001 }, .first = 1, .ranges = ab, .nranges = 2 },
    { .document = { 2, "two", "U2", 0, "y", 1, IDT_USERID_UNKNOWN } },
};

static bool reads (struct document_store *st, const char *wanted)
{
    return st && strcmp (content, wanted) == 0;
}

/* Documents and ranges are stored. At the end range 1 of a document is missing. */
static void cases_content (const struct module_place *place)
{
    struct document_store *st = open_place (place);

    if (!ok (reads (st, ""), "a new store has no documents: %s", error.text))
        bail_out ("the place of the test cannot be used");
    ok (document_store_result (st, &error) == 0, "before the first commit a store has no result");
    ok (commit (st, NULL, 0) == 1, "a commit without changes succeeds");
    ok (commit (st, made, 2) == 1, "a store accepts documents with their ranges: %s", error.text);
    const struct document_store_change later = { { .id = 1 }, 3, cd, 2, false, NULL, NULL };
    ok (commit (st, &later, 1) == 1, "a store accepts further ranges of a stored document");
    st = reopen (st, place);
    ok (reads (st, "1:one/U1@0=x,a,b,c,d;2:two/U2@0=y"), "a reopened store returns documents and ranges: %s", content);
    const struct document_store_change form = { { 1, "one", "U1", 5, "form", 4, 1001 }, 5, ef, 2, false, NULL, NULL };
    ok (commit (st, &form, 1) == 1, "a stored form replaces the ranges in the form");
    st = reopen (st, place);
    ok (reads (st, "1:one/U1@5=form,f;2:two/U2@0=y"), "ranges after a stored form are kept: %s", content);
    const struct document_store_change gap = { { .id = 2 }, 2, ab, 2, false, NULL, NULL };
    commit (st, &gap, 1);
    st = reopen (st, place);
    ok (!st && errno == EBADMSG && strstr (error.text, "range 1 of ") && strstr (error.text, "two is missing"),
        "a store that lacks a range is refused: %s", error.text);
}

/* Documents end and are renamed. */
static void cases_ends (const struct module_place *place)
{
    struct document_store *st = open_place (place);

    ok (commit (st, made, 2) == 1 && (st = reopen (st, place)) && strcmp (owners, "one:1001 two:-1 ") == 0,
        "a store keeps the owner of a document: %s", owners);
    const struct document_store_change renamed = { { .id = 1 }, 3, cd, 2, false, "uno", NULL };
    ok (commit (st, &renamed, 1) == 1 && (st = reopen (st, place)) && reads (st, "1:uno/U1@0=x,a,b,c,d;2:two/U2@0=y")
            && strcmp (owners, "uno:1001 two:-1 ") == 0,
        "a renamed document keeps its content and owner: %s", content);
    const struct document_store_change both = {
        { 1, "uno", "U1", 4, "z", 1, IDT_USERID_UNKNOWN }, 5, ef, 2, false, "ein", NULL
    };
    ok (commit (st, &both, 1) == 1 && (st = reopen (st, place)) && reads (st, "1:ein/U1@4=z,e,f;2:two/U2@0=y")
            && strcmp (owners, "ein:1001 two:-1 ") == 0,
        "a document can get a form, ranges and a name in one commit, and keeps its owner: %s", content);
    const struct document_store_change gone[] = {
        { .document = { .id = 1 }, .deleted = true },
        { { 3, "tri", "U4", 0, "t", 1, 7 }, 1, ab, 1, false, NULL, NULL },
        { { .id = 2 }, 1, cd, 1, false, NULL, NULL },
    };
    ok (commit (st, gone, 3) == 1 && (st = reopen (st, place)) && reads (st, "2:two/U2@0=y,c;3:tri/U4@0=t,a"),
        "a deleted document leaves nothing in the store, beside other changes: %s", content);
    const struct document_store_change anew = { .document = { 1, "ein", "U3", 0, "z", 1, IDT_USERID_UNKNOWN } };
    ok (commit (st, &anew, 1) == 1 && (st = reopen (st, place))
            && reads (st, "1:ein/U3@0=z;2:two/U2@0=y,c;3:tri/U4@0=t,a") && strcmp (owners, "ein:-1 two:-1 tri:7 ") == 0,
        "a new document with the name of a deleted one gets nothing of the deleted one: %s", content);
    document_store_close (st);
}

#endif /* TEST_DOCUMENT_CASES_H */
