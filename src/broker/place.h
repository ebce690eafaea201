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
    bool ours; /* a private folder */
};

/* Use the folder 'rundir': it is made if missing, and stays at the end. If 'rundir' is NULL, make a private folder in
 * 'tmpdir', which is removed with its content at the end. The folder has at least the permissions 'mode'. Returns 0, or
 * -1 with errno set and 'errp' filled.
 */
int place_init (struct place *p, const char *rundir, const char *tmpdir, mode_t mode, idt_error_t *errp);
void place_fini (struct place *p); /* an object of zero bytes is fine, too */

/* Choose the endpoint at which 'rank' listens for children. Returns 0, or -1 with errno set and 'errp' filled. */
int place_choose (const struct place *p, const struct boot *boot, uint32_t rank, struct attrs *attrs, char *buf,
                  size_t size, idt_error_t *errp);

/* Write the endpoint at which children reach a broker that is bound to 'bound'. For "all addresses" it has an address
 * that other hosts can reach; or 127.0.0.1, if the instance is on this host or no such address is found.
 */
void place_announce (const struct boot *boot, const char *bound, char *buf, size_t size);

#endif /* BROKER_PLACE_H */
