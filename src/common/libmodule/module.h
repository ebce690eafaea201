/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module.h - functions that several modules use: attributes, answers, reports of figures, requests to other services */
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
 * An invalid value is refused with a sentence that states the valid values. Functions return 0, or -1 with errno set
 * (EINVAL: the value is invalid) and 'errp' filled.
 */

/* For a module that takes no arguments, only attributes: refuse any argument. */
int module_option_none (int argc, char **argv, idt_error_t *errp);

/* Set the error "NAME=VALUE: must be WANT", and return -1. The broker adds the place where the value was given
 * (attr_blamed ()).
 */
int module_option_bad (const char *name, const char *value, const char *want, idt_error_t *errp);

/* Read an attribute. 'unless_given' is its default. A number may have the default NULL: '*value' is then unchanged if
 * the attribute is not set.
 */
int module_option_number (idt_t *h, const char *name, const char *unless_given, uint32_t min, uint32_t max,
                          uint32_t *value, idt_error_t *errp);
int module_option_duration (idt_t *h, const char *name, const char *unless_given, uint64_t min_ms, uint64_t max_ms,
                            const char *want, uint64_t *ms, idt_error_t *errp);

/* Read a boolean, in the syntax of parse_switch (). */
int module_option_switch (idt_t *h, const char *name, const char *unless_given, bool *value, idt_error_t *errp);

/* Whether a word turns off an option that has values other than on and off. The words are off, false, no and 0. */
bool module_option_is_off (const char *value);

/* Where rank 0 keeps its state. All texts are borrowed from attributes. */
struct module_place {
    const char *dir;   /* statedir, or rundir if statedir is not set; NULL: the state is in 'store' */
    const char *store; /* root.store: how to connect to PostgreSQL */
    const char *uuid;  /* with 'store': of the instance */
    uint64_t term;     /* with 'store': of this rank 0 (libpg/fenced.h) */
    bool trust;        /* with 'store': root.store-sync is trust */
};

/* Find the place in which rank 0 keeps 'what'. Returns 0, or -1 with errno EINVAL and 'errp' filled. */
int module_option_place (idt_t *h, const char *what, struct module_place *place, idt_error_t *errp);

/* The default of a timeout of requests that may need rank 0: "5s", or "15s" with root.store, because another host may
 * take over meanwhile.
 */
const char *module_option_root_timeout (idt_t *h);

/* --- answers -----------------------------------------------------------------------------------------------------
 *
 * If an answer cannot be made, the requester gets an error (idt_respond ()). If an answer cannot be sent, the module
 * logs an error.
 */

/* Answer a request. 's' and 'text' may be NULL, but not the stolen ones: module_respond_new () steals 's', and
 * module_respond_object () steals 'o'. If the stolen argument is NULL, memory was exhausted, and the answer is ENOMEM.
 */
void module_respond (idt_t *h, const idt_msg_t *msg, const char *s);
void module_respond_new (idt_t *h, const idt_msg_t *msg, char *s);
void module_respond_raw (idt_t *h, const idt_msg_t *msg, const void *data, size_t size);
void module_respond_object (idt_t *h, const idt_msg_t *msg, json_t *o);
void module_respond_error (idt_t *h, const idt_msg_t *msg, int errnum, const char *text);

/* Whether the client that sent the request 'msg' is the client whose end the message 'disconnect' reports. */
bool module_same_client (const idt_msg_t *msg, const idt_msg_t *disconnect);

/* --- NAME.metrics: the report of a module about its rank, to be summed up (libmetrics/metrics.h) -------------------
 *
 * A request with "states" true asks only for sets of ranks. A request with "brief" true asks to leave out all sums and
 * histograms that are 0. An empty report is answered with {"quiet": true}, or with {"quiet": false} if the request
 * asked for sets of ranks. So the answer of a module that receives no messages does not change with time.
 */

/* Add the module's values to 'm'. If 'states' is set, add only sets of ranks. */
typedef void (*module_report_f) (void *arg, bool states, struct metrics *m);

/* Answer a request for NAME.metrics. */
void module_report (idt_t *h, const idt_msg_t *msg, uint32_t rank, module_report_f report, void *arg);

/* --- requests to other services, until they are answered ---------------------------------------------------------
 *
 * A module that ends calls upcalls_stop (), which drops its list. Afterwards no callback is called.
 */

struct upcall {
    LIST_ENTRY (upcall) link;
    struct upcalls *list;
    void *owner; /* the module */
    idt_future_t *f;
    const idt_msg_t *msg; /* a request that this module can answer only with the result (owned), or NULL */
    uint32_t tag;         /* for use by the owner */
};

/* Must be zero initially. */
struct upcalls {
    LIST_HEAD (, upcall) calls;
    struct freelist spare;
};

/* Keep 'f' (stolen; NULL if the request could not be sent) until it is fulfilled, or for 'timeout_ms' (below 0: no
 * limit). Then 'cb' is called with the future and the upcall. 'cb' must call upcall_destroy (). Returns NULL with errno
 * set.
 */
struct upcall *upcall_create (struct upcalls *list, idt_future_t *f, double timeout_ms, idt_future_f cb, void *owner);
void upcall_destroy (struct upcall *up); /* NULL is fine */

/* Drop all upcalls, because the module ends. Each 'msg' in the list is answered with EHOSTUNREACH and 'text'. */
void upcalls_stop (struct upcalls *list, idt_t *h, const char *text);

#endif /* LIBMODULE_MODULE_H */
