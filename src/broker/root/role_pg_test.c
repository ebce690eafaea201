/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* role_pg_test.c - the role in a real PostgreSQL, while claims and beats are lost, and come late */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "broker/root/role_pg.h"
#include "libpg/pgstate.h"
#include "test/pg_proxy.h"
#include "test/pg_server.h"
#include "test/tap.h"

#define TAKEOVER_MS 1000
#define CLAIM "term = term + 1"
#define BEAT "beat = beat + 1"
#define TERM "SELECT term FROM idtree.role"
#define TURN_MS 10

static struct pg_server *server;
static struct pg_proxy *proxy;
static char proxied[128];
static idt_reactor_t *reactor;

static void say (void *arg, int level, const char *text)
{
    diag ("%s: %s", (const char *)arg, text);
}

static struct role_pg *candidate (const char *host, const char *store)
{
    const struct root_conf root = { .store = store, .takeover_ms = TAKEOVER_MS };
    const struct role_pg_conf conf = {
        .reactor = reactor, .root = &root, .host = host, .say = say, .arg = (void *)host
    };
    idt_error_t error = { "" };
    struct role_pg *p = role_pg_create (&conf, &error);

    if (!p)
        bail_out (error.text);
    return p;
}

static void turn_cb (idt_watcher_t *w, int revents, void *arg)
{
    idt_reactor_stop (reactor);
}

/* Run all candidates for a moment. */
static void turn (void)
{
    idt_watcher_t *w = idt_timer_watcher_create (reactor, TURN_MS, 0., turn_cb, NULL);

    idt_watcher_start (w);
    idt_reactor_run (reactor, IDT_REACTOR_DEFAULT);
    idt_watcher_destroy (w);
}

#define run_until(condition) wait_until (condition) turn ()

static bool leads (const struct role_pg *p)
{
    return role_pg_role (p)->state == ROLE_LEAD;
}

static uint64_t term_of (const struct role_pg *p)
{
    return role_pg_role (p)->row.term;
}

static bool is_host (const char *host)
{
    char sql[128];

    snprintf (sql, sizeof (sql), "SELECT count (*) FROM idtree.role WHERE host = '%s' AND state = 'leads'", host);
    return pg_server_sql (server, sql) == 1;
}

/* End a leader as a crash does: nothing is written. */
static void crash (struct role_pg *p)
{
    role_pg_destroy (p);
}

static void make_state (void)
{
    const struct pg_config config = { pg_server_conninfo (server), "a test", 10000 };
    const struct pgstate state = { .uuid = "11111111-2222-4333-8444-555555555555", .name = "test", .created_ms = 1 };
    idt_error_t error = { "" };
    struct pg *pg = pg_open (&config, &error);

    if (!pg || pgstate_make (pg, &state, &error) < 0)
        bail_out (error.text);
    pg_close (pg);
}

static void test_answer_lost (void)
{
    pg_proxy_fault (proxy, PG_FAULT_NONE);
    pg_proxy_fault_then (proxy, PG_FAULT_ANSWER, CLAIM);
    struct role_pg *p = candidate ("n0", proxied);
    run_until (leads (p));
    ok (!pg_proxy_is_armed (proxy) && term_of (p) == 1 && pg_server_sql (server, TERM) == 1,
        "a candidate whose claim got no answer finds that the claim is its own");

    int64_t beat = pg_server_sql (server, "SELECT beat FROM idtree.role");
    pg_proxy_fault_then (proxy, PG_FAULT_ANSWER, BEAT);
    pg_proxy_fault_then (proxy, PG_FAULT_QUERY, BEAT);
    pg_proxy_fault_then (proxy, PG_FAULT_LATE, BEAT);
    run_until (!pg_proxy_is_armed (proxy) && pg_server_sql (server, "SELECT beat FROM idtree.role") > beat + 3);
    pg_proxy_deliver (proxy);
    run_until (pg_server_sql (server, "SELECT beat FROM idtree.role") > beat + 6);
    ok (leads (p) && term_of (p) == 1, "a leader whose beats are lost, unanswered, or late keeps the role");
    crash (p);
}

