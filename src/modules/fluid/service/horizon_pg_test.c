/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* horizon_pg_test.c - the horizon in a real PostgreSQL server: it is read back, a root that was replaced cannot raise
 * it, and a write whose outcome is unknown is neither done nor failed, however often statements and answers are lost
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "libpg/pgstate.h"
#include "modules/fluid/service/horizon_store.h"
#include "test/pg_proxy.h"
#include "test/pg_server.h"
#include "test/tap.h"

#define UUID "11111111-2222-4333-8444-555555555555"
#define EPOCH INT64_C (1767225600000)
#define PEAK "SELECT peak_ms FROM idtree.horizon"

#define RAISE "horizon_ms"
#define HORIZON "SELECT horizon_ms FROM idtree.horizon"

static struct pg_server *server;
static struct pg_proxy *proxy;
static char proxied[128];

static struct horizon_store *open_at (const char *store, uint64_t term, struct horizon_store_content *content,
                                      idt_error_t *err)
{
    const struct module_place place = { .store = store, .uuid = UUID, .term = term };

    *err = (idt_error_t){ "" };
    return horizon_store_open (&place, "a test", content, err);
}

static struct horizon_store *open_term (uint64_t term, struct horizon_store_content *content, idt_error_t *err)
{
    return open_at (pg_server_conninfo (server), term, content, err);
}

static struct lease_record record (uint64_t horizon_ms)
{
    return (struct lease_record){ .horizon_ms = horizon_ms,
                                  .watermark_ms = horizon_ms / 2,
                                  .settle_ms = 75,
                                  .ahead_ms = horizon_ms / 3,
                                  .peak_ms = horizon_ms + 1 };
}

static bool same (const struct lease_record *a, const struct lease_record *b)
{
    return a->horizon_ms == b->horizon_ms && a->watermark_ms == b->watermark_ms && a->settle_ms == b->settle_ms
           && a->ahead_ms == b->ahead_ms && a->peak_ms == b->peak_ms;
}

static void begin (struct horizon_store *st, uint64_t horizon_ms)
{
    struct lease_record r = record (horizon_ms);

    horizon_store_write (st, &r);
}

static int result (struct horizon_store *st, idt_error_t *err)
{
    struct pollfd pfd = { .fd = horizon_store_fd (st), .events = POLLIN };
    uint64_t stored_ms;
    int rc;

    wait_until ((rc = horizon_store_result (st, &stored_ms, err)) != 0) poll (&pfd, 1, TAP_WAIT_S * 1000);
    return rc;
}

static bool store (struct horizon_store *st, uint64_t horizon_ms, idt_error_t *err)
{
    begin (st, horizon_ms);
    return result (st, err) > 0;
}

static void make_state (void)
{
    const struct pg_config config = { pg_server_conninfo (server), "a test", 10000 };
    const struct pgstate state = { .uuid = UUID, .name = "test", .has_epoch = true, .epoch_ms = EPOCH };
    idt_error_t err = { "" };
    struct pg *pg = pg_open (&config, &err);

    if (!pg || pgstate_make (pg, &state, &err) < 0)
        bail_out (err.text);
    pg_close (pg);
}

static void test_good (void)
{
    struct horizon_store_content content;
    struct lease_record r = record (1000), last = record (1500);
    idt_error_t err;

    ok (!open_term (1, &content, &err) && errno == STATE_REFUSED, "a database without state is refused: %s", err.text);
    make_state ();
    struct horizon_store *st = open_term (1, &content, &err);
    ok (st && content.is_new, "the state that idtree init has made has no horizon: %s", err.text);
    ok (content.has_clock && content.clock_us > -5000000 && content.clock_us < 5000000,
        "the clock of the server is compared with that of this host");
    ok (horizon_store_init (st, EPOCH, &r, &err) == 0, "the first rank 0 stores an epoch and a record: %s", err.text);
    ok (store (st, 2000, &err), "the thread of the store raises the horizon: %s", err.text);
    ok (horizon_store_close (st, &last, &err) == 0, "a clean stop lowers the horizon");
    st = open_term (1, &content, &err);
    ok (st && !content.is_new && same (&content.record, &last) && content.epoch_ms == EPOCH,
        "the record and the epoch are read back");
    ok (horizon_store_close (st, NULL, &err) == 0, "a store can be closed without a last record");
}

