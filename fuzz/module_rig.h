/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module_rig.h - a module in a broker whose messages are the fuzzer's input
 *
 * Input is lines:
 *     >TOPIC PAYLOAD    request of a client; "PAYLOAD" may be missing
 *     ^TOPIC PAYLOAD    request of a child broker
 *     !TOPIC PAYLOAD    event
 *     =PAYLOAD          answer to the oldest pending request of the module ("=": an empty answer)
 *     -NUMBER           answer to the oldest pending request of the module with this error
 *     +PAYLOAD          answer to the newest pending request of the module
 *     ~                 the module's next send fails
 *     .                 the module's timers run
 *
 * Each request of a client must be answered exactly once, at the latest when the module ends.
 */
#ifndef FUZZ_MODULE_RIG_H
#define FUZZ_MODULE_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct module_rig {
    const char *name;
    const char *const *attrs; /* the attributes: name, value, ..., NULL */
};

void module_rig_run (const struct module_rig *conf, const uint8_t *data, size_t size);

#endif /* FUZZ_MODULE_RIG_H */
