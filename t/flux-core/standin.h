/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* standin.h - the other end of a module's handle: its broker, which a test plays
 *
 * standin_take () returns what the module has sent, in order: its messages, its lines for the log (topic "log") and the
 * report of its start (topic "module.status").  The module receives what the test passes to standin_put ().  Each end
 * may be used by any thread.
 */
#ifndef T_FLUX_STANDIN_H
#define T_FLUX_STANDIN_H

#include <flux/core.h>
#include <jansson.h>

#include <idtree/msg.h>

#define STANDIN_LOG "log" /* its payload: {"level":i,"text":s} */

/* Make a handle for a module with this name.  Its broker has these attributes, with rank and size among them, and this
 * configuration.  Ends the test if memory is short.
 */
flux_t *standin_create (const char *name, const json_t *attrs, const json_t *config);
void standin_destroy (flux_t *h);

/* Send a message to the module.  The message is borrowed. */
void standin_put (flux_t *h, const idt_msg_t *msg);

/* Return the next message of the module, which the caller must unref.  NULL: none arrived for 'ms' milliseconds. */
idt_msg_t *standin_take (flux_t *h, int ms);

#endif /* T_FLUX_STANDIN_H */
