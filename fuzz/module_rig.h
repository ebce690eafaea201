/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module_rig.h - a module in a broker that is made of the fuzzer's input
 *
 * Input is lines:
 *     >TOPIC PAYLOAD    a client asks                    "PAYLOAD" may be missing
 *     ^TOPIC PAYLOAD    a broker below asks
 *     !TOPIC PAYLOAD    an event
 *     =PAYLOAD          the oldest request of the module's that is open is answered so ("=": empty)
 *     -NUMBER           ... with this error
 *     +PAYLOAD          the newest is answered so
 *     ~                 it is refused what it sends next
 *     .                 its timers run
 * Each request of a client is answered once: at the latest when the module ends.
 */
#ifndef FUZZ_MODULE_RIG_H
#define FUZZ_MODULE_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct module_rig {
    const char *name;
    const char *const *attrs; /* name, value, ..., NULL: what is given */
};

void module_rig_run (const struct module_rig *conf, const uint8_t *data, size_t size);

#endif /* FUZZ_MODULE_RIG_H */
