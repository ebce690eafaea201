/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* budget_test.c - accounts follow their rules in random steps */
#include "libutil/queue/budget.h"
#include "test/tap.h"

#define POOL_ITEMS 1000
#define POOL_BYTES 100000
#define MAX_BYTES 500

static uint64_t seed = 88172645463325252U;

static uint64_t random_below (uint64_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % n;
}

static uint64_t charge_until_full (struct budget *a)
{
    uint64_t n = 0;

    while (budget_charge (a, 1, 0) != BUDGET_FULL)
        n++;
    return n;
}

static void test_shares (void)
{
    struct budget_pool pool = { .max_items = 1200, .max_bytes = BUDGET_NO_LIMIT };
    struct budget a[3];
    bool go = true;

    for (int i = 0; i < 3; i++)
        budget_init (&a[i], &pool, 0, 0, BUDGET_NEVER);
    ok (charge_until_full (&a[0]) == 600, "a single greedy account gets half of the pool");
    ok (charge_until_full (&a[1]) == 300, "the second greedy account gets half of the rest");
    budget_release (&a[0], a[0].items, a[0].bytes, 0);
    budget_release (&a[1], a[1].items, a[1].bytes, 0);
    ok (pool.items == 0 && pool.bytes == 0, "items that an account released are free again");
    while (go) {
        go = budget_charge (&a[0], 1, 0) != BUDGET_FULL;
        go = budget_charge (&a[1], 1, 0) != BUDGET_FULL && go;
    }
    ok (a[0].items == 400 && a[1].items == 400, "two greedy accounts get a third each");
    ok (charge_until_full (&a[2]) == 200, "beside two greedy accounts a new account still gets items");
}

static void test_bytes (void)
{
    struct budget_pool pool = { .max_items = BUDGET_NO_LIMIT, .max_bytes = 100 };
    struct budget a, b;

    budget_init (&a, &pool, 0, 0, BUDGET_NEVER);
    budget_init (&b, &pool, 0, 0, BUDGET_NEVER);
    ok (budget_charge (&a, 1000000, 0) == BUDGET_GO,
        "an empty account may take one item larger than the pool, because that item could never be taken otherwise");
    ok (budget_charge (&a, 1, 0) == BUDGET_FULL && budget_charge (&b, 1, 0) == BUDGET_FULL,
        "an item larger than the pool makes the pool full for all accounts");
    budget_release (&a, 1, 1000000, 0);
    ok (budget_charge (&b, 1, 0) == BUDGET_GO, "the pool is free again after a larger item was released");
}

static void test_waiting (void)
{
    struct budget a;
    bool early = false;

    budget_init (&a, NULL, 4, 1000, 50);
    for (int i = 0; i < 3; i++)
        early = early || budget_charge (&a, 10, 7) != BUDGET_GO;
    ok (!early && budget_patience (&a) == BUDGET_NEVER, "an account below its limit does not wait");
    ok (budget_charge (&a, 10, 7) == BUDGET_WAIT && budget_patience (&a) == 57, "an account at its limit waits");
    ok (budget_charge (&a, 10, 8) == BUDGET_WAIT && a.items == 5, "items that arrive while an account waits are "
                                                                  "charged");
    ok (!budget_release (&a, 1, 10, 20) && budget_patience (&a) == 70,
        "each release moves the time at which the valve opens");
    ok (!budget_release (&a, 1, 10, 21) && budget_release (&a, 1, 10, 22),
        "when the use of an account that waits has fallen to half of the limit, the account may continue");
    ok (!budget_release (&a, 1, 10, 23), "a release after the account may continue does not report it again");
    ok (budget_charge (&a, 5000, 24) == BUDGET_WAIT, "the limit of an account applies to bytes, too");
}

static void test_valve (void)
{
    struct budget a;
    int went[4] = { 0 };

    budget_init (&a, NULL, 4, 0, 50);
    for (int i = 0; i < 4; i++) {
        for (went[i] = 1; budget_charge (&a, 1, i * 50) == BUDGET_GO; went[i]++)
            ;
        ok (!budget_open (&a, i * 50 + 49), "the valve of an account is closed before its time");
        ok (budget_open (&a, i * 50 + 50), "the valve of an account opens at its time if there was no release");
    }
    ok (went[0] == 4 && went[1] == 4 && went[2] == 8 && went[3] == 16,
        "the limit of an account doubles each time that its valve opens");
    while (budget_charge (&a, 1, 1000) == BUDGET_GO)
        ;
    while (!budget_release (&a, 1, 1, 1001))
        ;
    ok (a.items == 2 && budget_charge (&a, 1, 1002) == BUDGET_GO && budget_charge (&a, 1, 1002) == BUDGET_WAIT,
        "the first limit of an account applies again after the use fell to half");
    budget_init (&a, NULL, 1, 0, BUDGET_NEVER);
    budget_charge (&a, 1, 5);
    ok (!budget_open (&a, UINT64_MAX), "an account without patience has no valve");
}

/* A plain list holds the charged items; each step checks the rules against it. */
static bool random_steps (void)
{
    static struct {
        int who;
        uint64_t bytes;
    } items[POOL_ITEMS];
    struct budget_pool pool = { .max_items = POOL_ITEMS, .max_bytes = POOL_BYTES };
    struct budget a[8];
    uint64_t count = 0, bytes = 0, n[8] = { 0 };
    bool good = true;

    for (int i = 0; i < 8; i++)
        budget_init (&a[i], &pool, 20 + i * 50, 0, 30);
    for (uint64_t now = 0; good && now < 200000; now++) {
        int who = random_below (8) * random_below (8) / 8;
        uint64_t size = random_below (MAX_BYTES);

        if (random_below (100) < 55) {
            bool free_items = n[who] < POOL_ITEMS - count,
                 free_bytes = bytes < POOL_BYTES && a[who].bytes < POOL_BYTES - bytes;
            bool charged = budget_charge (&a[who], size, now) != BUDGET_FULL;

            good = charged == (free_items && free_bytes);
            if (charged) {
                items[count].who = who;
                items[count++].bytes = size;
                bytes += size;
                n[who]++;
            }
        }
        else if (count > 0) {
            uint64_t i = random_below (count);
            bool waited;

            who = items[i].who;
            size = items[i].bytes;
            items[i] = items[--count];
            bytes -= size;
            n[who]--;
            waited = a[who].waits;
            good = budget_release (&a[who], 1, size, now) == (waited && n[who] <= a[who].max_items / 2);
        }
        if (now % 7 == 0 && a[who].waits)
            good = good && budget_open (&a[who], now) == !a[who].waits;
        good = good && pool.items == count && pool.bytes == bytes && a[who].items == n[who];
    }
    return good;
}

int main (int argc, char *argv[])
{
    test_shares ();
    test_bytes ();
    test_waiting ();
    test_valve ();
    ok (random_steps (), "200,000 random steps agree with a plain list");
    return done_testing ();
}
