/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sqlite.c - SQLite, loaded when it is needed */
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "libsqlite/sqlite.h"

static const struct {
    const char *symbol;
    size_t offset;
} calls[] = {
#define SQLITE_ROW_OF(name) { "sqlite3_" #name, offsetof (struct sqlite, name) },
    SQLITE_CALLS (SQLITE_ROW_OF)
#undef SQLITE_ROW_OF
};

int sqlite_load (struct sqlite *sqlite)
{
    struct sqlite s = { .dso = dlopen ("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL) };

    for (size_t i = 0; s.dso && i < sizeof (calls) / sizeof (calls[0]); i++) {
        void *address = dlsym (s.dso, calls[i].symbol);

        memcpy ((char *)&s + calls[i].offset, &address, sizeof (address));
        if (!address)
            sqlite_unload (&s);
    }
    if (!s.dso) {
        errno = ENOENT;
        return -1;
    }
    *sqlite = s;
    return 0;
}

void sqlite_unload (struct sqlite *sqlite)
{
    if (sqlite->dso)
        dlclose (sqlite->dso);
    sqlite->dso = NULL;
}
