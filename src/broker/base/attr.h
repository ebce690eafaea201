/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* attr.h - named attributes of a broker
 *
 * Values are strings.  An attribute is immutable (fixed for the life of the broker; clients cache it), settable
 * (anyone with the right may change it; its owner may refuse a value), or neither: read only for clients, changed
 * by the broker.  What the command line sets and nobody ever asks for was misspelt: attr_unclaimed ().
 *
 * They are the broker's thread's; others may call attr_default () and attr_read ().
 */
#ifndef BROKER_ATTR_H
#define BROKER_ATTR_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/error.h>

struct attrs;

enum attr_flag {
    ATTR_IMMUTABLE = 1, /* the value on the wire too (protocol.md section 4) */
    ATTR_SETTABLE = 2,  /* by clients, while running */
};

/* A settable attribute's owner looks at a new value: 0, or -1 with 'errp' telling what it must be, to refuse it.  One
 * that was not refused may be taken over afterwards.
 */
typedef int (*attr_check_f) (const char *value, void *arg, idt_error_t *errp);
typedef void (*attr_take_f) (const char *name, const char *value, void *arg);

#define ATTR_NAME_MAX 256    /* bytes */
#define ATTR_VALUE_MAX 65536 /* bytes of what is given or set; the broker's own facts may be longer (hostlist) */

struct attrs *attrs_create (void);         /* NULL with errno ENOMEM */
struct attrs *attrs_ref (struct attrs *a); /* not from other threads, nor attrs_destroy () */
void attrs_destroy (struct attrs *a);      /* it goes with the last reference; NULL is fine */

/* The same values, as given and unclaimed: for another broker.  NULL with errno ENOMEM. */
struct attrs *attrs_copy (const struct attrs *a);

/* Set an attribute from the command line.  Last one wins.  Returns 0, or -1 with errno ENOMEM or EINVAL and 'errp'
 * filled: names are printable ASCII, and values UTF-8 without control characters, so that every answer can carry them.
 */
int attr_give (struct attrs *a, const char *name, const char *value, idt_error_t *errp);

/* The same from a line of a file: 'origin' is copied, "FILE:LINE".  attr_origin () tells it (borrowed; NULL: there is
 * none), and attr_set_origin () says where the value of one that exists comes from now.
 */
int attr_give_at (struct attrs *a, const char *name, const char *value, const char *origin, idt_error_t *errp);
const char *attr_origin (struct attrs *a, const char *name);
int attr_set_origin (struct attrs *a, const char *name, const char *origin, idt_error_t *errp);

/* The value of an attribute is wrong: fill 'errp' with "FILE:LINE: attribute NAME=VALUE: " and what the caller says
 * that it must be.  Returns -1 with errno EINVAL.
 */
int attr_fault (struct attrs *a, const char *name, idt_error_t *errp, const char *fmt, ...)
    __attribute__ ((format (printf, 4, 5)));

/* What a module said of an attribute: the origin of the one whose NAME=VALUE begins 'text', "" where it has none.
 * Borrowed.
 */
const char *attr_blamed (struct attrs *a, const char *text);

/* Define an attribute: the value given on the command line, else 'value' (NULL: none, stays undefined).  Returns
 * 0, or -1 as attr_give (), or with errno EINVAL (given, but immutable facts such as "rank" may not be: ATTR_IMMUTABLE
 * with a 'value'), EEXIST.
 */
int attr_define (struct attrs *a, const char *name, const char *value, int flags, idt_error_t *errp);

/* Define an attribute unless it is defined already, as modules do that may be loaded again.  Returns its value, as
 * attr_get (), or NULL as attr_give () fails.
 */
const char *attr_default (struct attrs *a, const char *name, const char *value, idt_error_t *errp);

/* What it was defined with for the case that nobody gives it, borrowed; NULL: nothing, or it is not defined. */
const char *attr_fallback (struct attrs *a, const char *name);

/* Have 'check' asked about each new value of a settable attribute, and 'take' told it; the present one now.  Returns 0,
 * or -1 with errno ENOENT or EINVAL and 'errp' filled.
 */
int attr_own (struct attrs *a, const char *name, attr_check_f check, attr_take_f take, void *arg, idt_error_t *errp);

/* The value, borrowed until it changes; NULL with errno ENOENT.  Asking claims the attribute, also one that is not
 * there: for the broker and its modules alone.
 */
const char *attr_get (struct attrs *a, const char *name, int *flags);

/* The same for clients, who may ask for anything: it claims nothing. */
const char *attr_look (struct attrs *a, const char *name, int *flags);

/* Whether an attribute was defined, or asked for: another one in a file was misspelt. */
bool attr_is_known (struct attrs *a, const char *name);

/* As attr_get (), for other threads: a copy, for the caller to free. */
char *attr_read (struct attrs *a, const char *name);

/* attr_default (), and the value as a number in a range (or a switch) that is told to who set it wrong.  Return 0, or
 * -1 with errno EINVAL or ENOMEM, 'errp' filled and '*value' untouched.
 */
int attr_u32 (struct attrs *a, const char *name, const char *unless_given, uint32_t min, uint32_t max, uint32_t *value,
              idt_error_t *errp);
int attr_size (struct attrs *a, const char *name, const char *unless_given, uint64_t min, uint64_t max, uint64_t *value,
               idt_error_t *errp); /* with k, M, G */
int attr_switch (struct attrs *a, const char *name, const char *unless_given, bool *value,
                 idt_error_t *errp); /* as parse_switch () reads it */
int attr_seconds (struct attrs *a, const char *name, const char *unless_given, double min, double max, double *value,
                  idt_error_t *errp); /* as parse_duration () reads it */

/* Set by the broker: no questions asked.  Returns 0, or -1 as attr_give (). */
int attr_update (struct attrs *a, const char *name, const char *value, idt_error_t *errp);

/* Set by a client.  Returns 0, or -1 with errno ENOENT or EINVAL and 'errp' filled. */
int attr_set (struct attrs *a, const char *name, const char *value, idt_error_t *errp);

/* What attr_set () would say; nothing changes. */
int attr_check (struct attrs *a, const char *name, const char *value, idt_error_t *errp);

/* Call 'cb' for each attribute, in order of names. */
void attr_foreach (struct attrs *a, void (*cb) (const char *name, const char *value, void *arg), void *arg);

/* An attribute of the command line that nobody defined or asked for, and for which 'excused' (NULL: nobody) does not
 * speak either.  NULL: there is none.
 */
const char *attr_unclaimed (struct attrs *a, bool (*excused) (const char *name, void *arg), void *arg);

#endif /* BROKER_ATTR_H */
