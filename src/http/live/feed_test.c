/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/live/feed.h"
#include "test/tap.h"

static void join (const struct feed *f, struct feed_reader *r)
{
    char buf[FEED_NOTE * 2];

    feed_join (f, r, "hello", "{}");
    while (feed_read ((struct feed *)f, r, buf, 5) > 0)
        ;
}

/* Read all that is available, in pieces of 'piece' bytes. */
static size_t read_all (struct feed *f, struct feed_reader *r, char *buf, size_t room, size_t piece)
{
    size_t n = 0, got;

    while (n + piece < room && (got = feed_read (f, r, buf + n, piece)) > 0)
        n += got;
    buf[n] = '\0';
    return n;
}

static void test_order (void)
{
    struct feed *f = feed_create ("lost");
    struct feed_reader a, b;
    char buf[1024];

    feed_say (f, "x", "0");
    join (f, &a);
    ok (!feed_has (f, &a) && feed_read (f, &a, buf, sizeof (buf)) == 0,
        "a new reader gets no events from before it joined");
    feed_say (f, "x", "1");
    join (f, &b);
    feed_say (f, "y", "2");
    read_all (f, &a, buf, sizeof (buf), 3);
    ok (strcmp (buf, "event: x\ndata: 1\n\nevent: y\ndata: 2\n\n") == 0,
        "a reader gets events in order, in pieces of any size");
    read_all (f, &b, buf, sizeof (buf), 100);
    ok (strcmp (buf, "event: y\ndata: 2\n\n") == 0, "each reader gets the events since it joined");
    ok (!feed_has (f, &a) && !feed_has (f, &b), "a reader gets each event only once");
    feed_destroy (f);
}

static void test_slow (void)
{
    struct feed *f = feed_create ("lost");
    struct feed_reader a, b;
    char buf[1024], data[1000], want[200];

    memset (data, 'd', sizeof (data));
    data[sizeof (data) - 1] = '\0';
    join (f, &a);
    join (f, &b);
    feed_say (f, "x", "1");
    feed_read (f, &b, buf, 10);
    for (int i = 0; i < 1000; i++)
        feed_say (f, "x", data);
    read_all (f, &a, buf, sizeof (buf), 7);
    ok (strcmp (buf, "event: lost\ndata: {\"events\":1001}\n\n") == 0,
        "a slow reader gets the number of events that it has missed");
    read_all (f, &b, buf, sizeof (buf), 1);
    ok (strcmp (buf, "\nevent: cut\n\nevent: lost\ndata: {\"events\":1001}\n\n") == 0,
        "a reader that missed events in the middle of one gets the end of that event, then the number of missed "
        "events");
    feed_say (f, "x", "2");
    read_all (f, &a, buf, sizeof (buf), 1);
    ok (strcmp (buf, "event: x\ndata: 2\n\n") == 0, "a reader that missed events continues with the next event");
    join (f, &a);
    char *huge = calloc (1, FEED_BYTES + 1);
    memset (huge, 'h', FEED_BYTES);
    feed_say (f, "x", huge);
    ok (!feed_has (f, &a), "an event that is too large is dropped");
    free (huge);
    for (int i = 0; i <= FEED_EVENTS; i++)
        feed_say (f, "x", "");
    read_all (f, &a, buf, sizeof (buf), 50);
    snprintf (want, sizeof (want), "event: lost\ndata: {\"events\":%d}\n\n", FEED_EVENTS + 1);
    ok (strcmp (buf, want) == 0, "the number of events that are kept is limited, even if they are small");
    feed_destroy (f);
}

/* Readers of any speed read all events. If events are lost for a reader, their number is reported to it. */
static void test_random (void)
{
    struct feed *f = feed_create ("lost");
    struct feed_reader r[4];
    unsigned next[4] = { 0 }, said = 0;
    char buf[FEED_BYTES + 65536], data[4000];
    bool good = true;

    srandom (1);
    for (int i = 0; i < 4; i++)
        join (f, &r[i]);
    for (int round = 0; round < 4000; round++) {
        int n = snprintf (data, sizeof (data), "%u ", said++);
        memset (data + n, 'x', (size_t)random () % 3000);
        data[n + random () % 3000] = '\0';
        data[sizeof (data) - 1] = '\0';
        feed_say (f, "e", data);
        int i = (int)(random () % 16);
        if (i >= 4 || random () % (1 << (2 * i)))
            continue;
        read_all (f, &r[i], buf, sizeof (buf), 1 + (size_t)random () % 5000);
        for (char *s = buf; *s; s = strstr (s, "\n\n") + 2) {
            unsigned at, missed;
            if (sscanf (s, "event: e data: %u ", &at) == 1)
                good = good && at == next[i]++;
            else if (sscanf (s, "event: lost data: {\"events\":%u}", &missed) == 1)
                next[i] += missed;
            else
                good = false;
        }
        good = good && next[i] == said;
    }
    ok (good, "of 4,000 events readers of four speeds miss only events that are reported as missed");
    feed_destroy (f);
}

int main (void)
{
    test_order ();
    test_slow ();
    test_random ();
    return done_testing ();
}
