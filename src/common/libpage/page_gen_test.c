/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* page_gen_test.c - a broker's generator: without a page like a fluid_gen, with a page beside clients */
#include <errno.h>
#include <string.h>

#include "libpage/page_gen.h"
#include "test/tap.h"

#define GENERATOR 4711
#define OPS 2000000
#define END_MS (FLUID_TIMESTAMP_MAX + 1)

static uint64_t rng_state = 1;

static uint32_t rng (uint32_t below)
{
    rng_state = rng_state * 6364136223846793005 + 1442695040888963407;
    return (uint32_t)(rng_state >> 33) % below;
}

/* --- without a page ---------------------------------------------------------------------------- */

/* One random operation on both generators. Returns whether both had the same result. */
static bool same_op (struct page_gen *g, struct fluid_gen *r)
{
    uint64_t ms = 100 + rng (40), hi_ms = ms + rng (20), granules = UINT64_MAX;
    fluid_t a = 0, b = 0;

    switch (rng (8)) {
    case 0:
        return page_gen_set_range (g, ms, hi_ms) == fluid_gen_set_range (r, ms, hi_ms);
    case 1:
        page_gen_advance (g, ms);
        fluid_gen_advance (r, ms);
        break;
    case 2:
        fluid_join (&(struct fluid_fields){ ms, GENERATOR - 1 + rng (3), rng (FLUID_PER_MS) }, &a);
        page_gen_follow (g, a);
        fluid_gen_follow (r, a);
        break;
    case 3:
        granules = (uint64_t)rng (UINT32_MAX) << 32 | rng (UINT32_MAX);
        break;
    }
    uint32_t want = rng (600);
    errno = 0;
    int i = page_gen_reserve_in (g, ms, granules, want, &a), i_errno = errno;
    errno = 0;
    int j = fluid_gen_reserve_in (r, ms, granules, want, &b);
    return i == j && i_errno == errno && (i < 0 || a == b);
}

static void test_alone (void)
{
    struct page_gen g;
    struct fluid_gen r;
    bool same = true;

    for (int i = 0; i < OPS && same; i++) {
        if (i % 200 == 0) {
            page_gen_init (&g, GENERATOR);
            fluid_gen_init (&r, &(struct fluid_gen_config){ .generator = GENERATOR });
        }
        same = same_op (&g, &r);
    }
    ok (same, "without a page a page_gen makes the same ids as a fluid_gen, in %d random operations", OPS);
    ok (page_gen_set_range (&g, 2, 1) < 0 && errno == EINVAL, "a range that ends before it begins is refused");
    ok (page_gen_set_range (&g, 0, FLUID_TIMESTAMP_MAX + 2) < 0 && errno == EOVERFLOW,
        "a range that ends after 2^40 is refused");
}

/* --- with a page -------------------------------------------------------------------------------- */

struct shared {
    struct page_gen gen;
    struct page page;
    uint64_t clock_ms;     /* the clients' clock */
    struct word meanwhile; /* ms > 0: a client writes it while the clock is read */
};

static void share (struct shared *s)
{
    page_gen_init (&s->gen, GENERATOR);
    page_gen_set_range (&s->gen, 100, 200);
    page_gen_advance (&s->gen, 100);
    page_gen_share (&s->gen, &s->page, &s->page, "", 12345);
    page_gen_set_terms (&s->gen, &(struct page_terms){ .hi_ms = 200, .until_us = UINT64_MAX });
}

static uint64_t limit_cb (void *arg)
{
    struct shared *s = arg;

    if (s->meanwhile.ms > 0)
        atomic_store (&s->page.word, word_pack (s->meanwhile));
    s->meanwhile.ms = 0;
    return s->clock_ms;
}

/* The same, with a clock that shows 'clock_ms'. */
static void share_at (struct shared *s, uint64_t clock_ms)
{
    share (s);
    s->clock_ms = clock_ms;
    s->meanwhile.ms = 0;
    page_gen_set_limit (&s->gen, limit_cb, s);
}

/* Write the word as a client does. */
static void write_word (struct shared *s, struct word w)
{
    atomic_store (&s->page.word, word_pack (w));
}

