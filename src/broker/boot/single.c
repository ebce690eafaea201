/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* single.c - all brokers are in this process, so nothing is exchanged */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "broker/boot/method.h"
#include "libutil/errprintf.h"

static void *create (const struct boot_conf *conf, struct boot_self *self, idt_error_t *errp)
{
    void *m = malloc (1); /* has no data, but must not be NULL */

    if (!m) {
        errprintf (errp, "%s", strerror (errno));
        return NULL;
    }
    *self = (struct boot_self){ .size = conf->size, .processes = 1, .tasks = 1, .one_host = true };
    return m;
}

static void destroy (void *m)
{
    free (m);
}

const struct boot_method boot_single = { .name = "single", .create = create, .destroy = destroy };
