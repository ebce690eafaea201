/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reload.h - configuration files that are read again while brokers run
 *
 * Attributes of the command line keep their values. Of the others, settable attributes take their new values, and the
 * addresses of other hosts are read again. Attributes that cannot change in a running broker are reported, and change
 * at its restart. Attributes that were removed from the files return to their defaults.
 */
#ifndef BROKER_RELOAD_H
#define BROKER_RELOAD_H

#include <jansson.h>

#include "broker/base/attr.h"

struct broker;

struct reload_conf {
    struct attrs *given; /* as at the start; attributes without an origin are of the command line */
    const char **files;  /* in their order */
    size_t nfiles;
};

/* Read the files again; the command line overrides them. NULL with errno set (ENOENT: no files; EINVAL: the content of
 * a file) and 'errp' filled.
 */
struct attrs *reload_read (const struct reload_conf *conf, idt_error_t *errp);

/* The result: arrays of attribute names. */
struct reload_report {
    json_t *changed;
    json_t *later; /* change when the broker is started again */
};

/* Check that a broker can take over 'fresh'. Returns 0, or -1 with errno EINVAL and 'errp' filled. */
int broker_check_reload (struct broker *b, struct attrs *fresh, idt_error_t *errp);

/* Take over the changes in one broker. All brokers must have checked them. */
void broker_reload (struct broker *b, struct attrs *fresh, struct reload_report *report);

#endif /* BROKER_RELOAD_H */