static void test_word (void)
{
    bool same = true;

    for (int i = 0; i < 100000 && same; i++) {
        struct word w = { rng (UINT32_MAX) * (uint64_t)256, rng (1025), rng (65), rng (2) },
                    v = word_unpack (word_pack (w));

        same = w.ms == v.ms && w.used == v.used && w.first == v.first && w.closed == v.closed;
    }
    ok (same, "a word of a page is read back as it was written");
}

/* Each field at its lowest and highest value, beside the others at theirs: no field changes another. */
static void test_word_ends (void)
{
    const uint64_t ms[] = { 0, 1, FLUID_TIMESTAMP_MAX - 1, FLUID_TIMESTAMP_MAX };
    const uint32_t used[] = { 0, 1, FLUID_PER_MS, WORD_OVER },
                   first[] = { 0, 1, WORD_ALL_GRANTED - 1, WORD_ALL_GRANTED };
    bool same = true;

    for (unsigned i = 0; i < 128; i++) {
        struct word w = { ms[i & 3], used[i >> 2 & 3], first[i >> 4 & 3], i >> 6 & 1 }, v = word_unpack (word_pack (w));

        same = same && w.ms == v.ms && w.used == v.used && w.first == v.first && w.closed == v.closed;
    }
    ok (same, "each field of a word holds its lowest and its highest value, independently of the other fields");
}

/* The first millisecond that a word allows after it was moved to 'ms'; 2^40: none. */
static uint64_t next_after (struct word w, uint64_t ms)
{
    struct word v = word_unpack (word_pack (word_advance (w, ms)));

    return v.used >= FLUID_PER_MS ? v.ms + 1 : v.ms;
}

static void test_advance_ends (void)
{
    const uint64_t at[] = { 0, 1, FLUID_TIMESTAMP_MAX - 1, FLUID_TIMESTAMP_MAX, END_MS, END_MS + 1, UINT64_MAX };
    const uint32_t used[] = { 0, 5, FLUID_PER_MS, WORD_OVER };
    bool never_back = true, far_enough = true;

    for (unsigned i = 0; i < 4 * 4 * 7; i++) {
        struct word w = { at[i % 4], used[i / 4 % 4], WORD_ALL_GRANTED, false };
        uint64_t ms = at[i / 16], was = w.used >= FLUID_PER_MS ? w.ms + 1 : w.ms, next = next_after (w, ms);

        never_back = never_back && next >= was && word_pack (word_advance (w, ms)) >= word_pack (w);
        far_enough = far_enough && next >= (ms < END_MS ? ms : END_MS) && word_advance (w, ms).first == w.first;
    }
    ok (never_back, "a word never goes back, whatever time it is moved to");
    ok (far_enough, "a word that was moved to a time allows no id below that time, up to the end of time and beyond");
}

/* The generator in the last possible millisecond, without or with a page. */
static void test_end_of_time (struct page *page)
{
    const char *how = page ? "with a page" : "alone";
    struct page_gen g;
    struct word w;
    fluid_t a, b;

    page_gen_init (&g, FLUID_GENERATOR_MAX);
    page_gen_set_range (&g, FLUID_TIMESTAMP_MAX - 1, END_MS);
    if (page) {
        page_gen_share (&g, page, page, "", 0);
        page_gen_set_terms (&g, &(struct page_terms){ .hi_ms = END_MS, .until_us = UINT64_MAX });
    }
    ok (page_gen_reserve_in (&g, FLUID_TIMESTAMP_MAX, UINT64_MAX, 10, &a) == 10,
        "%s: ids of the last millisecond are made", how);
    page_gen_advance (&g, END_MS);
    ok (page_gen_reserve_in (&g, FLUID_TIMESTAMP_MAX, UINT64_MAX, 1, &b) < 0 && errno == EAGAIN,
        "%s: no id of the last millisecond is made after the generator was moved to the end of time", how);
    ok (page_gen_look (&g, &w) && page_gen_newest (&g) == a + 9, "%s: the newest id of the generator is known", how);
    page_gen_advance (&g, UINT64_MAX);
    page_gen_follow (&g, UINT64_MAX);
    page_gen_follow (&g, 0);
    page_gen_advance (&g, 0);
    ok (page_gen_look (&g, &w) && page_gen_others (&g) == 0, "%s: the word is valid, and the clients have made no ids",
        how);
    page_gen_close (&g, 0);
    ok (page_gen_reserve_in (&g, FLUID_TIMESTAMP_MAX, UINT64_MAX, 1, &b) < 0 && errno == EAGAIN,
        "%s: a closed generator makes no further id", how);
}