/* The claim of a candidate that died arrives when another candidate could claim, too. */
static void test_late_claim (void)
{
    uint64_t term = (uint64_t)pg_server_sql (server, TERM);

    pg_server_sql (server, "UPDATE idtree.role SET state = 'released'");
    pg_proxy_fault (proxy, PG_FAULT_NONE);
    pg_proxy_fault_then (proxy, PG_FAULT_LATE, CLAIM);
    struct role_pg *dead = candidate ("dead", proxied);
    run_until (!pg_proxy_is_armed (proxy));
    role_pg_destroy (dead);
    ok (pg_proxy_deliver (proxy) == 1 && pg_server_sql (server, TERM) == (int64_t)term + 1 && is_host ("dead"),
        "a claim is carried out after its sender died: its term is used up");
    struct role_pg *p = candidate ("n1", pg_server_conninfo (server));
    run_until (role_pg_role (p)->seen);
    ok (!leads (p), "another candidate waits, because the dead one could lead");
    run_until (leads (p));
    ok (term_of (p) == term + 2 && is_host ("n1"), "but after root.takeover it claims the next term");
    crash (p);
}

/* The claim is held while another candidate takes the term that it names. */
static void test_late_after_takeover (void)
{
    uint64_t term = (uint64_t)pg_server_sql (server, TERM);

    pg_server_sql (server, "UPDATE idtree.role SET state = 'released'");
    pg_proxy_fault (proxy, PG_FAULT_NONE);
    pg_proxy_fault_then (proxy, PG_FAULT_LATE, CLAIM);
    struct role_pg *dead = candidate ("dead", proxied);
    run_until (!pg_proxy_is_armed (proxy));
    role_pg_destroy (dead);
    struct role_pg *p = candidate ("n2", pg_server_conninfo (server));
    run_until (leads (p));
    ok (pg_proxy_deliver (proxy) == 1 && pg_server_sql (server, TERM) == (int64_t)term_of (p) && is_host ("n2"),
        "a claim that comes after another one changes nothing");
    int64_t beat = pg_server_sql (server, "SELECT beat FROM idtree.role");
    run_until (pg_server_sql (server, "SELECT beat FROM idtree.role") > beat + 1);
    ok (leads (p) && term_of (p) > term, "and who leads keeps the role");
    crash (p);
}

/* Two claims are under way at the same time; both name the same term and beat. */
static void test_two_claims (void)
{
    uint64_t term = (uint64_t)pg_server_sql (server, TERM);

    pg_server_sql (server, "UPDATE idtree.role SET state = 'released'");
    pg_proxy_fault (proxy, PG_FAULT_NONE);
    pg_proxy_fault_then (proxy, PG_FAULT_LATE, CLAIM);
    pg_proxy_fault_then (proxy, PG_FAULT_LATE, CLAIM);
    struct role_pg *one = candidate ("n3", proxied);
    struct role_pg *two = candidate ("n4", proxied);
    run_until (!pg_proxy_is_armed (proxy));
    int held = pg_proxy_deliver (proxy);
    run_until (leads (one) || leads (two));
    int64_t beat = pg_server_sql (server, "SELECT beat FROM idtree.role");
    run_until (pg_server_sql (server, "SELECT beat FROM idtree.role") > beat + 1);
    ok (held == 2 && leads (one) != leads (two) && pg_server_sql (server, TERM) == (int64_t)term + 1,
        "of two claims at once one counts, and its candidate leads");
    crash (one);
    crash (two);
}

int main (void)
{
    const char *lacks = pg_server_lacks ();

    if (lacks) {
        skip ("the role in PostgreSQL", lacks);
        return done_testing ();
    }
    server = pg_server_start ();
    proxy = pg_proxy_start (pg_server_dir (server));
    snprintf (proxied, sizeof (proxied), "host=%s user=postgres dbname=postgres", pg_proxy_host (proxy));
    if (!(reactor = idt_reactor_create ()))
        bail_out ("no reactor");
    make_state ();
    test_answer_lost ();
    test_late_claim ();
    test_late_after_takeover ();
    test_two_claims ();
    idt_reactor_destroy (reactor);
    pg_proxy_stop (proxy);
    pg_server_destroy (server);
    return done_testing ();
}
