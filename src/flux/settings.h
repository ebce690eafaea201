/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* settings.h - the attributes that Flux's broker does not know: arguments of the module, and Flux's configuration
 *
 *     flux module load idtree-flux.so fluid.lease=10s
 *
 *     [idtree.fluid]
 *     lease = "10s"
 *
 * An argument counts more than the configuration.
 */
#ifndef FLUX_SETTINGS_H
#define FLUX_SETTINGS_H

#include <idtree/error.h>
#include <jansson.h>

struct settings;

/* 'config': the table [idtree] (NULL: none).  Returns NULL with errno EINVAL (an argument that is not NAME=VALUE, a
 * value that is neither a text nor a whole number) or ENOMEM, and a sentence in 'errp'.
 */
struct settings *settings_create (int argc, char **argv, const json_t *config, idt_error_t *errp);
void settings_destroy (struct settings *s); /* NULL is fine */

/* The value of one (borrowed), or NULL where it was not given. */
const char *settings_get (struct settings *s, const char *name);

/* One that was given and nobody has asked for: a slip of the pen.  NULL: none. */
const char *settings_unknown (const struct settings *s);

#endif /* FLUX_SETTINGS_H */
