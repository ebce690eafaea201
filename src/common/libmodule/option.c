/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* option.c - a module's attributes */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "libmodule/option.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"

int module_option_bad (const char *name, const char *value, const char *want, idt_error_t *errp)
{
    return errsetf (errp, EINVAL, "%s=%s: must be %s", name, value, want);
}

int module_option_none (int argc, char **argv, idt_error_t *errp)
{
    return argc == 0 ? 0
                     : errsetf (errp, EINVAL,
                                "'%.64s': this module takes no arguments: set an attribute when the "
                                "broker starts",
                                argv[0]);
}

int module_option_number (idt_t *h, const char *name, const char *unless_given, uint32_t min, uint32_t max,
                          uint32_t *value, idt_error_t *errp)
{
    const char *s = unless_given ? idt_attr_define (h, name, unless_given) : idt_attr_get (h, name);
    uint64_t n;
    char want[64];

    if (!s && !unless_given)
        return 0;
    if (!s)
        return errprintf (errp, "%s: %s", name, strerror (errno));
    snprintf (want, sizeof (want), "a number from %u to %u", min, max);
    if (parse_number (s, min, max, &n) < 0)
        return module_option_bad (name, s, want, errp);
    *value = (uint32_t)n;
    return 0;
}

int module_option_duration (idt_t *h, const char *name, const char *unless_given, uint64_t min_ms, uint64_t max_ms,
                            const char *want, uint64_t *ms, idt_error_t *errp)
{
    const char *s = idt_attr_define (h, name, unless_given);

    if (!s)
        return errprintf (errp, "%s: %s", name, strerror (errno));
    if (parse_duration (s, max_ms, ms) < 0 || *ms < min_ms)
        return module_option_bad (name, s, want, errp);
    return 0;
}

int module_option_switch (idt_t *h, const char *name, const char *unless_given, bool *value, idt_error_t *errp)
{
    const char *s = idt_attr_define (h, name, unless_given);

    if (!s)
        return errprintf (errp, "%s: %s", name, strerror (errno));
    return parse_switch (s, value) == 0 ? 0 : module_option_bad (name, s, SWITCH_WORDS, errp);
}

bool module_option_is_off (const char *value)
{
    bool on = true;

    return parse_switch (value, &on) == 0 && !on;
}

int module_option_statedir (idt_t *h, const char *what, const char **dir, idt_error_t *errp)
{
    if (!(*dir = idt_attr_get (h, "statedir")))
        *dir = idt_attr_get (h, "rundir");
    if (!*dir || !**dir)
        return errsetf (errp, EINVAL, "rank 0 needs a folder to keep %s in: set statedir", what);
    return 0;
}
