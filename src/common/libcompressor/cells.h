/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* cells.h - the cells of a stored form, which stored.c describes, for those who change one in place */
#ifndef COMPRESSOR_CELLS_H
#define COMPRESSOR_CELLS_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define CELL 8 /* bytes */
#define HEADER_CELLS 4
#define SESSION_CELLS 2
#define CLUSTER_CELLS 3

enum header { VERSION, LOCAL_STATE, NSESSIONS, NCLUSTERS };
enum cluster { SESSION, CAPACITY, COUNT };

static inline double get_number (const unsigned char *cell)
{
    uint64_t word;
    double d;

    memcpy (&word, cell, CELL);
    word = le64toh (word);
    memcpy (&d, &word, sizeof (d));
    return d;
}

/* Returns what follows the cell. */
static inline unsigned char *put_number (unsigned char *cell, double d)
{
    uint64_t word;

    memcpy (&word, &d, sizeof (word));
    word = htole64 (word);
    memcpy (cell, &word, CELL);
    return cell + CELL;
}

#endif /* COMPRESSOR_CELLS_H */
