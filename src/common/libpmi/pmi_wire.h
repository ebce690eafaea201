/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pmi_wire.h - parse the lines of the PMI-1 wire protocol of Hydra, Slurm and Flux
 *
 * In both directions a message is one line of words KEY=VALUE, separated by blanks and ended by a newline. The first
 * word is cmd=NAME. A word with the key "value" is the last one and extends to the end of its line, so a value may
 * contain anything except a newline.
 */
#ifndef PMI_WIRE_H
#define PMI_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#define PMI_KVSNAME_MAX 256 /* bytes with the NUL, as in the answer to get_maxes */
#define PMI_KEYLEN_MAX 256
#define PMI_VALLEN_MAX 1024
#define PMI_LINE_MAX 2048 /* bytes of a line with its newline: enough for the three values above and the other words */

/* Copy the value of word 'key' of 'line' (no newline) to 'buf'. Returns 0, or -1 with errno set and 'buf' untouched:
 *   ENOENT     there is no such word
 *   EOVERFLOW  'size' is too small
 */
int pmi_word (const char *line, const char *key, char *buf, size_t size);

/* The value of word 'key' as a decimal number. Returns 0, or -1 with '*n' untouched and errno ENOENT, or EINVAL if it
 * is not a number or does not fit.
 */
int pmi_word_int (const char *line, const char *key, int *n);

/* Whether 'line' is a message cmd='cmd'. */
bool pmi_is (const char *line, const char *cmd);

/* Whether 's' is a valid key (no blank, '=' or control character, 1 ... PMI_KEYLEN_MAX - 1 bytes) or value (no newline,
 * at most PMI_VALLEN_MAX - 1 bytes).
 */
bool pmi_key_valid (const char *s);
bool pmi_value_valid (const char *s);

/* Received bytes that are not a complete line yet. */
struct pmi_lines {
    size_t len;
    char buf[PMI_LINE_MAX];
};

/* Add bytes from '*data' up to and including the next newline. Advances '*data' and lowers '*size' by the bytes taken.
 * Returns the complete line without its newline, borrowed until the next call; or NULL with errno set:
 *   EAGAIN   all bytes were taken and the line is not complete yet
 *   EPROTO   the line is longer than PMI_LINE_MAX or contains a NUL
 */
const char *pmi_lines_add (struct pmi_lines *lines, const char **data, size_t *size);

#endif /* PMI_WIRE_H */
