/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* option.h - a module's attributes: nonsense is refused with a sentence that says what would do
 *
 * Functions return 0, or -1 with errno set (EINVAL: nonsense) and 'errp' filled.
 */
#ifndef LIBMODULE_OPTION_H
#define LIBMODULE_OPTION_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/handle.h>

/* Of a module that has attributes, and no arguments: an argument is nonsense. */
int module_option_none (int argc, char **argv, idt_error_t *errp);

/* "NAME=VALUE: must be WANT", to which the broker adds where that was given (attr_blamed ()).  Returns -1. */
int module_option_bad (const char *name, const char *value, const char *want, idt_error_t *errp);

/* 'unless_given': the value where the attribute was not given; NULL: '*value' stays. */
int module_option_number (idt_t *h, const char *name, const char *unless_given, uint32_t min, uint32_t max,
                          uint32_t *value, idt_error_t *errp);
int module_option_duration (idt_t *h, const char *name, const char *unless_given, uint64_t min_ms, uint64_t max_ms,
                            const char *want, uint64_t *ms, idt_error_t *errp);

/* As parse_switch () reads it. */
int module_option_switch (idt_t *h, const char *name, const char *unless_given, bool *value, idt_error_t *errp);

/* Whether a word turns an option off that has more values than two: off, false, no or 0. */
bool module_option_is_off (const char *value);

/* Where rank 0 keeps 'what': statedir, else rundir; borrowed. */
int module_option_statedir (idt_t *h, const char *what, const char **dir, idt_error_t *errp);

#endif /* LIBMODULE_OPTION_H */
