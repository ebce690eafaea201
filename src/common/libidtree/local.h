/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* local.h - the transport of a handle that is connected to a broker over a UNIX socket */
#ifndef LIBIDTREE_LOCAL_H
#define LIBIDTREE_LOCAL_H

#include "libidtree/transport.h"
#include "libmsg/stream.h"

struct local {
    int fd; /* -1: not connected */
    struct msg_stream *stream;
};

extern const struct idt_transport local_transport; /* 'impl' is a struct local, which it frees */

/* An unconnected struct local; local_transport.destroy () frees it. NULL with errno ENOMEM. */
struct local *local_create (void);

/* Close the connection, if any. */
void local_hang_up (struct local *local);

#endif /* LIBIDTREE_LOCAL_H */
