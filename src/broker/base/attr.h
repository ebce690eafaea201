/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* attr.h - named attributes of a broker
 *
 * Values are strings. An attribute is immutable (it stays the same for the life of the broker, and clients cache it),
 * or settable (clients with the right may change it, and its owner may refuse a value), or neither of these (clients
 * read it, and only the broker changes it). If no code ever defines or reads an attribute of the command line, its name
 * was misspelt: see attr_unclaimed ().
 *
 * All functions belong to the broker's thread, except attr_default () and attr_read (), which any thread may call.
 */
#ifndef BROKER_ATTR_H
#define BROKER_ATTR_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/error.h>

struct attrs;

enum attr_flag {
    ATTR_IMMUTABLE = 1, /* also the value on the wire (protocol.md section 4) */
    ATTR_SETTABLE = 2,  /* clients may change it while the broker runs */
};

/* Callbacks of the owner of a settable attribute. The first one checks a new value: it returns 0, or -1 with 'errp'
 * filled with what the value must be. The second one gets an accepted value.
 */
typedef int (*attr_check_f) (const char *value, void *arg, idt_error_t *errp);
typedef void (*attr_take_f) (const char *name, const char *value, void *arg);

#define ATTR_NAME_MAX 256    /* bytes */
#define ATTR_VALUE_MAX 65536 /* bytes of a value from outside; values of the broker itself may be longer (hostlist) */

struct attrs *attrs_create (void);         /* NULL with errno ENOMEM */
struct attrs *attrs_ref (struct attrs *a); /* in the broker's thread only, like attrs_destroy () */
void attrs_destroy (struct attrs *a);      /* drops a reference; the last one frees the object; NULL is fine */

/* Copy the values and their origins for another broker. The copies have no flags, no owner and no default, and are
 * unclaimed. NULL with errno ENOMEM.
 */
struct attrs *attrs_copy (const struct attrs *a);

/* Set an attribute from the command line; a later call overrides an earlier one. The name must be printable ASCII, and
 * the value UTF-8 without control characters, so that every response can carry them. Returns 0, or -1 with errno ENOMEM
 * or EINVAL and 'errp' filled.
 */
int attr_give (struct attrs *a, const char *name, const char *value, idt_error_t *errp);

/* attr_give_at (): the same for a line of a file; 'origin', "FILE:LINE", is copied. attr_origin () returns the origin
 * (borrowed), or NULL for an attribute without one. attr_set_origin () changes the origin of an existing attribute.
 */
int attr_give_at (struct attrs *a, const char *name, const char *value, const char *origin, idt_error_t *errp);
const char *attr_origin (struct attrs *a, const char *name);
int attr_set_origin (struct attrs *a, const char *name, const char *origin, idt_error_t *errp);

/* Report a wrong value: fill 'errp' with "FILE:LINE: attribute NAME=VALUE: " (only NAME=VALUE without an origin) and
 * the text of the caller, which says what the value must be. Returns -1 with errno EINVAL.
 */
int attr_fault (struct attrs *a, const char *name, idt_error_t *errp, const char *fmt, ...)
    __attribute__ ((format (printf, 4, 5)));

/* If 'text', an error text of a module, begins with NAME=VALUE of an attribute from a file, return the origin of this
 * attribute (borrowed), else "".
 */
const char *attr_blamed (struct attrs *a, const char *text);

/* Define an attribute. The attribute gets its value from the command line, or else gets 'value'. Without both it stays
 * undefined ('value' may be NULL). Returns 0, or -1 with the errno values of attr_give (), or EINVAL (ATTR_IMMUTABLE
 * with a 'value', such as "rank", may not be set on the command line) or EEXIST (defined already, or set and read
 * already).
 */
int attr_define (struct attrs *a, const char *name, const char *value, int flags, idt_error_t *errp);

/* Define an attribute unless it is already defined. Modules use this call, because they may be loaded again. Returns
 * the attribute's value like attr_get (), or NULL with the errno of attr_give ().
 */
const char *attr_default (struct attrs *a, const char *name, const char *value, idt_error_t *errp);

/* The default of an attribute, borrowed; NULL: the attribute has no default or is not defined. */
const char *attr_fallback (struct attrs *a, const char *name);

/* Set the owner of a settable attribute: 'check' is called for each new value, 'take' for each accepted one. This call
 * already calls both for the present value. Returns 0, or -1 with errno ENOENT or EINVAL and 'errp' filled.
 */
int attr_own (struct attrs *a, const char *name, attr_check_f check, attr_take_f take, void *arg, idt_error_t *errp);

/* The value, borrowed until the value changes; NULL with errno ENOENT. Only the broker and its modules may call this,
 * because the call claims the attribute, even one that does not exist.
 */
const char *attr_get (struct attrs *a, const char *name, int *flags);

/* The same without claiming the attribute, for requests of clients, which may name any attribute. */
const char *attr_look (struct attrs *a, const char *name, int *flags);

/* Whether an attribute was defined or read. If an attribute of a file was not, its name was misspelt. */
bool attr_is_known (struct attrs *a, const char *name);

/* Like attr_get (), but any thread may call it, and it returns a copy, which the caller frees. */
char *attr_read (struct attrs *a, const char *name);

/* Define an attribute like attr_default (), and parse its value, which must be within a range: a number, a switch, a
 * size or a time. Return 0, or -1 with errno EINVAL or ENOMEM, 'errp' filled and '*value' untouched.
 */
int attr_u32 (struct attrs *a, const char *name, const char *unless_given, uint32_t min, uint32_t max, uint32_t *value,
              idt_error_t *errp);
int attr_size (struct attrs *a, const char *name, const char *unless_given, uint64_t min, uint64_t max, uint64_t *value,
               idt_error_t *errp); /* k, M or G may follow */
int attr_switch (struct attrs *a, const char *name, const char *unless_given, bool *value,
                 idt_error_t *errp); /* words of parse_switch () */
int attr_seconds (struct attrs *a, const char *name, const char *unless_given, double min, double max, double *value,
                  idt_error_t *errp); /* units of parse_duration () */

/* The broker itself sets a value; the owner of the attribute does not check it. Returns 0, or -1 with the errno of
 * attr_give ().
 */
int attr_update (struct attrs *a, const char *name, const char *value, idt_error_t *errp);

/* A client sets a value. Returns 0, or -1 with errno ENOENT, EINVAL or ENOMEM and 'errp' filled. */
int attr_set (struct attrs *a, const char *name, const char *value, idt_error_t *errp);

/* Check a value like attr_set (), but change nothing. */
int attr_check (struct attrs *a, const char *name, const char *value, idt_error_t *errp);

/* Call 'cb' for each attribute, in order of names. */
void attr_foreach (struct attrs *a, void (*cb) (const char *name, const char *value, void *arg), void *arg);

/* Find an attribute of the command line that no code has defined or read, and for which 'excused' (may be NULL) returns
 * false. NULL: there is no such attribute.
 */
const char *attr_unclaimed (struct attrs *a, bool (*excused) (const char *name, void *arg), void *arg);

#endif /* BROKER_ATTR_H */
