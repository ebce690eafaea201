/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* library.h - load libidtree when it is first needed
 *
 * The server's program has functions with the same names as some in libidtree's libraries (json_object), and the linker
 * would use those. So the library is loaded with its own symbols first (RTLD_DEEPBIND), and is called through this
 * table. A session whose broker shares its page does not need it.
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

/* The library, or NULL with the reason in '*error' (borrowed until the next call). */
const struct library *library_load (const char **error);

#endif /* POSTGRESQL_LIBRARY_H */
