/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reconnect_test.c - lists of URIs in the forms that users write; rounds, pauses, and the end of reconnecting */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "libidtree/reconnect.h"
#include "test/tap.h"

/* The parsed list, each URI in brackets. */
static const char *read_as (const char *text)
{
    static char buf[2048];
    struct uris u;
    size_t len = 0;

    if (uris_parse (&u, text, NULL) < 0)
        return errno == EINVAL && u.count == 0 ? "EINVAL" : "?";
    for (size_t i = 0; i < u.count; i++) {
        len += (size_t)snprintf (buf + len, sizeof (buf) - len, "[%s", u.uri[i].socket.sun_path);
        if (u.uri[i].has_rank)
            len += (size_t)snprintf (buf + len, sizeof (buf) - len, " %u", u.uri[i].rank);
        len += (size_t)snprintf (buf + len, sizeof (buf) - len, "]");
    }
    uris_fini (&u);
    return buf;
}

static void test_read (void)
{
    static const struct {
        const char *text, *read;
    } cases[] = {
        { "local:///a", "[/a]" },
        { "local:///a?rank=7", "[/a 7]" },
        { "local:///a?rank=1/b?c/local-0", "[/a?rank=1/b?c/local-0]" },
        { "local:///a?rank=1/b?rank=2", "[/a?rank=1/b 2]" },
        { "local:///a local:///b", "[/a][/b]" },
        { "local:///a,local:///b?rank=1,local:///c", "[/a][/b 1][/c]" },
        { " ,local:///a ,\t local:///b, ", "[/a][/b]" },
        { "local:///a,b/c d", "[/a,b/c d]" },
        { "local:///a,b local:///c", "[/a,b][/c]" },
        { "", "EINVAL" },
        { " , ", "EINVAL" },
        { "local://", "EINVAL" },
        { "local:///a?rank=", "EINVAL" },
        { "local:///a?rank=4294967296", "EINVAL" },
        { "local:///a tcp://b", "EINVAL" },
        { "/a", "EINVAL" },
    };

    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++)
        ok (strcmp (read_as (cases[i].text), cases[i].read) == 0, "URI list '%s' is parsed as %s", cases[i].text,
            cases[i].read);
}

static void test_limits (void)
{
    char text[URIS_MAX * 16 + 64] = "", path[160] = "local:///";
    struct uris u;
    idt_error_t error;

    for (int i = 0; i < URIS_MAX; i++)
        strcat (text, "local:///a ");
    ok (uris_parse (&u, text, &error) == 0 && u.count == URIS_MAX, "a list may have %d URIs", URIS_MAX);
    uris_fini (&u);
    strcat (text, "local:///a");
    ok (uris_parse (&u, text, &error) < 0 && errno == EINVAL, "a list with one URI more is refused: %s", error.text);
    memset (path + 9, 'x', 106);
    ok (uris_parse (&u, path, &error) == 0, "the path of a URI may have 107 bytes");
    uris_fini (&u);
    path[9 + 106] = 'x';
    ok (uris_parse (&u, path, &error) < 0 && errno == EINVAL && strstr (error.text, "107"),
        "the path of a URI longer than 107 bytes is refused: %s", error.text);
}

/* Let each attempt fail immediately, until there is no further one or there were 'max'. Returns the number of attempts;
 * advances '*now_ms'.
 */
static int fail_all (struct reconnect *r, double *now_ms, int errnum, int max)
{
    int tries = 1;

    *now_ms = reconnect_at (r);
    while (tries < max && reconnect_failed (r, *now_ms, errnum)) {
        *now_ms = reconnect_at (r) > *now_ms ? reconnect_at (r) : *now_ms;
        tries++;
    }
    return tries;
}

static void test_rounds (void)
{
    struct reconnect r;

    reconnect_init (&r, 3, 1);
    reconnect_begin (&r, 1e6);
    ok (r.next == 0 && reconnect_at (&r) == 1e6, "the first broker of a list is tried immediately");
    ok (reconnect_failed (&r, 1e6 + 1, ENOENT) && r.next == 1 && reconnect_at (&r) <= 1e6 + 1,
        "the second broker of a list is tried without a pause");
    ok (reconnect_failed (&r, 1e6 + 2, ENOENT) && r.next == 2, "the third broker of a list is tried without a pause");
    ok (reconnect_failed (&r, 1e6 + 3, ENOENT) && r.next == 0,
        "after the last broker of a list the first one is tried again");
    double pause_ms = reconnect_at (&r) - (1e6 + 3);
    ok (pause_ms >= RECONNECT_PAUSE_MIN_MS / 2 && pause_ms <= RECONNECT_PAUSE_MIN_MS,
        "there is a pause (%.1f ms) before the brokers of a list are tried again", pause_ms);
}