static void test_shared (void)
{
    struct shared s;
    struct word w;
    fluid_t id;

    share (&s);
    ok (page_gen_look (&s.gen, &w) && w.ms == 100 && w.used == 0, "a new page begins at the time of its generator");
    write_word (&s, (struct word){ .ms = 110, .used = 1000 });
    ok (page_gen_reserve_in (&s.gen, 110, UINT64_MAX, 100, &id) == 24 && fluid_split (id).sequence == 1000,
        "the broker makes ids above the ids of the clients");
    ok (page_gen_reserve_in (&s.gen, 110, UINT64_MAX, 1, &id) < 0 && errno == EAGAIN,
        "the broker makes ids up to the last number of the millisecond, and no further");
    ok (page_gen_reserve_in (&s.gen, 109, UINT64_MAX, 1, &id) < 0 && errno == EAGAIN,
        "the broker makes no ids in a millisecond before the last one in which clients made ids");
    fluid_join (&(struct fluid_fields){ 120, GENERATOR + 1, 5 }, &id);
    page_gen_follow (&s.gen, id);
    ok (page_gen_look (&s.gen, &w) && w.ms == 120 && w.used == FLUID_PER_MS,
        "after an id of a higher generator no id is made in the millisecond of that id");
    write_word (&s, (struct word){ .ms = 150, .used = 7 });
    page_gen_close (&s.gen, 0);
    ok (word_unpack (atomic_load (&s.page.word)).closed && atomic_load (&s.page.hi_ms) == 0, "a page can be closed");
    ok (page_gen_look (&s.gen, &w) && w.ms == 150 && w.used == 7 && !w.closed,
        "the broker knows which ids clients have made of a page that was closed");
}

static void test_new_range (void)
{
    struct shared s;
    struct word w;

    share (&s);
    page_gen_set_range (&s.gen, 300, 400);
    page_gen_set_terms (&s.gen, &(struct page_terms){ .hi_ms = 400, .until_us = UINT64_MAX });
    ok (page_gen_look (&s.gen, &w) && w.ms == 300, "no id is made between two ranges");
}

static void test_grants (void)
{
    struct shared s;
    struct word w;

    share (&s);
    page_gen_pause (&s.gen);
    ok (word_unpack (atomic_load (&s.page.word)).first == FLUID_GRANULES,
        "clients make no ids of a page during a pause");
    page_gen_grant (&s.gen, 4);
    ok (page_gen_look (&s.gen, &w) && w.first == 4,
        "after a pause clients make no ids of the granules that were granted to other ranks");
    page_gen_end_grants (&s.gen, 0, 101);
    ok (page_gen_look (&s.gen, &w) && w.first == 4, "a grant does not end before the word has passed its end");
    page_gen_advance (&s.gen, 101);
    page_gen_end_grants (&s.gen, 0, 101);
    ok (page_gen_look (&s.gen, &w) && w.first == 0, "a grant ends when the word has passed its end");
}

/* Ids of clients are counted when the word is read. Ids of the broker, and numbers that it skips, are not. */
static void test_counts (void)
{
    struct shared s;
    fluid_t id;

    share (&s);
    ok (page_gen_others (&s.gen) == 0, "a new page has no ids of clients");
    write_word (&s, (struct word){ .ms = 110, .used = 100 });
    page_gen_reserve_in (&s.gen, 110, UINT64_MAX, 10, &id);
    ok (page_gen_others (&s.gen) == 100 && page_gen_others (&s.gen) == 0,
        "ids that clients made of a page are counted once");
    page_gen_advance (&s.gen, 120);
    page_gen_reserve_in (&s.gen, 121, UINT64_MAX, 10, &id);
    page_gen_pause (&s.gen);
    page_gen_grant (&s.gen, 2);
    page_gen_follow (&s.gen, id + 500);
    ok (page_gen_others (&s.gen) == 0, "ids that the broker makes, grants or skips are not counted");
    atomic_fetch_add (&s.page.passed, UINT64_C (1) << 40);
    ok (page_gen_others (&s.gen) <= 12 * FLUID_PER_MS,
        "a client that writes wrong numbers adds no more ids to the count than the time has");
    atomic_store (&s.page.passed, 0);
    ok (page_gen_others (&s.gen) == 0, "a client that writes wrong numbers cannot lower the count of ids");
    page_gen_close (&s.gen, 0);
    ok (page_gen_others (&s.gen) == 0, "after a page is closed clients make no ids");
}

