/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* choose.h - the method by which this process finds the other brokers, from its attributes and the traces of a launcher
 */
#ifndef BROKER_BOOT_CHOOSE_H
#define BROKER_BOOT_CHOOSE_H

#include "broker/boot/boot.h"
#include "broker/boot/traces.h"

/* 'asked' is the attribute broker.boot: "auto", or the name of a method. Fills 'conf' except the topology and the
 * deadline. 'pmi_fd' is the number in the environment; its descriptor may be closed. Returns 0, or -1 with errno EINVAL
 * and 'errp' filled with what was found and which option helps.
 */
int boot_choose (struct boot_conf *conf, const char *asked, const struct launcher_traces *t, idt_error_t *errp);

#endif /* BROKER_BOOT_CHOOSE_H */