static void test_takeover (void)
{
    struct horizon_store_content content;
    struct lease_record last = record (9999);
    idt_error_t err, again;

    struct horizon_store *old = open_term (2, &content, &err);
    ok (old && store (old, 3000, &err), "a root of a later term raises the horizon");
    struct horizon_store *st = open_term (3, &content, &err);
    ok (st && content.record.horizon_ms == 3000, "a root that takes over starts from the horizon of the old root");
    ok (!store (old, 4000, &err) && strstr (err.text, "another root leads"), "the old root stores nothing: %s",
        err.text);
    ok (!store (old, 5000, &again) && strcmp (again.text, err.text) == 0, "nor later");
    ok (horizon_store_close (old, &last, &err) < 0 && errno == ESTALE, "nor at its end");
    ok (!open_term (2, &content, &err) && errno == ESTALE, "the old root cannot open the store again: %s", err.text);
    ok (store (st, 6000, &err) && pg_server_sql (server, PEAK) == 6001, "the new root raises the horizon");
    struct horizon_store *next = open_term (3, &content, &err);
    ok (next && content.record.horizon_ms == 6000 && !store (st, 7000, &err) && store (next, 8000, &err),
        "a later life in the same term shuts the earlier life out");
    horizon_store_close (st, NULL, &err);
    horizon_store_close (next, NULL, &err);
}

static void test_unsure (void)
{
    struct horizon_store_content content;
    idt_error_t err, why;
    struct lease_record last = record (99999);
    uint64_t stored_ms;

    struct horizon_store *st = open_term (4, &content, &err);
    pg_server_copy_stop (server);
    begin (st, 10000);
    wait_until (horizon_store_is_unsure (st, &why)) poll (NULL, 0, 10);
    ok (horizon_store_result (st, &stored_ms, &err) == 0,
        "while no copy confirms a write, it is neither done nor failed: %s", why.text);
    pg_server_copy_continue (server);
    ok (result (st, &err) > 0 && pg_server_sql (server, PEAK) == 10001 && !horizon_store_is_unsure (st, NULL),
        "it is done when a copy confirms it: %s", err.text);
    pg_server_kill (server);
    begin (st, 11000);
    int rc = 0; /* failed, or unsure and still under way */
    wait_until ((rc = horizon_store_result (st, &stored_ms, &err)) != 0 || horizon_store_is_unsure (st, &why))
        poll (NULL, 0, 10);
    pg_server_run (server);
    pg_server_copy_start (server);
    if (rc == 0)
        result (st, &err);
    wait_until (store (st, 12000, &err)) poll (NULL, 0, 10);
    ok (pg_server_sql (server, PEAK) == 12001, "after the server was killed and started, the horizon is raised again");
    pg_server_copy_stop (server);
    begin (st, 13000);
    wait_until (horizon_store_is_unsure (st, &why)) poll (NULL, 0, 10);
    ok (horizon_store_close (st, &last, &err) < 0, "a store whose write is unsure is closed all the same: %s",
        err.text);
    pg_server_copy_continue (server);
    wait_until ((st = open_term (4, &content, &err)) != NULL) poll (NULL, 0, 10);
    ok (content.record.horizon_ms == 12000 || content.record.horizon_ms == 13000,
        "then the next life finds one of the two records");
    ok (store (st, 14000, &err), "and raises the horizon");
    horizon_store_close (st, NULL, &err);
}

static void test_lost_raises (void)
{
    static const struct {
        enum pg_fault fault;
        const char *text;
    } each[] = { { PG_FAULT_ANSWER, "is done, and its answer is lost" }, { PG_FAULT_QUERY, "is lost" } };
    struct horizon_store_content content;
    idt_error_t err;
    uint64_t horizon_ms = 15000;
    struct horizon_store *st = open_at (proxied, 4, &content, &err);

    for (size_t i = 0; i < sizeof (each) / sizeof (each[0]); i++) {
        pg_proxy_fault (proxy, PG_FAULT_NONE);
        pg_proxy_fault_then (proxy, each[i].fault, RAISE);
        horizon_ms += 10;
        ok (store (st, horizon_ms, &err) && !pg_proxy_is_armed (proxy)
                && pg_server_sql (server, PEAK) == (int64_t)horizon_ms + 1,
            "a raise that %s is stored once: %s", each[i].text, err.text);
    }
    pg_proxy_fault (proxy, PG_FAULT_NONE);
    pg_proxy_fault_then (proxy, PG_FAULT_LATE, RAISE);
    ok (store (st, 15100, &err) && store (st, 15200, &err), "a raise that comes late is stored in time all the same");
    ok (pg_proxy_deliver (proxy) == 1 && pg_server_sql (server, PEAK) == 15201,
        "when it arrives, after the next raise, it changes nothing");
    horizon_store_close (st, NULL, &err);
}

