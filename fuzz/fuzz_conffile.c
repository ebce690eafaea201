/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_conffile.c - an arbitrary configuration file is accepted, or is refused with the number of a line */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "broker/conffile.h"
#include "fuzz.h"

static void check_one (const char *name, const char *value, void *arg)
{
    must (attr_give (arg, name, value, NULL) == 0);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    struct attrs *a = attrs_create (), *again = attrs_create ();
    int fd = memfd_create ("conf", MFD_CLOEXEC);
    idt_error_t err = { "" };
    char path[64];

    must (a && again && fd >= 0 && write (fd, data, size) == (ssize_t)size);
    snprintf (path, sizeof (path), "/proc/self/fd/%d", fd);
    if (conffile_load (a, path, &err) < 0)
        must (errno != 0 && strncmp (err.text, path, strlen (path)) == 0 && err.text[strlen (path)] == ':');
    attr_foreach (a, check_one, again);
    attrs_destroy (again);
    attrs_destroy (a);
    close (fd);
    return 0;
}
