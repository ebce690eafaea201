/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* library.h - libidtree, loaded when it is needed first
 *
 * The server's program has functions with names that libidtree's libraries have, too (json_object), and the linker
 * takes those.  So it is loaded with its own in front (RTLD_DEEPBIND), and known by this table.  A session whose broker
 * shares its page with it never needs it.
 */
#ifndef POSTGRESQL_LIBRARY_H
#define POSTGRESQL_LIBRARY_H

#include <idtree/generate.h>

struct library {
    __typeof__ (&idt_open_ex) open_ex;
    __typeof__ (&idt_close) close;
    __typeof__ (&idt_lost_error) lost_error;
    __typeof__ (&idt_rpc) rpc;
    __typeof__ (&idt_rpc_get_unpack) rpc_get_unpack;
    __typeof__ (&idt_future_wait) future_wait;
    __typeof__ (&idt_future_is_ready) future_is_ready;
    __typeof__ (&idt_future_errnum) future_errnum;
    __typeof__ (&idt_future_error) future_error;
    __typeof__ (&idt_future_destroy) future_destroy;
    __typeof__ (&idt_fluid_generate_async) generate_async;
    __typeof__ (&idt_fluid_generate_get) generate_get;
};

/* It, or NULL with the reason in '*error' (borrowed until it is called again). */
const struct library *library_load (const char **error);

#endif /* POSTGRESQL_LIBRARY_H */
