/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* base64.c - a stored form as text, with the compressor's own error */

#include <errno.h>

#include <idtree/idcomp.h>

#include "libutil/errprintf.h"
#include "libutil/base64.h"

ssize_t idcomp_base64_format (const void *data, size_t len, char *buf, size_t size)
{
    if (size < IDCOMP_BASE64_TEXT_SIZE (len))
        return errset (ENOSPC);
    return (ssize_t)base64_encode (data, len, buf);
}

/* Where a text that is refused stops to be base64: whole groups before it can be read. */
static size_t fault_at (const char *text, size_t len)
{
    char bytes[3], group[4] = { 'A', 'A', 'A', 'A' };
    size_t at = 0;

    while (len - at >= 4 && text[at + 3] != '=' && base64_decode (text + at, 4, bytes, sizeof (bytes)) >= 0)
        at += 4;
    for (int i = 0; i < 4 && at < len; i++, at++) {
        group[i] = text[at];
        if (group[i] == '=' || base64_decode (group, 4, bytes, sizeof (bytes)) < 0)
            break;
    }
    return at;
}

ssize_t idcomp_base64_parse (const char *text, size_t len, void *bytes, size_t size, size_t *errpos)
{
    ssize_t n = base64_decode (text, len, bytes, size);

    if (n < 0 && errno == EINVAL) {
        if (errpos)
            *errpos = fault_at (text, len);
        errno = IDCOMP_ECORRUPT_BASE64;
    }
    return n;
}
