/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz.h - declarations that all fuzz targets share */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

/* Check a condition that must hold for every input. Failures are printed to standard output, which the log of a test
 * contains.
 */
#define must(condition) must_at ((condition), #condition, __FILE__, __LINE__)

static inline void must_at (bool good, const char *condition, const char *file, int line)
{
    if (good)
        return;
    printf ("# %s:%d: required condition is false: %s\n", file, line, condition);
    fflush (stdout);
    abort ();
}

/* Input that is read line by line or byte by byte. */
struct input {
    const uint8_t *p;
    size_t left;
};

/* Return the next byte; 0 at the end. */
static inline uint8_t input_byte (struct input *in)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->p++;
}

static inline uint32_t input_u32 (struct input *in)
{
    uint32_t x = 0;

    for (int i = 0; i < 4; i++)
        x = x << 8 | input_byte (in);
    return x;
}

/* Copy the next 'size' bytes into 'buf', padded with zeros. */
static inline void input_bytes (struct input *in, void *buf, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)buf)[i] = input_byte (in);
}

/* Return the next line without its newline, as a string that the caller frees; NULL at the end. '*len' is its length,
 * because it may contain NULs.
 */
static inline char *input_line (struct input *in, size_t *len)
{
    if (in->left == 0)
        return NULL;
    const uint8_t *end = memchr (in->p, '\n', in->left);
    size_t n = end ? (size_t)(end - in->p) : in->left;
    char *line = malloc (n + 1);
    must (line != NULL);
    memcpy (line, in->p, n);
    line[n] = '\0';
    in->p += n + (end != NULL);
    in->left -= n + (end != NULL);
    *len = n;
    return line;
}

#endif /* FUZZ_H */
