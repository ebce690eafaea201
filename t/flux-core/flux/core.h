/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* core.h - a stand-in of the part of libflux-core that src/flux uses
 *
 * It was written from section 3 of Flux's manual pages, and is only for tests. With it, the code for Flux can be
 * compiled, linked, loaded and tested on hosts without Flux (standin.h, module_test.c). This file is never installed:
 * the module for Flux is installed only if it was built with the real libflux-core.
 */
#ifndef T_FLUX_CORE_H
#define T_FLUX_CORE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct flux_handle flux_t;
typedef struct flux_msg flux_msg_t;
typedef struct flux_future flux_future_t;
typedef struct flux_conf flux_conf_t;

typedef struct {
    char text[160];
} flux_error_t;

enum { FLUX_O_NONBLOCK = 4 };
enum { FLUX_POLLIN = 1, FLUX_POLLOUT = 2, FLUX_POLLERR = 4 };
#define FLUX_NODEID_ANY ((uint32_t)0xffffffff)

/* --- handles ----------------------------------------------------------------------------------------- */

struct flux_match {
    int typemask;
    uint32_t matchtag;
    const char *topic_glob;
};
#define FLUX_MATCH_ANY ((struct flux_match){ 0 })

/* Return the next message; 'match' is ignored. NULL with errno EAGAIN (there is no message), or ECONNRESET (the broker
 * has ended).
 */
flux_msg_t *flux_recv (flux_t *h, struct flux_match match, int flags);
int flux_send_new (flux_t *h, flux_msg_t **msg, int flags);
/* The descriptor becomes readable when a message arrives, and stays readable until flux_pollevents () is called. */
int flux_pollfd (flux_t *h);
int flux_pollevents (flux_t *h);
void *flux_aux_get (flux_t *h, const char *name);
const char *flux_attr_get (flux_t *h, const char *name);
int flux_get_rank (flux_t *h, uint32_t *rank);
int flux_get_size (flux_t *h, uint32_t *size);
int flux_log (flux_t *h, int level, const char *fmt, ...) __attribute__ ((format (printf, 3, 4)));
int flux_module_set_running (flux_t *h);

/* --- configuration, in jansson's formats ------------------------------------------------------------- */

const flux_conf_t *flux_get_conf (flux_t *h);
int flux_conf_unpack (const flux_conf_t *conf, flux_error_t *error, const char *fmt, ...);

/* --- requests ------------------------------------------------------------------------------------------ */

flux_future_t *flux_rpc_pack (flux_t *h, const char *topic, uint32_t nodeid, int flags, const char *fmt, ...);
int flux_rpc_get_unpack (flux_future_t *f, const char *fmt, ...); /* waits for the answer */
void flux_future_destroy (flux_future_t *f);

/* --- messages ------------------------------------------------------------------------------------------ */

ssize_t flux_msg_encode_size (const flux_msg_t *msg);
int flux_msg_encode (const flux_msg_t *msg, void *buf, size_t size);
flux_msg_t *flux_msg_decode (const void *buf, size_t size);
void flux_msg_decref (const flux_msg_t *msg);
int flux_msg_route_push (flux_msg_t *msg, const char *id);
int flux_msg_route_delete_last (flux_msg_t *msg); /* deletes the route that was pushed last */

#endif /* T_FLUX_CORE_H */
