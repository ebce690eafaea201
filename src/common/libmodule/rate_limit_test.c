/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rate_limit_test.c - a guest gets at most the ids that its rate allows; other users have no limit */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmodule/quota.h"
#include "test/tap.h"

#define RATE 1000
#define BLOCK 100

static const struct idt_cred owner = { 0, IDT_ROLE_OWNER }, member = { 1, IDT_ROLE_USER | IDT_ROLE_GROUP };

static int take (struct rate_limit *r, uint32_t userid, uint32_t count, uint64_t now_us)
{
    idt_error_t err;

    return rate_limit_take (r, (struct idt_cred){ userid, IDT_ROLE_USER }, count, now_us, &err);
}

static void test_who (struct rate_limit *r)
{
    idt_error_t err = { "" };
    bool good = true;

    for (int i = 0; i < 10000; i++)
        good = good && rate_limit_take (r, owner, 65536, 1, &err) == 0
               && rate_limit_take (r, member, 65536, 1, &err) == 0;
    ok (good, "the owner and group members have no rate limit");
    ok (rate_limit_take (r, (struct idt_cred){ 2, IDT_ROLE_NONE }, BLOCK + 1, 1, &err) < 0 && errno == EPERM
            && strstr (err.text, "access.guest-block"),
        "users without a role are limited like guests: %s", err.text);
}

/* A request that was refused for another reason uses no ids. */
static void test_give (struct rate_limit *r)
{
    const struct idt_cred guest = { 77, IDT_ROLE_USER };
    bool good = true;

    for (int i = 0; i < 1000; i++) {
        good = good && take (r, 77, BLOCK, 5000000) == 0;
        rate_limit_give (r, guest, BLOCK, 5000000);
    }
    ok (good, "a thousand requests whose ids were given back use no ids of a guest's rate");
    for (int i = 0; i < RATE / BLOCK + 1; i++)
        good = good && take (r, 77, BLOCK, 5000000) == 0;
    ok (good && take (r, 77, BLOCK, 5000000) < 0 && errno == EAGAIN,
        "ids that were given back do not raise a guest's limit");
    rate_limit_give (r, guest, BLOCK, 5000000);
    ok (take (r, 77, BLOCK, 5000000) == 0 && take (r, 77, BLOCK, 5000000) < 0,
        "ids that a guest gave back can be taken again once");
}

/* A user that requests as much as it can, at random times, gets exactly the rate. */
static void test_rate (struct rate_limit *r)
{
    uint64_t now_us = 10000000, from_us = now_us, got = 0, refused = 0;

    srand (1);
    for (int i = 0; i < 200000; i++) {
        uint32_t count = 1 + (uint32_t)rand () % BLOCK;
        if (take (r, 5, count, now_us) == 0)
            got += count;
        else
            refused++;
        if (got > RATE * (1 + (now_us - from_us) / 1000000 + 1) + BLOCK)
            break;
        now_us += (uint64_t)rand () % 1000;
    }
    uint64_t s = (now_us - from_us) / 1000000;
    ok (refused > 0 && got <= RATE * (s + 2) + BLOCK && got >= RATE * s,
        "a guest gets %ju ids in %ju s at a rate of %d a second", (uintmax_t)got, (uintmax_t)s, RATE);
    ok (take (r, 6, BLOCK, now_us) == 0, "each user has its own rate limit");
}

static void test_burst (struct rate_limit *r)
{
    uint64_t now_us = 1000000000;
    uint32_t got = 0;

    while (take (r, 5, BLOCK, now_us) == 0)
        got += BLOCK;
    ok (got == RATE + BLOCK && errno == EAGAIN, "after a pause a guest gets the ids of one second at a time (%u)", got);
    ok (take (r, 5, 1, now_us + 99999) < 0 && take (r, 5, 1, now_us + 100000) == 0,
        "a guest that has used up its ids gets the next one when enough time has passed");
}

static void test_many (struct rate_limit *r)
{
    uint64_t now_us = UINT64_C (2000000000);
    idt_error_t err = { "" };
    uint32_t n = 0;

    while (take (r, 100 + 7 * n, 1, now_us) == 0)
        n++;
    ok (n == RATE_LIMIT_USERS && errno == EAGAIN, "entries for %u guests with used ids are kept at a time", n);
    ok (rate_limit_take (r, owner, 1, now_us, &err) == 0, "a request of the owner needs no entry");
    ok (take (r, 9, 1, now_us + 1000) == 0, "the entry of a guest is free when the time for its ids has passed");
}

int main (void)
{
    struct rate_limit *r = rate_limit_create (RATE, BLOCK);

    test_who (r);
    test_rate (r);
    test_burst (r);
    test_give (r);
    test_many (r);
    rate_limit_destroy (r);
    rate_limit_destroy (NULL);
    return done_testing ();
}
