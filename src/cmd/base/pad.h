/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pad.h - columns of text in UTF-8 */
#ifndef CMD_PAD_H
#define CMD_PAD_H

/* The width that printf is to pad 's' to, so that it fills 'columns': printf counts bytes, and a letter may have
 * several.
 */
static inline int pad_width (const char *s, int columns)
{
    int width = columns;

    for (; *s; s++)
        width += ((unsigned char)*s & 0xc0) == 0x80;
    return width;
}

#endif /* CMD_PAD_H */
