/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* transport.h - what a handle needs of the connection under it
 *
 * Three transports exist: the local connector (a client's UNIX socket), the mailbox of a module that runs in a thread,
 * and the broker's direct call for inline modules. A handle uses them only through this table. Not installed.
 */
#ifndef IDTREE_TRANSPORT_H
#define IDTREE_TRANSPORT_H

#include <idtree/handle.h>
#include <idtree/module.h>

#pragma GCC visibility push(default) /* for the broker, which links the shared library */

struct idt_transport {
    /* Send or queue a message (the callee takes its own reference). Must not call back into the handle. flush writes
     * queued messages; the handle calls it immediately when it is not in a callback, and once after a batch of
     * callbacks. Returns 0, or -1 with errno set.
     */
    int (*send) (void *impl, const idt_msg_t *msg);

    /* The next message; the caller must unref it. Never blocks. NULL with errno EAGAIN, or with ECONNRESET, EPROTO, ...
     * when the connection is permanently lost. EPIPE: the broker asks the module to end; the module may still send
     * until it has ended. Not used (NULL) by inline transports.
     */
    const idt_msg_t *(*recv) (void *impl);

    /* A request has been passed to its handler. NULL: the transport does not count requests. */
    void (*served) (void *impl);

    /* Read once from the connection into a buffer; recv takes messages only from this buffer. Called when recv returned
     * no message and pollfd is readable. Returns 0, or -1 with errno as recv. NULL: recv reads from the connection.
     */
    int (*fill) (void *impl);

    /* Descriptor that is readable when recv or fill may have something; level-triggered. NULL: inline. */
    int (*pollfd) (void *impl);

    /* Whether output is queued; if so, the handle watches for POLLOUT and calls flush. NULL: never. */
    bool (*pending) (void *impl);
    int (*flush) (void *impl); /* as msg_stream_flush () */

    /* An attribute's value without a round trip (borrowed, until it changes). NULL in the table: use an RPC. */
    const char *(*attr_get) (void *impl, const char *name);

    /* As idt_attr_define (), without a round trip. NULL in the table: use an RPC. */
    const char *(*attr_define) (void *impl, const char *name, const char *value);

    /* As idt_overlay_attach (); NULL: not supported. */
    int (*overlay_attach) (void *impl, const struct idt_overlay_ops *ops, void *arg);

    /* As idt_overlay_covers (). NULL: the answer is always false. */
    bool (*overlay_covers) (void *impl, const idt_msg_t *request, uint32_t rank);

    /* As idt_module_keep (), with a valid size, and as idt_module_kept (). NULL: not supported. */
    int (*keep) (void *impl, const void *data, size_t size);
    const void *(*kept) (void *impl, size_t *size);

    /* As idt_log (), for a line that is already formatted; must keep errno. NULL: send log.append. */
    void (*log) (void *impl, int level, const char *name, const char *text);

    /* A module in a thread has started (errnum 0), or failed to start ('text' is the reason). Returns 0, or -1 with
     * errno set. NULL: nothing waits for the start.
     */
    int (*started) (void *impl, int errnum, const char *text);

    /* The handle's reactor runs; called at least once, when the reactor begins to run. NULL: not needed. */
    void (*runs) (void *impl);

    void (*destroy) (void *impl);
};

/* Make a handle on a transport. The handle takes ownership of 'impl'. NULL with errno ENOMEM (the caller still owns
 * 'impl').
 */
idt_t *idt_handle_create (const struct idt_transport *transport, void *impl);

/* Pass one message (borrowed) to the handle's futures and handlers, as its reactor would. Must not be called from a
 * callback of the same handle.
 */
void idt_handle_dispatch (idt_t *h, const idt_msg_t *msg);

/* Set the module's name, for the responses that the library itself makes (NAME.ping, ...) and for log lines. Returns 0,
 * or -1 with errno ENOMEM.
 */
int idt_handle_set_module (idt_t *h, const char *name);

/* Refuse requests before a handler receives them (EMSGSIZE): with a JSON text of more than 'size' bytes, four times
 * that for IDT_HANDLER_LARGE, or of more than 2,048 values unless a broker sent it. 0: no limits.
 */
void idt_handle_set_max_json (idt_t *h, size_t size);

#pragma GCC visibility pop

#endif /* IDTREE_TRANSPORT_H */
