/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* horizon_backend.h - where a store keeps the horizon: what horizon_store.c needs of it
 *
 * open (), init (), write () and close () block, and only one of them runs at a time. Functions return 0, or -1 with
 * errno set and 'errp' filled.
 */
#ifndef FLUID_HORIZON_BACKEND_H
#define FLUID_HORIZON_BACKEND_H

#include "modules/fluid/service/horizon_store.h"

struct horizon_backend {
    /* Open the place, so that no other rank 0 can write, and then read it. 'anew': create a file or row that existed
     * once and is missing. Returns NULL like horizon_store_open ().
     */
    void *(*open) (const struct module_place *place, const char *holder, bool anew,
                   struct horizon_store_content *content, idt_error_t *errp);

    /* Fill a new place, durably. */
    int (*init) (void *b, int64_t epoch_ms, const struct lease_record *record, idt_error_t *errp);

    /* Replace the record, durably. As long as the outcome is unknown, write () does not return. */
    int (*write) (void *b, const struct lease_record *record, idt_error_t *errp);

    /* Let init () or write () end soon, with ECANCELED. Another thread calls it. NULL: they end by themselves. */
    void (*stop) (void *b);

    /* As horizon_store_is_unsure (). Another thread calls it. NULL: never. */
    bool (*is_unsure) (void *b, idt_error_t *why);

    /* Close the place, and free the object. Keeps errno. */
    void (*close) (void *b);
};

extern const struct horizon_backend horizon_disk; /* a file in place.dir */
extern const struct horizon_backend horizon_pg;   /* tables in the database place.store */

#endif /* FLUID_HORIZON_BACKEND_H */