static void test_pauses (void)
{
    struct reconnect r, other;
    double now_ms = 0, last_ms = 0, longest_ms = 0;
    bool grows = true;

    reconnect_init (&r, 1, 1);
    reconnect_init (&other, 1, 2);
    reconnect_begin (&r, 0);
    reconnect_begin (&other, 0);
    reconnect_failed (&other, 0, ECONNREFUSED);
    for (int i = 0; reconnect_failed (&r, now_ms, ECONNREFUSED); i++) {
        double pause_ms = reconnect_at (&r) - now_ms;
        if (i == 0)
            ok (reconnect_at (&r) != reconnect_at (&other), "two clients that reconnect have different pauses");
        grows = grows && (i > 5 || pause_ms > last_ms || pause_ms > last_ms / 2);
        longest_ms = pause_ms > longest_ms ? pause_ms : longest_ms;
        last_ms = pause_ms;
        now_ms = reconnect_at (&r);
    }
    ok (grows && longest_ms <= RECONNECT_PAUSE_MAX_MS && longest_ms > RECONNECT_PAUSE_MAX_MS / 2,
        "the pauses between rounds grow, up to %.0f ms of %.0f", longest_ms, RECONNECT_PAUSE_MAX_MS);
    ok (now_ms < RECONNECT_PATIENCE_MS && now_ms > RECONNECT_PATIENCE_MS / 2,
        "reconnecting ends within its time limit (%.0f ms)", now_ms);
}

static void test_end (void)
{
    struct reconnect r;
    double now_ms = 0;

    reconnect_init (&r, 2, 1);
    reconnect_begin (&r, 0);
    ok (fail_all (&r, &now_ms, ESTALE, 100) == 2 && now_ms == 0,
        "if all brokers of a list refuse permanently they are tried only once");
    reconnect_begin (&r, 0);
    reconnect_failed (&r, 0, ENOENT);
    ok (reconnect_failed (&r, 0, ESTALE), "if one broker of a list may return, all are tried again");
    reconnect_begin (&r, 0);
    ok (reconnect_end (&r, 0) == RECONNECT_TRY_MS, "an attempt to connect has its own time limit");
    ok (reconnect_end (&r, RECONNECT_PATIENCE_MS - 1) == RECONNECT_PATIENCE_MS,
        "an attempt to connect ends at the latest with the total time limit");
}

/* A broker that accepts the connection and closes it immediately is treated like one that does not accept it. */
static void test_short_lives (void)
{
    struct reconnect r;
    double now_ms = 1;
    int n = 0;

    reconnect_init (&r, 1, 1);
    reconnect_succeeded (&r, now_ms);
    for (; now_ms < 60000; n++) {
        reconnect_begin (&r, now_ms);
        now_ms = reconnect_at (&r);
        reconnect_succeeded (&r, now_ms);
    }
    ok (n < 80, "a connection that is always lost immediately is made %d times in a minute", n);
    now_ms += RECONNECT_PAUSE_MAX_MS;
    reconnect_begin (&r, now_ms);
    ok (reconnect_at (&r) == now_ms, "after a connection that lasted there is no pause before the next attempt");
}

static void test_shares (void)
{
    double left_ms = 1600;
    int n = 0;

    for (size_t behind = 16; behind-- > 0; left_ms -= reconnect_share (left_ms, behind))
        n += fabs (reconnect_share (left_ms, behind) - 100) < 1e-6;
    ok (n == 16 && fabs (left_ms) < 1e-6,
        "if no broker of a list answers, each broker gets an equal share of the time");
    ok (reconnect_share (30000, 1) == RECONNECT_TRY_MS,
        "a broker's share of the time is at most the time limit of an attempt");
    ok (reconnect_share (30000 - RECONNECT_TRY_MS, 0) == 30000 - RECONNECT_TRY_MS,
        "the last broker of a list gets all of the remaining time");
    ok (reconnect_share (1000, 1) == 500 && reconnect_share (900, 0) == 900,
        "the remaining time of the last broker includes time that the broker before it did not use");
    ok (reconnect_share (INFINITY, 1) == RECONNECT_TRY_MS && isinf (reconnect_share (INFINITY, 0)),
        "without a total time limit only the attempt with the last broker has no limit");
    ok (reconnect_share (0, 3) == 0, "if no time is left the share of each broker is 0");
}

int main (int argc, char *argv[])
{
    test_read ();
    test_limits ();
    test_rounds ();
    test_pauses ();
    test_end ();
    test_short_lives ();
    test_shares ();
    return done_testing ();
}
