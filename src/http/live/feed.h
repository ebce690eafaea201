/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* feed.h - events for many readers, written once; a thinking part
 *
 * The last FEED_BYTES of what was said are kept, whoever reads.  A reader is a place there: one that is so slow that
 * what it would read next is not kept any more goes on with what is said next, after being told how many it missed.
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

/* 'lost' is the name of the event that tells of missed ones. */
struct feed *feed_create (const char *lost); /* NULL with errno ENOMEM */
void feed_destroy (struct feed *f);

/* Say an event with 'data', a text without line breaks.  One that has more than a half of FEED_BYTES is nobody's. */
void feed_say (struct feed *f, const char *event, const char *data);

struct feed_reader {
    uint64_t event;            /* the next one */
    size_t offset;             /* of it was read */
    char note[FEED_NOTE + 20]; /* that it reads before that, such as what it missed */
    size_t note_len, note_offset;
};

/* From now on; but first it reads an event of its own, of FEED_NOTE characters at most with its data. */
void feed_join (const struct feed *f, struct feed_reader *r, const char *event, const char *data);

/* What it reads next: up to 'size' bytes, as text/event-stream.  0: nothing yet. */
size_t feed_read (struct feed *f, struct feed_reader *r, char *buf, size_t size);

bool feed_has (const struct feed *f, const struct feed_reader *r);

#endif /* HTTP_LIVE_FEED_H */
