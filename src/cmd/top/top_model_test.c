/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

#include <string.h>

#include "cmd/top/top_model.h"
#include "test/tap.h"

/* Return the shown ranks, in the order in which they are shown. */
static const char *shown (const struct top_model *b)
{
    static char text[256];
    size_t n = 0;

    text[0] = '\0';
    for (size_t i = 0; i < b->nshown; i++)
        n += snprintf (text + n, sizeof (text) - n, "%s%u", i > 0 ? " " : "", b->shown[i]);
    return text;
}

static bool shows (const struct top_model *b, const char *want)
{
    if (strcmp (shown (b), want) == 0)
        return true;
    diag ("%s is shown, not %s", shown (b), want);
    return false;
}

/* Add six ranks: rank 0 has the children 1 and 2, rank 1 has 3 and 4, rank 2 has 5. */
static void fill (struct top_model *b)
{
    top_model_begin (b, 0);
    top_model_add (b, 0, 0, "degraded");
    top_model_add (b, 1, 0, "full");
    top_model_add (b, 2, 0, "partial");
    top_model_add (b, 3, 1, "full");
    top_model_add (b, 4, 1, "full");
    top_model_add (b, 5, 2, "lost");
    top_model_end (b);
}

static void count (struct top_model *b, uint32_t rank, long ids, double now_s)
{
    json_t *o = json_pack ("{s:I s:I}", "ids", (json_int_t)ids, "requests", (json_int_t)ids / 2);

    top_model_take_stats (top_model_row (b, rank), o, now_s);
    json_decref (o);
}

static void lease (struct top_model *b, uint32_t rank, const char *now, const char *end)
{
    json_t *o = json_pack ("{s:s s:i s:s s:[ss]}", "state", "active", "served_by", (int)rank, "timestamp_ms", now,
                           "lease", "0", end);

    top_model_take_info (top_model_row (b, rank), o);
    json_decref (o);
}

static void set_sort (struct top_model *b, enum top_model_sort sort)
{
    b->sort = sort;
    top_model_arrange (b);
}

static void test_order (void)
{
    struct top_model b;

    top_model_init (&b);
    fill (&b);
    ok (shows (&b, "0 1 3 4 2 5"), "the tree view shows each rank before the ranks below it");
    ok (top_model_row (&b, 5)->depth == 2 && top_model_row (&b, 0)->depth == 0,
        "each row of the tree view has its depth");
    set_sort (&b, SORT_STATUS);
    ok (shows (&b, "5 0 2 1 3 4"),
        "the order by status shows the worst status first, and ranks with equal status by number");
    for (uint32_t rank = 0; rank < 5; rank++)
        count (&b, rank, 0, 1);
    count (&b, 3, 100, 2);
    count (&b, 1, 300, 3);
    set_sort (&b, SORT_IDS);
    ok (shows (&b, "1 3 0 2 4 5"), "the order by ids a second shows the rank with the largest rate first");
    ok (top_model_row (&b, 1)->ids_s == 150 && top_model_row (&b, 3)->requests_s == 50 && top_model_ids_s (&b) == 250,
        "the rate of a rank is computed since the previous round");
    count (&b, 1, 5, 4);
    ok (top_model_row (&b, 1)->ids_s == 0, "a counter that is lower than in the previous round gives no rate");
    lease (&b, 2, "1000", "61000");
    lease (&b, 4, "1000", "31000");
    lease (&b, 1, "50000", "40000");
    set_sort (&b, SORT_LEASE);
    ok (shows (&b, "1 4 2 0 3 5"),
        "the order by lease shows the rank whose lease ends first, and ranks without a lease last");
    ok (top_model_row (&b, 1)->lease_ms == 0 && top_model_row (&b, 2)->lease_ms == 60000
            && top_model_row (&b, 0)->lease_ms < 0,
        "the time left of a lease is never below 0");
    b.reverse = true;
    set_sort (&b, SORT_RANK);
    ok (shows (&b, "5 4 3 2 1 0"), "each order can be reversed");
    top_model_fini (&b);
}

static void test_filter (void)
{
    struct top_model b;

    top_model_init (&b);
    fill (&b);
    strcpy (b.filter, "FULL");
    top_model_arrange (&b);
    ok (shows (&b, "1 3 4"), "a filter matches the states of ranks, in any letter case");
    strcpy (b.filter, "5");
    top_model_arrange (&b);
    ok (shows (&b, "5"), "a filter matches a rank by its number");
    strcpy (b.filter, "nowhere");
    top_model_arrange (&b);
    ok (shows (&b, "") && top_model_ids_s (&b) == 0, "a filter that matches no rank is accepted");
    top_model_fini (&b);
}