/* --- clients that write invalid words --------------------------------------------------------------- */

/* The rest of the range reaches up to the end of time. */
static void test_spoilt_at_the_end (void)
{
    struct shared s;
    struct word w;
    fluid_t id;

    share (&s);
    page_gen_set_range (&s.gen, 100, END_MS);
    page_gen_set_terms (&s.gen, &(struct page_terms){ .hi_ms = END_MS, .until_us = UINT64_MAX });
    page_gen_reserve_in (&s.gen, 120, UINT64_MAX, 10, &id);
    write_word (&s, (struct word){ .ms = 119, .used = 1 });
    ok (!page_gen_look (&s.gen, &w), "a word that went back is detected even if the range ends at the end of time");
    ok (page_gen_close (&s.gen, FLUID_TIMESTAMP_MAX) == END_MS
            && page_gen_reserve_in (&s.gen, 120, UINT64_MAX, 1, &id) < 0 && errno == EAGAIN
            && page_gen_reserve_in (&s.gen, FLUID_TIMESTAMP_MAX, UINT64_MAX, 1, &id) < 0 && errno == EAGAIN,
        "after a word went back no earlier id is made again");
}

static void spoil (const char *what, struct word written)
{
    struct shared s;
    struct word w;
    fluid_t id;

    share_at (&s, 150);
    page_gen_reserve_in (&s.gen, 120, UINT64_MAX, 10, &id);
    write_word (&s, written);
    bool seen = !page_gen_look (&s.gen, &w);
    uint64_t end_ms = page_gen_close (&s.gen, 125);
    ok (seen && end_ms == 200 && page_gen_look (&s.gen, &w) && w.ms == 126 && w.used == 0 && w.first == 0,
        "%s is detected, and the broker continues with its own granule up to the end of the range", what);
}

/* Calls each function that moves the word, between two looks. */
static void move (struct page_gen *g, int how)
{
    fluid_t id;

    fluid_join (&(struct fluid_fields){ 130, GENERATOR, 5 }, &id);
    if (how == 0)
        page_gen_advance (g, 130);
    else if (how == 1)
        page_gen_follow (g, id);
    else if (how == 2)
        page_gen_reserve_in (g, 130, UINT64_MAX, 5, &id);
    else if (how == 3)
        page_gen_pause (g);
    else if (how == 4)
        page_gen_grant (g, 3);
    else
        page_gen_end_grants (g, 0, 100);
}

/* A client writes an invalid word between two looks of the broker, and with 'put_right' restores it. */
static void spoil_between (const char *what, struct word written, bool put_right)
{
    int seen = 0, good = 0;

    for (int how = 0; how < 6; how++) {
        struct shared s;
        struct word w;
        fluid_t id;

        share_at (&s, 150);
        page_gen_reserve_in (&s.gen, 120, UINT64_MAX, 10, &id);
        page_gen_grant (&s.gen, written.first);
        page_gen_look (&s.gen, &w);
        write_word (&s, written);
        move (&s.gen, how);
        if (put_right)
            write_word (&s, w);
        seen += !page_gen_look (&s.gen, &w);
        page_gen_close (&s.gen, 135);
        good += page_gen_look (&s.gen, &w) && w.ms == 136 && w.used == 0;
    }
    ok (seen == 6 && good == 6, "%s between two looks is detected and not used%s", what,
        put_right ? ", even if the client restores the word" : "");
}

