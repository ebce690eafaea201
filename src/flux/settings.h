/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* settings.h - attributes that Flux's broker does not have, from the module's arguments and Flux's configuration
 *
 *     flux module load idtree-flux.so fluid.lease=10s
 *
 *     [idtree.fluid]
 *     lease = "10s"
 *
 * If both set an attribute, the argument is used.
 */
#ifndef FLUX_SETTINGS_H
#define FLUX_SETTINGS_H

#include <idtree/error.h>
#include <jansson.h>

struct settings;

/* 'config' is the table [idtree], or NULL. Returns NULL with errno EINVAL (an argument is not NAME=VALUE, or a value is
 * neither a text nor a whole number) or ENOMEM, and a sentence in 'errp'.
 */
struct settings *settings_create (int argc, char **argv, const json_t *config, idt_error_t *errp);
void settings_destroy (struct settings *s); /* 's' may be NULL */

/* Return the value of a setting (borrowed), or NULL if it is not set. */
const char *settings_get (struct settings *s, const char *name);

/* Return a setting that was given but never read, such as a misspelled one. Returns NULL if each given setting was
 * read.
 */
const char *settings_unknown (const struct settings *s);

#endif /* FLUX_SETTINGS_H */
