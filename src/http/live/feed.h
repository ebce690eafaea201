/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* feed.h - a stream of events that is stored once for many readers; no I/O
 *
 * The last FEED_BYTES of events are kept. A reader is a position in the stream. If a slow reader's next event is no
 * longer kept, the reader gets the number of events that it missed, and continues with the next event that is added.
 */
#ifndef HTTP_LIVE_FEED_H
#define HTTP_LIVE_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FEED_BYTES 262144
#define FEED_EVENTS 4096
#define FEED_NOTE 100

struct feed;

/* 'lost' is the name of the event that reports how many events a reader missed. */
struct feed *feed_create (const char *lost); /* NULL with errno ENOMEM */
void feed_destroy (struct feed *f);

/* Add an event with 'data', a text without line breaks. An event larger than half of FEED_BYTES is dropped. */
void feed_say (struct feed *f, const char *event, const char *data);

struct feed_reader {
    uint64_t event;            /* number of the reader's next event */
    size_t offset;             /* bytes of this event that were already read */
    char note[FEED_NOTE + 20]; /* text that the reader reads first, such as a report of missed events */
    size_t note_len, note_offset;
};

/* Start reading at the next event that is added. The reader first gets the event given here, which no other reader
 * gets. Its name and data have at most FEED_NOTE characters.
 */
void feed_join (const struct feed *f, struct feed_reader *r, const char *event, const char *data);

/* Read up to 'size' bytes as text/event-stream. Returns 0 if there is nothing to read. */
size_t feed_read (struct feed *f, struct feed_reader *r, char *buf, size_t size);

bool feed_has (const struct feed *f, const struct feed_reader *r);

#endif /* HTTP_LIVE_FEED_H */
