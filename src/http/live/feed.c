/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* feed.c - a stream of events that is stored once for many readers
 *
 * Event number n has its entry at places[n % FEED_EVENTS]. Its text begins in the ring of bytes at the entry's 'at',
 * and may continue at the start of the ring. Events from 'first' up to, but not including, 'end' are complete.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/live/feed.h"

struct feed_place {
    uint64_t at; /* number of bytes that were written before this event */
    size_t len;
};

struct feed {
    const char *lost;
    uint64_t first, end; /* numbers of events */
    uint64_t written;    /* number of bytes that were written so far */
    struct feed_place places[FEED_EVENTS];
    char bytes[FEED_BYTES];
};

struct feed *feed_create (const char *lost)
{
    struct feed *f = calloc (1, sizeof (*f));

    if (f)
        f->lost = lost;
    return f;
}

void feed_destroy (struct feed *f)
{
    free (f);
}

static void put (struct feed *f, const char *text, size_t len)
{
    size_t at = f->written % FEED_BYTES, room = FEED_BYTES - at, head = len < room ? len : room;

    memcpy (f->bytes + at, text, head);
    memcpy (f->bytes, text + head, len - head);
    f->written += len;
}

static void get (const struct feed *f, uint64_t from, char *buf, size_t len)
{
    size_t at = from % FEED_BYTES, room = FEED_BYTES - at, head = len < room ? len : room;

    memcpy (buf, f->bytes + at, head);
    memcpy (buf + head, f->bytes, len - head);
}

/* Drop the events that will be overwritten. */
static void make_room (struct feed *f, size_t len)
{
    while (
        f->first < f->end
        && (f->end - f->first == FEED_EVENTS || f->written + len - f->places[f->first % FEED_EVENTS].at > FEED_BYTES))
        f->first++;
}

void feed_say (struct feed *f, const char *event, const char *data)
{
    static const char a[] = "event: ", b[] = "\ndata: ", c[] = "\n\n";
    size_t len = strlen (a) + strlen (event) + strlen (b) + strlen (data) + strlen (c);

    if (len > FEED_BYTES / 2)
        return;
    make_room (f, len);
    assert (f->end - f->first < FEED_EVENTS);
    f->places[f->end++ % FEED_EVENTS] = (struct feed_place){ f->written, len };
    put (f, a, strlen (a));
    put (f, event, strlen (event));
    put (f, b, strlen (b));
    put (f, data, strlen (data));
    put (f, c, strlen (c));
}

/* --- readers --------------------------------------------------------- */

static void set_note (struct feed_reader *r, const char *before, const char *event, const char *data)
{
    int n = snprintf (r->note, sizeof (r->note), "%sevent: %s\ndata: %s\n\n", before, event, data);

    r->note_len = n > 0 && (size_t)n < sizeof (r->note) ? (size_t)n : 0;
    r->note_offset = 0;
}

void feed_join (const struct feed *f, struct feed_reader *r, const char *event, const char *data)
{
    *r = (struct feed_reader){ .event = f->end };
    set_note (r, "", event, data);
}

/* Skip all events that are still unread, and report their number. If an event was sent in part, it is ended with
 * another event name, for which clients have no handler, because SSE uses the last name of an event.
 */
static void skip (const struct feed *f, struct feed_reader *r)
{
    char data[40];

    snprintf (data, sizeof (data), "{\"events\":%" PRIu64 "}", f->end - r->event);
    set_note (r, r->offset > 0 ? "\nevent: cut\n\n" : "", f->lost, data);
    r->event = f->end;
    r->offset = 0;
}

static size_t read_note (struct feed_reader *r, char *buf, size_t size)
{
    size_t left = r->note_len - r->note_offset, n = left < size ? left : size;

    memcpy (buf, r->note + r->note_offset, n);
    r->note_offset += n;
    return n;
}

static size_t read_event (const struct feed *f, struct feed_reader *r, char *buf, size_t size)
{
    assert (r->event >= f->first && r->event < f->end);
    const struct feed_place *p = &f->places[r->event % FEED_EVENTS];
    size_t left = p->len - r->offset, n = left < size ? left : size;

    get (f, p->at + r->offset, buf, n);
    r->offset += n;
    if (r->offset == p->len) {
        r->event++;
        r->offset = 0;
    }
    return n;
}

size_t feed_read (struct feed *f, struct feed_reader *r, char *buf, size_t size)
{
    size_t n = 0;

    if (r->event < f->first && r->note_offset == r->note_len)
        skip (f, r);
    n += read_note (r, buf, size);
    if (r->event < f->first) /* other events were overwritten meanwhile: report them with the next read */
        return n;
    while (n < size && r->event < f->end)
        n += read_event (f, r, buf + n, size - n);
    return n;
}

bool feed_has (const struct feed *f, const struct feed_reader *r)
{
    return r->note_offset < r->note_len || r->event < f->end;
}
