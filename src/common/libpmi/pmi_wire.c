/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pmi_wire.c - parse the lines of the PMI-1 wire protocol
 *
 * Words are searched from the left, and the search ends at the word "value". So text inside a value is never taken for
 * a word.
 */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "libpmi/pmi_wire.h"

/* A word of a line: not NUL-terminated. */
struct pmi_word {
    const char *key;
    size_t keylen;
    const char *value;
    size_t len;
};

/* Read the word at '*p' and move '*p' behind it. Returns false at the end of the line. A word without '=' has an empty
 * value.
 */
static bool next_word (const char **p, struct pmi_word *w)
{
    const char *s = *p + strspn (*p, " ");

    if (*s == '\0')
        return false;
    w->key = s;
    w->keylen = strcspn (s, " =");
    s += w->keylen;
    if (*s == '=')
        s++;
    w->value = s;
    w->len = w->keylen == 5 && !memcmp (w->key, "value", 5) ? strlen (s) : strcspn (s, " ");
    *p = s + w->len;
    return true;
}

static bool find_word (const char *line, const char *key, struct pmi_word *w)
{
    size_t keylen = strlen (key);

    while (next_word (&line, w))
        if (w->keylen == keylen && !memcmp (w->key, key, keylen))
            return true;
    return false;
}

int pmi_word (const char *line, const char *key, char *buf, size_t size)
{
    struct pmi_word w;

    if (!find_word (line, key, &w))
        return errset (ENOENT);
    if (w.len >= size)
        return errset (EOVERFLOW);
    memcpy (buf, w.value, w.len);
    buf[w.len] = '\0';
    return 0;
}

int pmi_word_int (const char *line, const char *key, int *n)
{
    char buf[16];
    char *end;

    if (pmi_word (line, key, buf, sizeof (buf)) < 0) {
        if (errno == EOVERFLOW)
            errno = EINVAL;
        return -1;
    }
    long value = strtol (buf, &end, 10);
    if (end == buf || *end || value < INT_MIN || value > INT_MAX)
        return errset (EINVAL);
    *n = value;
    return 0;
}

bool pmi_is (const char *line, const char *cmd)
{
    struct pmi_word w;

    return find_word (line, "cmd", &w) && w.len == strlen (cmd) && !memcmp (w.value, cmd, w.len);
}

bool pmi_key_valid (const char *s)
{
    size_t len = strlen (s);

    for (const char *p = s; *p; p++)
        if ((unsigned char)*p <= ' ' || *p == '=' || *p == 0x7f)
            return false;
    return len > 0 && len < PMI_KEYLEN_MAX;
}

bool pmi_value_valid (const char *s)
{
    return strlen (s) < PMI_VALLEN_MAX && !strchr (s, '\n');
}

const char *pmi_lines_add (struct pmi_lines *lines, const char **data, size_t *size)
{
    assert (lines->len <= sizeof (lines->buf));
    for (; *size > 0; (*data)++, (*size)--) {
        if (**data == '\0' || lines->len == sizeof (lines->buf))
            return errset_null (EPROTO);
        lines->buf[lines->len++] = **data;
        if (**data == '\n') {
            (*data)++;
            (*size)--;
            lines->buf[lines->len - 1] = '\0';
            lines->len = 0;
            return lines->buf;
        }
    }
    return errset_null (EAGAIN);
}
