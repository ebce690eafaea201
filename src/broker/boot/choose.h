/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* choose.h - which way this process finds the other brokers, by what it was told and what it sees of a launcher */
#ifndef BROKER_BOOT_CHOOSE_H
#define BROKER_BOOT_CHOOSE_H

#include "broker/boot/boot.h"
#include "broker/boot/traces.h"

/* 'asked' is the attribute broker.boot: "auto", or a method's name.  Fills 'conf' but for the topology and the
 * deadline; 'pmi_fd' is the number in the environment, and may be no open descriptor.  Returns 0, or -1 with errno
 * EINVAL and 'errp' filled: what was seen, and what to pass.
 */
int boot_choose (struct boot_conf *conf, const char *asked, const struct launcher_traces *t, idt_error_t *errp);

#endif /* BROKER_BOOT_CHOOSE_H */
