/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* base64.c - a stored form as text, with the compressor's own error */

#include <errno.h>

#include <idtree/idcomp.h>

#include "libutil/base64.h"

size_t idcomp_base64_encode (const void *data, size_t size, char *text)
{
    return base64_encode (data, size, text);
}

long idcomp_base64_decode (const char *text, size_t len, void *buf, size_t size)
{
    ssize_t n = base64_decode (text, len, buf, size);

    if (n < 0 && errno == EINVAL)
        errno = IDCOMP_ECORRUPT_BASE64;
    return n;
}
