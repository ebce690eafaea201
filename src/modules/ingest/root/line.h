/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* line.h - at rank 0: the line, at or below which nothing is stored that is not, and up to where jobs may be shown
 *
 * doc/design/ingest.md, "Verdicts".  Groups are stored one at a time: each is judged by the line as it was when the
 * group began, so what is shown follows the line when that group has ended.
 */
#ifndef INGEST_LINE_H
#define INGEST_LINE_H

#include <stdbool.h>
#include <stdint.h>

struct line {
    uint64_t at;        /* where it is */
    uint64_t settle_ms; /* how far the line stays behind the time at least, */
    uint64_t slack_ms;  /* and how far it does now */
    uint64_t late_ms;   /* when a job was late last */
    uint64_t shown;
    bool under_way;
};

/* 'first': all that was shown in former lives is at or below it.  The line follows the watermark, and, 'settle_ms'
 * behind, the time of ids.
 */
void line_init (struct line *l, uint64_t first, uint64_t settle_ms);

/* The time of ids is 'now_ms'. */
void line_time (struct line *l, uint64_t now_ms);

/* A job came with an id at or below the line.  Where that is because it took its time, or its rank's clock is behind,
 * the line goes twice as far behind the time, so that the next id of such a rank is above it; later it comes nearer
 * again.
 */
void line_late (struct line *l, uint64_t id, uint64_t now_ms);

/* The watermark: a FLUID below which none is made any more.  One that goes back is not heard. */
void line_watermark (struct line *l, uint64_t id);

/* A group begins: its line.  Another must not be under way.  / It ended: the highest id in it that was refused,
 * whose refusal may be told now; 0: none.
 */
uint64_t line_begin (struct line *l);
void line_end (struct line *l, uint64_t refused);

/* Up to this id (it, too) jobs that are stored may be shown: all others at or below it will never be.  Rises only. */
uint64_t line_shown (const struct line *l);

#endif /* INGEST_LINE_H */
