/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* local.h - a handle's way to a broker over a UNIX socket */
#ifndef LIBIDTREE_LOCAL_H
#define LIBIDTREE_LOCAL_H

#include "libidtree/transport.h"
#include "libmsg/stream.h"

struct local {
    int fd; /* -1: not connected, or no more */
    struct msg_stream *stream;
};

extern const struct idt_transport local_transport; /* of a struct local, which it destroys */

/* One that is not connected, for local_transport.destroy ().  NULL with errno ENOMEM. */
struct local *local_create (void);

/* Close what is open, if anything is. */
void local_hang_up (struct local *local);

#endif /* LIBIDTREE_LOCAL_H */
