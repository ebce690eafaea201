/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rpc.h - requests to services, and the futures that hold their answers (RFC 6)
 *
 * 1. A future is fulfilled once, by a result or an error. The future of a streaming request is fulfilled once for each
 *    response.
 * 2. Wait for a future, or give it a callback, but not both. A callback is called only from the reactor, exactly once
 *    for each fulfilment.
 * 3. If a call that takes a callback fails, the callback is never called.
 * 4. A future may be destroyed at any time, even in its callback; a late answer is dropped.
 */
#ifndef IDTREE_RPC_H
#define IDTREE_RPC_H

#include <idtree/handle.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct idt_future idt_future_t;
typedef void (*idt_future_f) (idt_future_t *f, void *arg);

enum idt_rpc_flag {
    IDT_RPC_NORESPONSE = 1, /* the future is fulfilled as soon as the request is sent */
    IDT_RPC_STREAMING = 2,  /* several responses; ENODATA ends them */
};

/* Send a request for 'topic' to 'nodeid': a rank, IDT_NODEID_ANY (the nearest service, from this rank up), or
 * IDT_NODEID_UPSTREAM (the nearest service above this rank; the first such call blocks like idt_get_rank ()). The
 * payload is a string (NULL: none), bytes, or packed JSON. Returns a future, or NULL with errno set:
 *   EINVAL   the topic is empty or too long, or 'fmt' is wrong
 *   ENOBUFS  2^20 requests are pending, or idt_send () would fail with ENOBUFS
 *   ENOMEM, or the reason why the connection was lost
 */
idt_future_t *idt_rpc (idt_t *h, const char *topic, const char *s, uint32_t nodeid, int flags);
idt_future_t *idt_rpc_raw (idt_t *h, const char *topic, const void *data, size_t size, uint32_t nodeid, int flags);
idt_future_t *idt_rpc_pack (idt_t *h, const char *topic, uint32_t nodeid, int flags, const char *fmt, ...);

/* As idt_rpc (), with the topic, payload, user and roles of 'request', which was received, or made with idt_msg_create
 * (). Modules and the owner's clients use this function to send a request on behalf of another user.
 */
idt_future_t *idt_rpc_message (idt_t *h, const idt_msg_t *request, uint32_t nodeid, int flags);

/* Wait for the answer, without a time limit, and get its payload. Results are borrowed until the future is reset or
 * destroyed; strings of idt_rpc_get_unpack () are borrowed at most until it is called again. Returns 0, or -1 with
 * errno set to the answer's error, or to EPROTO if the payload has another type. The string of an empty answer is NULL.
 * If 's' is NULL, the payload is ignored.
 */
int idt_rpc_get (idt_future_t *f, const char **s);
int idt_rpc_get_raw (idt_future_t *f, const void **data, size_t *size);
int idt_rpc_get_unpack (idt_future_t *f, const char *fmt, ...);
const idt_msg_t *idt_rpc_get_msg (idt_future_t *f); /* also an error response; NULL: no response arrived */

/* Wait for the future, at most 'timeout_ms' (negative: no limit). Returns 0 when the future is fulfilled, by a result
 * or an error. Returns -1 with errno set:
 *   ETIMEDOUT  the future is not fulfilled yet; the caller may wait for it again
 *   EDEADLK    the future is an inline module's, which may not wait
 *   EINTR      the callback of idt_set_interrupt () returned false; the caller may wait for the future again
 *   EINVAL     the future has a callback
 *   ECONNRESET, EPROTO, ... the connection was lost, and the future ended with that error
 */
int idt_future_wait (idt_future_t *f, double timeout_ms);

/* Call 'cb' from the handle's reactor when the future is fulfilled. If this does not happen within 'timeout_ms'
 * (negative: no limit), the future ends with ETIMEDOUT and 'cb' is called. For a streaming future the time starts again
 * with each idt_future_reset (). Returns 0, or -1 with errno EINVAL (the future has a callback, or 'cb' is NULL), or
 * with the errno of idt_get_reactor ().
 */
int idt_future_then (idt_future_t *f, double timeout_ms, idt_future_f cb, void *arg);

bool idt_future_is_ready (const idt_future_t *f);
int idt_future_errnum (const idt_future_t *f); /* 0: a result */

/* The error of a fulfilled future as a sentence: the text of the answer, else strerror (). Borrowed; errno is
 * preserved.
 */
const char *idt_future_error (const idt_future_t *f);

/* Let a streaming future wait for the next response, which may have arrived already. Has no effect before the first
 * response or after the last.
 */
void idt_future_reset (idt_future_t *f);

idt_t *idt_future_handle (const idt_future_t *f);
void idt_future_destroy (idt_future_t *f); /* NULL is allowed; errno is preserved */

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* IDTREE_RPC_H */
