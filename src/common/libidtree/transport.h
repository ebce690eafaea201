/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* transport.h - the functions of a connection that a handle uses
 *
 * Three transports exist: the local connector (a client's UNIX socket), the mailbox of a module that runs in a thread,
 * and the broker's direct call for inline modules. A handle uses them only through this table. Not installed.
 */
#ifndef IDTREE_TRANSPORT_H
#define IDTREE_TRANSPORT_H

#include <idtree/handle.h>
#include <idtree/module.h>

#pragma GCC visibility push(default) /* the broker calls these functions, and links the shared library */

struct idt_transport {
    /* Send or queue a message. The transport takes its own reference. Must not call back into the handle. 'flush'
     * writes queued messages: the handle calls it immediately after 'send' when no callback runs, otherwise once after
     * a batch of callbacks. Returns 0, or -1 with errno set.
     */
    int (*send) (void *impl, const idt_msg_t *msg);

    /* The next message; the caller must unref it. Never blocks. NULL with errno EAGAIN if there is no message, or with
     * ECONNRESET, EPROTO, ... when the connection is permanently lost. EPIPE: the broker asks the module to end; the
     * module may still send until it has ended. NULL in the table for inline transports.
     */
    const idt_msg_t *(*recv) (void *impl);

    /* Called after a request was passed to its handler. NULL in the table: the transport does not count requests. */
    void (*served) (void *impl);

    /* Read once from the connection into a buffer; 'recv' takes messages only from this buffer. Called when 'recv'
     * returned no message and the descriptor is readable. Returns 0, or -1 with errno as 'recv'. NULL in the table:
     * 'recv' reads from the connection.
     */
    int (*fill) (void *impl);

    /* Descriptor that is readable when 'recv' or 'fill' may have something; level-triggered. NULL in the table: the
     * handle is inline.
     */
    int (*pollfd) (void *impl);

    /* Whether output is queued. If so, the handle waits until the descriptor is writable, and calls 'flush'. NULL:
     * output is never queued.
     */
    bool (*pending) (void *impl);
    int (*flush) (void *impl); /* as msg_stream_flush () */

    /* An attribute's value without a round trip (borrowed, until it changes). NULL in the table: use an RPC. */
    const char *(*attr_get) (void *impl, const char *name);

    /* As idt_attr_define (), without a round trip. NULL in the table: use an RPC. */
    const char *(*attr_define) (void *impl, const char *name, const char *value);

    /* As idt_overlay_attach (). NULL in the table: not supported. */
    int (*overlay_attach) (void *impl, const struct idt_overlay_ops *ops, void *arg);

    /* As idt_overlay_covers (). NULL in the table: the answer is always false. */
    bool (*overlay_covers) (void *impl, const idt_msg_t *request, uint32_t rank);

    /* keep: as idt_module_keep (), with a valid size. kept: as idt_module_kept (). NULL in the table: not supported. */
    int (*keep) (void *impl, const void *data, size_t size);
    const void *(*kept) (void *impl, size_t *size);

    /* As idt_log (), for a line that is already formatted. Must keep errno. NULL in the table: the handle sends
     * log.append.
     */
    void (*log) (void *impl, int level, const char *name, const char *text);

    /* Report that a module in a thread has started (errnum 0), or failed to start ('text' is the reason). Returns 0, or
     * -1 with errno set. NULL in the table: the broker does not wait for the start.
     */
    int (*started) (void *impl, int errnum, const char *text);

    /* Report that the handle's reactor runs. Called at least once, when the reactor begins to run. NULL in the table:
     * not needed.
     */
    void (*runs) (void *impl);

    void (*destroy) (void *impl);
};

/* Make a handle on a transport. The handle takes ownership of 'impl'. NULL with errno ENOMEM (the caller still owns
 * 'impl').
 */
idt_t *idt_handle_create (const struct idt_transport *transport, void *impl);

/* Pass one message (borrowed) to the handle's futures and handlers, as the handle's reactor would. Must not be called
 * from a callback of the same handle.
 */
void idt_handle_dispatch (idt_t *h, const idt_msg_t *msg);

/* Set the module's name. It appears in log lines, and in the responses that the library itself makes (NAME.ping, ...).
 * Returns 0, or -1 with errno ENOMEM.
 */
int idt_handle_set_module (idt_t *h, const char *name);

/* Set limits of requests, 0: no limits. A request is refused with EMSGSIZE before a handler receives it if its JSON
 * text has more than 'size' bytes (four times as many for a handler with IDT_HANDLER_LARGE), or more than 2,048 values.
 * The limit of values does not apply to requests of brokers.
 */
void idt_handle_set_max_json (idt_t *h, size_t size);

#pragma GCC visibility pop

#endif /* IDTREE_TRANSPORT_H */
