/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* standin.h - the other end of a module's handle: its broker, which a test plays
 *
 * What a module sends, says to the log (topic "log") and tells of its start (topic "module.status") comes out in order;
 * what goes in, it receives.  Any thread may be at either end.
 */
#ifndef T_FLUX_STANDIN_H
#define T_FLUX_STANDIN_H

#include <flux/core.h>
#include <jansson.h>

#include <idtree/msg.h>

#define STANDIN_LOG "log" /* {"level":i,"text":s} */

/* A handle for the module of that name at a broker with these attributes (rank and size, too), and with that
 * configuration.  Ends the test where there is no memory.
 */
flux_t *standin_create (const char *name, const json_t *attrs, const json_t *config);
void standin_destroy (flux_t *h);

/* Hand a message to the module (borrowed). */
void standin_put (flux_t *h, const idt_msg_t *msg);

/* The next thing that the module sent, for the caller to unref; NULL: there was none for 'ms' milliseconds. */
idt_msg_t *standin_take (flux_t *h, int ms);

#endif /* T_FLUX_STANDIN_H */
