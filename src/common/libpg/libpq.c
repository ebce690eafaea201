/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* libpq.c - load libpq at run time */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "libpg/libpq.h"
#include "libutil/errprintf.h"

#define LIBRARY "libpq.so.5"

static struct libpq functions;
static char failure[256]; /* "": it is loaded */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load (void)
{
    const struct {
        const char *name;
        void *at;
    } symbols[] = {
#define LIBPQ_SYMBOL(name) { #name, &functions.name },
        LIBPQ_FUNCTIONS (LIBPQ_SYMBOL)
    };
    void *library = dlopen (LIBRARY, RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        snprintf (failure, sizeof (failure), "%s: install libpq5", dlerror ());
        return;
    }
    for (size_t i = 0; i < sizeof (symbols) / sizeof (symbols[0]); i++) {
        void *symbol = dlsym (library, symbols[i].name);

        if (!symbol) {
            snprintf (failure, sizeof (failure), LIBRARY " has no %s: version 14 or newer is needed", symbols[i].name);
            return;
        }
        memcpy (symbols[i].at, &symbol, sizeof (symbol));
    }
}

const struct libpq *libpq_load (idt_error_t *errp)
{
    pthread_once (&once, load);
    if (failure[0])
        return errsetf_null (errp, ENOSYS, "%s", failure);
    return &functions;
}
