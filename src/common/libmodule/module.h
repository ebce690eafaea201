/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module.h - what modules share: attributes, answers, reports of figures, requests to other services */
#ifndef LIBMODULE_MODULE_H
#define LIBMODULE_MODULE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <idtree/idtree.h>

#include "libmetrics/metrics.h"
#include "libutil/queue/fifo.h"

/* --- attributes --------------------------------------------------------------------------------------------------
 *
 * An invalid value is refused with a sentence that states the valid ones. Functions return 0, or -1 with errno set
 * (EINVAL: the value is invalid) and 'errp' filled.
 */

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

/* --- answers -----------------------------------------------------------------------------------------------------
 *
 * If an answer cannot be made, the requester gets an error (idt_respond ()). If it cannot be sent, that is logged.
 */

/* Answer a request. 's' and 'text' may be NULL. module_respond_new () steals 's', and module_respond_object () steals
 * 'o'; if that is NULL, memory was exhausted, and the answer is ENOMEM.
 */
void module_respond (idt_t *h, const idt_msg_t *msg, const char *s);
void module_respond_new (idt_t *h, const idt_msg_t *msg, char *s);
void module_respond_raw (idt_t *h, const idt_msg_t *msg, const void *data, size_t size);
void module_respond_object (idt_t *h, const idt_msg_t *msg, json_t *o);
void module_respond_error (idt_t *h, const idt_msg_t *msg, int errnum, const char *text);

/* Whether a request came from the client that the message 'disconnect' reports as disconnected. */
bool module_same_client (const idt_msg_t *msg, const idt_msg_t *disconnect);

/* --- NAME.metrics: the report of a module about its rank, to be summed up (libmetrics/metrics.h) -------------------
 *
 * {"states": b} asks for sets of ranks only, {"brief": b} leaves out all numbers that are 0. If nothing
 * remains, the answer is {"quiet": true} (false for sets of ranks), so it changes with messages only, not with time.
 */

/* Add the module's values to 'm'; with 'states' only sets of ranks. */
typedef void (*module_report_f) (void *arg, bool states, struct metrics *m);

/* Answer a request for NAME.metrics. */
void module_report (idt_t *h, const idt_msg_t *msg, uint32_t rank, module_report_f report, void *arg);

/* --- requests to other services, until they are answered ---------------------------------------------------------
 *
 * A module that ends drops its list with upcalls_stop (); afterwards no callback is called.
 */

struct upcall {
    LIST_ENTRY (upcall) link;
    struct upcalls *list;
    void *owner; /* the module */
    idt_future_t *f;
    const idt_msg_t *msg; /* a request that needs this answer (owned), or NULL */
    uint32_t tag;         /* for the owner */
};

/* Must be zero initially. */
struct upcalls {
    LIST_HEAD (, upcall) calls;
    struct freelist spare;
};

/* Keep 'f' (stolen; NULL if the request could not be sent) until it is fulfilled, or for 'timeout_ms' (below 0: no
 * limit). Then 'cb' is called with the future and the upcall, and must call upcall_destroy (). Returns NULL with errno
 * set.
 */
struct upcall *upcall_create (struct upcalls *list, idt_future_t *f, double timeout_ms, idt_future_f cb, void *owner);
void upcall_destroy (struct upcall *up); /* NULL is fine */

/* The module ends: drop all upcalls. Each 'msg' in the list is answered with EHOSTUNREACH and 'text'. */
void upcalls_stop (struct upcalls *list, idt_t *h, const char *text);

#endif /* LIBMODULE_MODULE_H */
