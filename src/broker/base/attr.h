/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* attr.h - named attributes of a broker
 *
 * Values are strings. An attribute is one of: immutable (fixed for the life of the broker; clients cache it), settable
 * (clients with the right may change it; its owner may refuse a value), or neither (clients read it, the broker changes
 * it). An attribute of the command line that no code ever defines or reads was misspelt: attr_unclaimed ().
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

/* The owner of a settable attribute checks a new value: returns 0, or -1 with 'errp' filled with what the value must
 * be. The second callback gets an accepted value.
 */
typedef int (*attr_check_f) (const char *value, void *arg, idt_error_t *errp);
typedef void (*attr_take_f) (const char *name, const char *value, void *arg);

#define ATTR_NAME_MAX 256    /* bytes */
#define ATTR_VALUE_MAX 65536 /* bytes of a value from outside; the broker's own may be longer (hostlist) */

struct attrs *attrs_create (void);         /* NULL with errno ENOMEM */
struct attrs *attrs_ref (struct attrs *a); /* broker's thread only, as attrs_destroy () */
void attrs_destroy (struct attrs *a);      /* drops a reference; frees with the last one; NULL is fine */

/* Copy the values as set and unclaimed, for another broker. NULL with errno ENOMEM. */
struct attrs *attrs_copy (const struct attrs *a);

/* Set an attribute from the command line; the last call wins. Names are printable ASCII, values UTF-8 without control
 * characters, so that every response can carry them. Returns 0, or -1 with errno ENOMEM or EINVAL and 'errp' filled.
 */
int attr_give (struct attrs *a, const char *name, const char *value, idt_error_t *errp);

/* The same for a line of a file: 'origin', "FILE:LINE", is copied. attr_origin () returns it (borrowed; NULL: no
 * origin), and attr_set_origin () changes the origin of an existing attribute.
 */
int attr_give_at (struct attrs *a, const char *name, const char *value, const char *origin, idt_error_t *errp);
const char *attr_origin (struct attrs *a, const char *name);
int attr_set_origin (struct attrs *a, const char *name, const char *origin, idt_error_t *errp);

/* Report a wrong value: fill 'errp' with "FILE:LINE: attribute NAME=VALUE: " and the text of the caller, which says
 * what the value must be. Returns -1 with errno EINVAL.
 */
int attr_fault (struct attrs *a, const char *name, idt_error_t *errp, const char *fmt, ...)
    __attribute__ ((format (printf, 4, 5)));

/* The origin of the attribute whose NAME=VALUE begins 'text', an error text of a module; "" without an origin.
 * Borrowed.
 */
const char *attr_blamed (struct attrs *a, const char *text);

/* Define an attribute: its value is the one of the command line, else 'value' (NULL: it stays undefined). Returns 0, or
 * -1 as attr_give (), or with errno EINVAL (ATTR_IMMUTABLE with a 'value', such as "rank", may not be set on the
 * command line) or EEXIST (defined already, or set and read already).
 */
int attr_define (struct attrs *a, const char *name, const char *value, int flags, idt_error_t *errp);

/* Define an attribute unless it is already defined, for modules, which may be loaded again. Returns its value, as
 * attr_get (), or NULL with errno as attr_give ().
 */
const char *attr_default (struct attrs *a, const char *name, const char *value, idt_error_t *errp);

/* The default of an attribute, borrowed; NULL: no default, or not defined. */
const char *attr_fallback (struct attrs *a, const char *name);

/* Set the owner of a settable attribute: 'check' is called for each new value, 'take' for each accepted one. Both are
 * called now for the present value. Returns 0, or -1 with errno ENOENT or EINVAL and 'errp' filled.
 */
int attr_own (struct attrs *a, const char *name, attr_check_f check, attr_take_f take, void *arg, idt_error_t *errp);

/* The value, borrowed until it changes; NULL with errno ENOENT. Only for the broker and its modules: the call claims
 * the attribute, even one that does not exist.
 */
const char *attr_get (struct attrs *a, const char *name, int *flags);

/* The same for requests of clients, which may name any attribute: it claims nothing. */
const char *attr_look (struct attrs *a, const char *name, int *flags);

/* Whether an attribute was defined or read. Any other attribute in a file was misspelt. */
bool attr_is_known (struct attrs *a, const char *name);

/* As attr_get (), for any thread: returns a copy that the caller frees. */
char *attr_read (struct attrs *a, const char *name);

/* Define an attribute as attr_default (), and parse its value as a number, a switch, a size or a time within a range.
 * Return 0, or -1 with errno EINVAL or ENOMEM, 'errp' filled and '*value' untouched.
 */
int attr_u32 (struct attrs *a, const char *name, const char *unless_given, uint32_t min, uint32_t max, uint32_t *value,
              idt_error_t *errp);
int attr_size (struct attrs *a, const char *name, const char *unless_given, uint64_t min, uint64_t max, uint64_t *value,
               idt_error_t *errp); /* with k, M, G */
int attr_switch (struct attrs *a, const char *name, const char *unless_given, bool *value,
                 idt_error_t *errp); /* as parse_switch () */
int attr_seconds (struct attrs *a, const char *name, const char *unless_given, double min, double max, double *value,
                  idt_error_t *errp); /* as parse_duration () */

/* Set by the broker, without a check by the owner. Returns 0, or -1 as attr_give (). */
int attr_update (struct attrs *a, const char *name, const char *value, idt_error_t *errp);

/* Set by a client.  Returns 0, or -1 with errno ENOENT, EINVAL or ENOMEM and 'errp' filled. */
int attr_set (struct attrs *a, const char *name, const char *value, idt_error_t *errp);

/* Check a value as attr_set () does, without a change. */
int attr_check (struct attrs *a, const char *name, const char *value, idt_error_t *errp);

/* Call 'cb' for each attribute, in order of names. */
void attr_foreach (struct attrs *a, void (*cb) (const char *name, const char *value, void *arg), void *arg);

/* An attribute of the command line that was neither defined nor read, and that 'excused' (may be NULL) does not accept.
 * NULL: all are claimed.
 */
const char *attr_unclaimed (struct attrs *a, bool (*excused) (const char *name, void *arg), void *arg);

#endif /* BROKER_ATTR_H */