/* Clients made ids while the broker was stopped. The clock is read after their word, so it is not behind the word. */
static void test_clock_after (void)
{
    int good = 0;

    for (int how = 0; how < 6; how++) {
        struct shared s;
        struct word w;

        share_at (&s, 120);
        page_gen_grant (&s.gen, 2);
        write_word (&s, (struct word){ .ms = 120, .used = 3, .first = 2 });
        page_gen_look (&s.gen, &w);
        write_word (&s, (struct word){ .ms = 129, .used = 3, .first = 2 });
        s.clock_ms = 129;
        move (&s.gen, how);
        good += page_gen_look (&s.gen, &w) && w.ms >= 129;
    }
    ok (good == 6, "CLOCK_AFTER: ids that clients made since the last reading of the clock are valid");
}

/* A client keeps writing. Each word must be above the previous one, so the broker's swaps come to an end. */
static void test_swapped_again (void)
{
    struct shared s;
    struct word w;

    share_at (&s, 140);
    write_word (&s, (struct word){ .ms = 130, .used = 5 });
    s.meanwhile = (struct word){ .ms = 130, .used = 6 };
    page_gen_advance (&s.gen, 135);
    ok (page_gen_look (&s.gen, &w) && w.ms == 135,
        "the generator continues from a word that a client wrote between the generator's look and swap");
    share_at (&s, 140);
    write_word (&s, (struct word){ .ms = 130, .used = 5 });
    s.meanwhile = (struct word){ .ms = 130, .used = 4 };
    page_gen_advance (&s.gen, 135);
    ok (!page_gen_look (&s.gen, &w) && w.ms == 130 && w.used == 5,
        "the generator detects a word that goes back between its look and its swap");
}

/* Clients do not use the broker's own numbers. */
static void test_own_numbers (void)
{
    struct shared s;
    struct word w;
    fluid_t id;

    share (&s);
    write_word (&s, (struct word){ .ms = 110, .used = PAGE_OWN_FIRST });
    ok (page_gen_look (&s.gen, &w) && page_gen_reserve_in (&s.gen, 110, UINT64_MAX, 100, &id) == FLUID_GRANULE
            && page_gen_look (&s.gen, &w),
        "clients may use up their numbers of a millisecond, and the broker its own");
    write_word (&s, (struct word){ .ms = 111, .used = PAGE_OWN_FIRST + 1 });
    ok (!page_gen_look (&s.gen, &w), "a client that uses the broker's own numbers is detected");
}

int main (void)
{
    test_word ();
    test_word_ends ();
    test_advance_ends ();
    test_end_of_time (NULL);
    test_end_of_time (&(struct page){ 0 });
    test_spoilt_at_the_end ();
    test_alone ();
    test_shared ();
    test_new_range ();
    test_grants ();
    test_counts ();
    test_own_numbers ();
    test_clock_after ();
    test_swapped_again ();
    spoil_between ("a word of the past", (struct word){ .ms = 119, .used = 1, .first = 2 }, false);
    spoil_between ("a word of the past", (struct word){ .ms = 119, .used = 1, .first = 2 }, true);
    spoil_between ("a millisecond that begins again", (struct word){ .ms = 120, .used = 0, .first = 2 }, true);
    spoil_between ("a time that no clock shows", (struct word){ .ms = 190, .used = 1, .first = 2 }, false);
    spoil_between ("a time that no clock shows", (struct word){ .ms = 190, .used = 1, .first = 2 }, true);
    spoil ("a word of the past", (struct word){ .ms = 119, .used = 1 });
    spoil ("a word that takes numbers back", (struct word){ .ms = 120, .used = 9 });
    spoil ("a word of a time that no clock has shown", (struct word){ .ms = 151, .used = 1 });
    spoil ("a word beyond the range", (struct word){ .ms = 200, .used = 0 });
    spoil ("more numbers than a millisecond has", (struct word){ .ms = 130, .used = 1025 });
    spoil ("a granule that is not granted", (struct word){ .ms = 130, .used = 5, .first = 3 });
    spoil ("a page that a client closed", (struct word){ .ms = 130, .used = 5, .closed = true });
    spoil ("a page that was wiped", (struct word){ .ms = 0 });
    return done_testing ();
}
