/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* second.c - a second broker for a rank of a running instance, for shell tests
 *
 *     second PMIDIR RUNDIR LOG SIZE FANOUT RANK [ATTR=VALUE]...
 *
 * PMIDIR is the folder in which host.so stored the messages of the instance's launcher. RUNDIR, which must exist, is
 * used by the second broker alone. The broker is killed when standard input ends.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "die.h"
#include "twin.h"

static void stdin_cb (idt_watcher_t *w, int revents, void *arg)
{
    char buf[64];

    if (read (STDIN_FILENO, buf, sizeof (buf)) <= 0)
        idt_reactor_stop (arg);
}

int main (int argc, char **argv)
{
    idt_reactor_t *r = idt_reactor_create ();
    idt_watcher_t *in = idt_fd_watcher_create (r, STDIN_FILENO, IDT_POLLIN, stdin_cb, r);
    char socket[256];

    errno = EINVAL;
    if (!r || !in || argc < 7)
        die ("usage: second PMIDIR RUNDIR LOG SIZE FANOUT RANK [ATTR=VALUE]...");
    snprintf (socket, sizeof (socket), "%s/second.local", argv[2]);
    struct instance_config instance = { .logfile = argv[3],
                                        .statedir = argv[2],
                                        .size = (uint32_t)atoi (argv[4]),
                                        .fanout = (uint32_t)atoi (argv[5]),
                                        .attrs = (const char *const *)argv + 7 };
    struct twin_config config = { BROKER, argv[1], argv[2], socket, &instance };
    struct twin *twin = twin_create (r, &config);

    if (!twin_start (twin, (uint32_t)atoi (argv[6])))
        die ("nothing was kept of that rank");
    idt_watcher_start (in);
    idt_reactor_run (r, IDT_REACTOR_DEFAULT);
    twin_destroy (twin);
    idt_watcher_destroy (in);
    idt_reactor_destroy (r);
    return 0;
}
