/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* card_test.c - a launcher can carry a bizcard as text, with any names of folders and hosts */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "broker/boot/method.h"
#include "test/tap.h"

static struct bizcard card_of (const char *endpoint, const char *host, const char *topology)
{
    struct bizcard card = { .rank = 3, .size = 7, .key = { 1, 2, 0xfe } };

    snprintf (card.endpoint, sizeof (card.endpoint), "%s", endpoint);
    snprintf (card.host, sizeof (card.host), "%s", host);
    snprintf (card.topology, sizeof (card.topology), "%s", topology);
    return card;
}

/* Whether a strict launcher carries 'text' unchanged. For such a launcher a value ends at a blank, a quote, ';' or a
 * byte that is not ASCII.
 */
static bool is_carried (const char *text)
{
    for (const char *p = text; *p; p++)
        if (*p <= ' ' || *p > '~' || strchr (";=\"'\\", *p))
            return false;
    return true;
}

static bool goes_through (const char *endpoint, const char *host, const char *topology)
{
    struct bizcard card = card_of (endpoint, host, topology), got;
    idt_error_t err = { "" };
    char text[CARD_TEXT];

    if (card_encode (text, &card, &err) == 0 && is_carried (text) && card_decode (text, 3, &got, &err) == 0
        && got.rank == 3 && got.size == 7 && !strcmp (got.endpoint, card.endpoint) && !strcmp (got.host, card.host)
        && !strcmp (got.topology, card.topology) && !memcmp (got.key, card.key, sizeof (card.key)))
        return true;
    diag ("%s: %s", endpoint, err.text);
    return false;
}

static void test_round (void)
{
    char every[256], endpoint[300];

    for (int i = 1; i < 256; i++)
        every[i - 1] = (char)i;
    every[248 - 6] = '\0';
    snprintf (endpoint, sizeof (endpoint), "ipc:///%s", every);
    ok (goes_through ("ipc:///tmp/idtree-x/tbon-0", "n1.example.org", "kary:32") && goes_through ("-", "n1", "kary:2"),
        "a bizcard of usual length is encoded and decoded unchanged");
    ok (goes_through ("ipc:///tmp/a,b c=d;e%2Cf\"g'h\\i\tj", "n1", "custom:a,b"),
        "a bizcard with any character in the names of folders is encoded and decoded unchanged");
    ok (goes_through ("tcp://[fe80::1%eth0]:1234", "n1", "kary:2"),
        "a bizcard with an IPv6 address and its interface is encoded and decoded unchanged");
    ok (goes_through (endpoint, "n1", "kary:2"),
        "a bizcard with any byte in its texts is encoded and decoded unchanged");
}

static void test_plain (void)
{
    struct bizcard card = card_of ("tcp://[::1]:99", "n1", "kary:2"), got;
    char text[CARD_TEXT];

    card_encode (text, &card, NULL);
    ok (strncmp (text, "tcp://[::1]:99,n1,0102fe", 24) == 0 && strstr (text, ",kary:2,7"),
        "a bizcard without special bytes is encoded without escapes: %s", text);
    *strrchr (text, ',') = '\0';
    ok (card_decode (text, 3, &got, NULL) == 0 && got.size == 0,
        "a bizcard that does not have the size of the instance is accepted");
}

static void test_bad (void)
{
    static const char key[] = "0102030405060708010203040506070801020304050607080102030405060708";
    static const char *const bad[] = { "",
                                       "-",
                                       "-,n1",
                                       ",n1,%s,kary:2,7",
                                       "-,,%s,kary:2,7",
                                       "-,n1,%s",
                                       "-,n1,%s,",
                                       "-,n1,0102,kary:2,7",
                                       "-,n%%2C1,%s,kary:2,7",
                                       "-,n1,%s,kary:2,x",
                                       "%%g1,n1,%s,kary:2,7",
                                       "%%0,n1,%s,kary:2,7",
                                       "a%%00b,n1,%s,kary:2,7" };
    struct bizcard got, card = card_of ("", "n1", "kary:2");
    idt_error_t err = { "" };
    char text[CARD_TEXT];
    int taken = 0;

    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        snprintf (text, sizeof (text), bad[i], key);
        if (card_decode (text, 3, &got, &err) == 0 || errno != EPROTO || !strstr (err.text, "rank 3: malformed")) {
            diag ("accepted: %s", text);
            taken++;
        }
    }
    ok (taken == 0, "malformed bizcards are refused, and the error names the rank");
    memset (card.endpoint, ' ', sizeof (card.endpoint) - 1);
    memset (card.host, ' ', sizeof (card.host) - 1);
    ok (card_encode (text, &card, &err) < 0 && errno == ENAMETOOLONG && strstr (err.text, "rank 3"),
        "a bizcard longer than launchers accept is refused when it is made");
}

static bool is_host (const char *name, const char *told)
{
    char host[CARD_HOST];

    card_host (host, name);
    if (strcmp (host, told) == 0 && goes_through ("-", host, "kary:2"))
        return true;
    diag ("%s: %s", name, host);
    return false;
}

static void test_hosts (void)
{
    ok (is_host ("node12.example.org", "node12.example.org") && is_host ("(none)", "(none)"),
        "a host name of usual characters is not changed");
    ok (is_host ("B\xc3\xbcro-PC", "B%C3%BCro-PC") && is_host ("my host", "my%20host") && is_host ("a,b", "a%2Cb")
            && is_host ("a[1-3]", "a%5B1-3%5D") && is_host ("a%20b", "a%2520b") && is_host ("\xfc\n", "%FC%0A"),
        "bytes of a host name that cannot be in a list of hosts or a log are escaped");
    ok (is_host ("", "localhost"), "a host with an empty name is called localhost");
}

int main (int argc, char **argv)
{
    test_round ();
    test_plain ();
    test_bad ();
    test_hosts ();
    return done_testing ();
}
