/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* message.c - converts messages between libflux and libidtree */
#include <errno.h>
#include <stdlib.h>

#include "flux/message.h"

#define SMALL 1024 /* bytes of a message that is converted without an allocation */

/* Return a buffer of 'size' bytes: 'small', if it suffices. */
static void *room (size_t size, char small[SMALL])
{
    return size <= SMALL ? small : malloc (size);
}

static void leave (void *buf, const char *small)
{
    int saved = errno;

    if (buf != small)
        free (buf);
    errno = saved;
}

idt_msg_t *message_from_flux (const flux_msg_t *in)
{
    char small[SMALL], *buf;
    ssize_t size = flux_msg_encode_size (in);
    idt_msg_t *msg = NULL;

    if (size < 0 || !(buf = room ((size_t)size, small)))
        return NULL;
    if (flux_msg_encode (in, buf, (size_t)size) == 0)
        msg = idt_msg_decode (buf, (size_t)size);
    leave (buf, small);
    return msg;
}

flux_msg_t *message_to_flux (const idt_msg_t *in)
{
    char small[SMALL], *buf;
    size_t size = idt_msg_encode_size (in);
    flux_msg_t *msg = NULL;

    if (!(buf = room (size, small)))
        return NULL;
    if (idt_msg_encode (in, buf, size) >= 0)
        msg = flux_msg_decode (buf, size);
    leave (buf, small);
    return msg;
}
