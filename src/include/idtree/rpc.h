/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rpc.h - requests that others answer, and the futures that hold the answers (RFC 6)
 *
 * 1. A future is fulfilled once by a result or an error; a streaming one once for each response.
 * 2. Either wait for it or give it a callback.  A callback is made from the reactor only, exactly once
 *    for each fulfilment.
 * 3. If a call that takes a callback fails, the callback is never made.
 * 4. A future may be destroyed at any time, in its callback too; a late answer is dropped.
 */
#ifndef IDTREE_RPC_H
#define IDTREE_RPC_H

#include <idtree/handle.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct idt_future idt_future_t;
typedef void (*idt_future_f) (idt_future_t *f, void *arg);

enum idt_rpc_flag {
    IDT_RPC_NORESPONSE = 1, /* the future is fulfilled when the request was sent */
    IDT_RPC_STREAMING = 2,  /* several responses; ENODATA ends them */
};

/* Send a request for 'topic' to 'nodeid': a rank, IDT_NODEID_ANY (the nearest on the way up, from here)
 * or IDT_NODEID_UPSTREAM (the same, but not from this rank; asks for the rank, once).  The payload is a string
 * (NULL: none), bytes, or packed JSON.  Return a future, or NULL with errno set:
 *   EINVAL   the topic is too long, or 'fmt' wrong
 *   ENOBUFS  2^20 requests wait, or as idt_send ()
 *   ENOMEM, and why the connection was lost
 */
idt_future_t *idt_rpc (idt_t *h, const char *topic, const char *s, uint32_t nodeid, int flags);
idt_future_t *idt_rpc_raw (idt_t *h, const char *topic, const void *data, size_t size, uint32_t nodeid, int flags);
idt_future_t *idt_rpc_pack (idt_t *h, const char *topic, uint32_t nodeid, int flags, const char *fmt, ...);

/* The same with the topic, payload, user and roles of a request that came, or was made with idt_msg_create (): modules
 * and the owner's clients speak for another user so.
 */
idt_future_t *idt_rpc_message (idt_t *h, const idt_msg_t *request, uint32_t nodeid, int flags);

/* The answer, waiting for it as long as it takes.  What is returned is borrowed until the future is
 * reset or destroyed; strings of idt_rpc_get_unpack () until it is called again.  Return 0, or -1 with errno
 * set: the answer's error, EPROTO where the payload is not what was asked for.  An empty answer is the
 * string NULL; 's' may be NULL to ask for no payload.
 */
int idt_rpc_get (idt_future_t *f, const char **s);
int idt_rpc_get_raw (idt_future_t *f, const void **data, size_t *size);
int idt_rpc_get_unpack (idt_future_t *f, const char *fmt, ...);
const idt_msg_t *idt_rpc_get_msg (idt_future_t *f); /* also where it is an error; NULL: none came */

/* Wait at most 'timeout_ms' (negative: for ever).  Returns 0 when fulfilled, by a result or an error; -1 with
 * errno set:
 *   ETIMEDOUT  not yet: it may be waited for again
 *   EDEADLK    an inline module's, which may not wait
 *   EINTR      what idt_set_interrupt () was given says so: it may be waited for again
 *   EINVAL     it has a callback
 *   ECONNRESET, EPROTO, ... the connection was lost, and the future ended with that error
 */
int idt_future_wait (idt_future_t *f, double timeout_ms);

/* Have 'cb' called from the handle's reactor when the future is fulfilled, or with the error ETIMEDOUT after
 * 'timeout_ms' (negative: no limit), which ends it.  A streaming future has that time for each response, from
 * its reset.  Returns 0, or -1 with errno EINVAL (it has a callback) or ENOMEM.
 */
int idt_future_then (idt_future_t *f, double timeout_ms, idt_future_f cb, void *arg);

bool idt_future_is_ready (const idt_future_t *f);
int idt_future_errnum (const idt_future_t *f); /* 0: a result */

/* The error of a fulfilled future as a sentence: the text that came with it, else strerror ().  Borrowed;
 * errno stays as it is.
 */
const char *idt_future_error (const idt_future_t *f);

/* Make a streaming future wait for the next response, which may be here already.  After the last one it
 * changes nothing, nor does it before the first.
 */
void idt_future_reset (idt_future_t *f);

idt_t *idt_future_handle (const idt_future_t *f);
void idt_future_destroy (idt_future_t *f); /* NULL is fine; keeps errno */

#ifdef __cplusplus
}
#endif

#endif /* IDTREE_RPC_H */
