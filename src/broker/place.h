/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* place.h - where a broker listens: the folder of its sockets, and the endpoint for its children */
#ifndef BROKER_PLACE_H
#define BROKER_PLACE_H

#include <stdbool.h>
#include <sys/types.h>

#include "broker/boot/boot.h"

struct place {
    char *rundir;
    bool ours; /* 'rundir' is a private folder */
};

/* Use the folder 'rundir': it is made if it is missing, and stays at the end. If 'rundir' is NULL, make a private
 * folder in 'tmpdir', which is removed with its content at the end. The folder then has at least the permissions
 * 'mode'. Returns 0, or -1 with errno set and 'errp' filled.
 */
int place_init (struct place *p, const char *rundir, const char *tmpdir, mode_t mode, idt_error_t *errp);
void place_fini (struct place *p); /* an object of zero bytes is allowed */

/* Choose the endpoint at which 'rank' listens for children. Returns 0, or -1 with errno set and 'errp' filled. */
int place_choose (const struct place *p, const struct boot *boot, uint32_t rank, struct attrs *attrs, char *buf,
                  size_t size, idt_error_t *errp);

/* Write to 'buf' the endpoint at which children reach a broker that is bound to 'bound'. If 'bound' means all addresses
 * of the host, 'buf' gets one that other hosts can reach. 'buf' gets 127.0.0.1 if the whole instance is on this host,
 * or if no such address is found.
 */
void place_announce (const struct boot *boot, const char *bound, char *buf, size_t size);

#endif /* BROKER_PLACE_H */
