/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* cells.h - the cells of a stored form (described in stored.c), and functions to write them */
#ifndef COMPRESSOR_CELLS_H
#define COMPRESSOR_CELLS_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define CELL 8 /* bytes */
#define HEADER_CELLS 4
#define SESSION_CELLS 2
#define CLUSTER_CELLS 3

enum header { NSESSIONS = 2, NCLUSTERS };
enum cluster { SESSION, CAPACITY, COUNT };

/* Both return the address after the cell. */
static inline unsigned char *put_word (unsigned char *cell, uint64_t word)
{
    word = htole64 (word);
    memcpy (cell, &word, CELL);
    return cell + CELL;
}

static inline unsigned char *put_number (unsigned char *cell, int64_t number)
{
    double d = number;
    uint64_t word;

    memcpy (&word, &d, sizeof (word));
    return put_word (cell, word);
}

#endif /* COMPRESSOR_CELLS_H */