/* The old root ends while its raise is under way; the raise arrives when the new root has raised the horizon. */
static void test_late_raise (void)
{
    struct horizon_store_content content;
    idt_error_t err;
    struct horizon_store *old = open_at (proxied, 4, &content, &err);

    tap_must (old && store (old, 16000, &err));
    pg_proxy_fault (proxy, PG_FAULT_NONE);
    pg_proxy_fault_then (proxy, PG_FAULT_LATE, RAISE);
    pg_proxy_fault_then (proxy, PG_FAULT_QUERY, "serial + 2");
    begin (old, 19000);
    wait_until (!pg_proxy_is_armed (proxy)) poll (NULL, 0, 5);
    struct horizon_store *st = open_term (5, &content, &err);
    uint64_t base_ms = content.record.horizon_ms;
    ok (st && (base_ms == 16000 || base_ms == 19000) && store (st, 20000, &err),
        "a root takes over while a raise is under way: %s", err.text);
    pg_proxy_deliver (proxy);
    ok (pg_server_sql (server, PEAK) == 20001 && pg_server_sql (server, HORIZON) == 20000,
        "a raise that comes after the takeover changes nothing");
    ok ((result (old, &err) > 0) == (base_ms == 19000), "the old root knows whether its raise was before that: %s",
        err.text);
    horizon_store_close (old, NULL, &err);
    horizon_store_close (st, NULL, &err);
}

static void test_copies (void)
{
    struct horizon_store_content content;
    idt_error_t err;

    struct horizon_store *st = open_term (5, &content, &err);
    pg_server_set_names (server, "");
    ok (!store (st, 20000, &err) && strstr (err.text, "synchronous_standby_names"),
        "a horizon that would be on one server only is not stored: %s", err.text);
    pg_server_set_names (server, "*");
    wait_until (store (st, 21000, &err)) poll (NULL, 0, 10);
    ok (pg_server_sql (server, PEAK) == 21001, "it is stored when there is a copy again");
    pg_server_sql (server, "UPDATE idtree.horizon SET horizon_ms = 2000000000000");
    horizon_store_close (st, NULL, &err);
    ok (!open_term (5, &content, &err) && errno == EBADMSG && strstr (err.text, "2000000000000"),
        "a horizon above the end of time is refused: %s", err.text);
}

/* idtree init --store --uuid makes the tables of an instance that has made ids. */
static void test_lost (void)
{
    const struct module_place place = { .store = pg_server_conninfo (server), .uuid = UUID, .term = 6 };
    struct lease_record r = record (1000);
    struct horizon_store_content content;
    idt_error_t err;

    pg_server_sql (server, "DELETE FROM idtree.horizon");
    pg_server_sql (server, "UPDATE idtree.instance SET lost_horizon = true");
    ok (!open_term (6, &content, &err) && errno == STATE_REFUSED && strstr (err.text, "--recover-horizon"),
        "an instance that has made ids does not start without its horizon: %s", err.text);
    struct horizon_store *st = horizon_store_open_anew (&place, "a test", &content, &err);
    ok (st && content.is_new && horizon_store_init (st, EPOCH, &r, &err) == 0, "with --recover-horizon it starts");
    horizon_store_close (st, NULL, &err);
    st = open_term (6, &content, &err);
    ok (st && content.record.horizon_ms == 1000, "then it starts with the horizon that was stored");
    horizon_store_close (st, NULL, &err);
}

int main (void)
{
    const char *lacks = pg_server_lacks ();

    if (lacks) {
        printf ("1..0 # SKIP %s\n", lacks);
        return 0;
    }
    server = pg_server_start ();
    proxy = pg_proxy_start (pg_server_dir (server));
    snprintf (proxied, sizeof (proxied), "host=%s user=postgres dbname=postgres", pg_proxy_host (proxy));
    test_good ();
    test_takeover ();
    test_unsure ();
    test_lost_raises ();
    test_late_raise ();
    test_copies ();
    test_lost ();
    pg_proxy_stop (proxy);
    pg_server_destroy (server);
    return done_testing ();
}
