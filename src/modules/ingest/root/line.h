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
    uint64_t group;     /* where it was when the group that is under way began */
    uint64_t watermark; /* no id below this will be made any more */
    uint64_t shown;
    bool under_way;
};

/* 'first': all ids that were shown, called late or refused in former lives are at or below it. */
void line_init (struct line *l, uint64_t first);

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