static void test_rounds (void)
{
    struct top_model b;

    top_model_init (&b);
    fill (&b);
    count (&b, 1, 7, 1);
    top_model_begin (&b, 1);
    top_model_add (&b, 1, 1, "full");
    top_model_add (&b, 4, 1, "full");
    top_model_end (&b);
    ok (shows (&b, "1 4") && top_model_row (&b, 1)->ids == 7 && !top_model_row (&b, 3),
        "a rank that is missing in a round is removed, and the other ranks stay");
    top_model_begin (&b, 0);
    top_model_add (&b, 0, 0, "full");
    top_model_add (&b, 1, 0, "full");
    top_model_add (&b, 0, 1, "full"); /* brokers may report such cycles while the tree changes */
    top_model_add (&b, 1, 0, "lost");
    top_model_end (&b);
    ok (shows (&b, "0 1") && strcmp (top_model_row (&b, 1)->status, "lost") == 0,
        "if reported parents form a circle, the walk upward ends at the root");
    top_model_begin (&b, 0);
    size_t taken = 0;
    for (uint32_t rank = 0; rank < TOP_MODEL_RANKS_MAX + 10; rank++)
        taken += top_model_add (&b, rank, 0, "full") != NULL;
    top_model_end (&b);
    ok (taken == TOP_MODEL_RANKS_MAX && b.nshown == TOP_MODEL_RANKS_MAX && b.left_out == 10,
        "ranks above the limit of the view are left out, and counted");
    top_model_fini (&b);
}

static void test_keys (void)
{
    struct top_model b;
    struct view v = { .board = &b, .lines = 2 };

    top_model_init (&b);
    fill (&b);
    ok (view_key (&v, VIEW_DOWN) == VIEW_DRAW && v.selected == 1 && view_place (&v) == 1 && v.first == 0,
        "the down key selects the next rank");
    view_key (&v, VIEW_END);
    ok (v.selected == 5 && view_place (&v) == 5 && v.first == 4, "selecting a rank below the last line scrolls");
    view_key (&v, VIEW_UP);
    view_key (&v, VIEW_PAGE_UP);
    ok (v.selected == 3 && view_place (&v) == 2 && v.first == 2,
        "the page keys move by as many ranks as there are lines");
    view_key (&v, 's');
    ok (b.sort == SORT_RANK && v.selected == 3 && view_place (&v) == 3,
        "the selected rank stays selected when the order changes");
    view_key (&v, 'S');
    view_key (&v, 'S');
    ok (b.sort == SORT_REQUESTS, "after the last order, the key for the order selects the first");
    ok (view_key (&v, VIEW_ENTER) == VIEW_ASK && v.root == 3 && view_key (&v, VIEW_ENTER) == VIEW_NOTHING,
        "Enter selects a subtree, and requests the subtree once");
    ok (view_key (&v, 'u') == VIEW_ASK && v.root == 0, "key u selects all ranks");
    view_key (&v, '/');
    view_key (&v, 'q');
    ok (v.typing && strcmp (b.filter, "q") == 0 && b.nshown == 0, "after key / further keys are added to the filter");
    ok (view_key (&v, VIEW_DOWN) == VIEW_NOTHING && view_place (&v) == 0, "if no rank is shown, no rank is selected");
    view_key (&v, VIEW_BACK);
    ok (b.filter[0] == '\0' && b.nshown == 6 && view_key (&v, VIEW_BACK) == VIEW_DRAW,
        "backspace removes the last character of the filter");
    for (int i = 0; i < 2 * TOP_MODEL_TEXT_MAX; i++)
        view_key (&v, 'x');
    ok (strlen (b.filter) == TOP_MODEL_TEXT_MAX - 1, "the length of a filter is limited");
    view_key (&v, VIEW_ESCAPE);
    ok (!v.typing && b.filter[0] == '\0' && view_key (&v, 'q') == VIEW_QUIT,
        "Escape clears the filter, and key q quits");
    top_model_fini (&b);
}

int main (void)
{
    test_order ();
    test_filter ();
    test_rounds ();
    test_keys ();
    return done_testing ();
}
