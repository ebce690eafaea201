/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* option.h - a module's attributes. An invalid value is refused with a sentence that states the valid ones.
 *
 * Functions return 0, or -1 with errno set (EINVAL: the value is invalid) and 'errp' filled.
 */
#ifndef LIBMODULE_OPTION_H
#define LIBMODULE_OPTION_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/handle.h>

/* For a module that takes no arguments, only attributes: refuse any argument. */
int module_option_none (int argc, char **argv, idt_error_t *errp);

/* Set the error "NAME=VALUE: must be WANT". The broker adds where the value was given (attr_blamed ()). Returns -1. */
int module_option_bad (const char *name, const char *value, const char *want, idt_error_t *errp);

/* 'unless_given' is the default; if it is NULL and the attribute is not set, '*value' is not changed. */
int module_option_number (idt_t *h, const char *name, const char *unless_given, uint32_t min, uint32_t max,
                          uint32_t *value, idt_error_t *errp);
int module_option_duration (idt_t *h, const char *name, const char *unless_given, uint64_t min_ms, uint64_t max_ms,
                            const char *want, uint64_t *ms, idt_error_t *errp);

/* Read a boolean, in the syntax of parse_switch (). */
int module_option_switch (idt_t *h, const char *name, const char *unless_given, bool *value, idt_error_t *errp);

/* Whether a word turns off an option that has more than two values: off, false, no or 0. */
bool module_option_is_off (const char *value);

/* Find the folder in which rank 0 keeps 'what': statedir, else rundir. '*dir' is borrowed. */
int module_option_statedir (idt_t *h, const char *what, const char **dir, idt_error_t *errp);

#endif /* LIBMODULE_OPTION_H */
