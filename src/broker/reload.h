/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reload.h - configuration files that are read again while brokers run
 *
 * What was given on the command line stays.  Of the rest, settable attributes take their new values, and where the
 * other hosts are is known anew; what cannot change in a running broker is told, and waits for its restart.  What was
 * taken out of the files is as if it had never been there.
 */
#ifndef BROKER_RELOAD_H
#define BROKER_RELOAD_H

#include <jansson.h>

#include "broker/base/attr.h"

struct broker;

struct reload_conf {
    struct attrs *given; /* at the start: what has no origin there is the command line's */
    const char **files;  /* in their order */
    size_t nfiles;
};

/* What the files say now, under what the command line says.  NULL with errno set (ENOENT: there are no files; EINVAL:
 * what is in one of them) and 'errp' filled.
 */
struct attrs *reload_read (const struct reload_conf *conf, idt_error_t *errp);

/* What became of it: names of attributes in arrays. */
struct reload_report {
    json_t *changed;
    json_t *later; /* they take effect when the broker is started again */
};

/* Whether one broker could take it over.  Returns 0, or -1 with errno EINVAL and 'errp' filled. */
int broker_check_reload (struct broker *b, struct attrs *fresh, idt_error_t *errp);

/* Take over in one broker what has changed, when all have checked it. */
void broker_reload (struct broker *b, struct attrs *fresh, struct reload_report *report);

#endif /* BROKER_RELOAD_H */
