/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pmix_none.c - replaces pmix.c in a build without PMIx */
#include "config.h"

#include <errno.h>

#include "broker/boot/method.h"
#include "libutil/errprintf.h"

static void *create (const struct boot_conf *conf, struct boot_self *self, idt_error_t *errp)
{
    errsetf (errp, ENOSYS,
             "a launcher that speaks PMIx started this, but this broker was built without PMIx "
             "(configure --with-pmix)");
    return NULL;
}

static void destroy (void *m)
{
}

const struct boot_method boot_pmix = { .name = "pmix", .create = create, .destroy = destroy };
