/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* library.c - load libidtree when it is first needed */
#include "library.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define FILE_NAME "libidtree.so.1"

static const struct row {
    const char *name;
    size_t at; /* offset in struct library */
} rows[] = {
    { "idt_open_ex", offsetof (struct library, open_ex) },
    { "idt_close", offsetof (struct library, close) },
    { "idt_lost_error", offsetof (struct library, lost_error) },
    { "idt_rpc", offsetof (struct library, rpc) },
    { "idt_rpc_get_unpack", offsetof (struct library, rpc_get_unpack) },
    { "idt_future_wait", offsetof (struct library, future_wait) },
    { "idt_future_is_ready", offsetof (struct library, future_is_ready) },
    { "idt_future_errnum", offsetof (struct library, future_errnum) },
    { "idt_future_error", offsetof (struct library, future_error) },
    { "idt_future_destroy", offsetof (struct library, future_destroy) },
    { "idt_fluid_generate_async", offsetof (struct library, generate_async) },
    { "idt_fluid_generate_get", offsetof (struct library, generate_get) },
};

const struct library *library_load (const char **error)
{
    static struct library library;
    static void *loaded;
    struct library found;
    void *file;

    if (loaded)
        return &library;
    if (!(file = dlopen (FILE_NAME, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND))) {
        *error = dlerror ();
        return NULL;
    }
    for (size_t i = 0; i < sizeof (rows) / sizeof (rows[0]); i++) {
        void *symbol = dlsym (file, rows[i].name);
        if (!symbol) {
            *error = dlerror (); /* the library stays loaded, because it contains the text */
            return NULL;
        }
        memcpy ((char *)&found + rows[i].at, &symbol, sizeof (symbol));
    }
    library = found;
    loaded = file;
    return &library;
}
