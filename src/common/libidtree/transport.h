/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* transport.h - what a handle needs of the connection under it
 *
 * Three exist: the local connector (a client's UNIX socket), the mailbox of a module that runs in a thread, and
 * the broker's direct call for inline modules.  Handles know them by this table only.  Not installed.
 */
#ifndef IDTREE_TRANSPORT_H
#define IDTREE_TRANSPORT_H

#include <idtree/handle.h>
#include <idtree/module.h>

struct idt_transport {
    /* Send or queue a message (the callee takes a reference of its own).  Must not call back into the
     * handle.  What is queued goes out with flush, which the handle calls at once outside of callbacks, and
     * once after a batch of them.  Returns 0, or -1 with errno set.
     */
    int (*send) (void *impl, const idt_msg_t *msg);

    /* The next message, for the caller to unref.  Never blocks.  NULL with errno EAGAIN, or ECONNRESET,
     * EPROTO, ... when the connection is gone for good; EPIPE: the broker asks the module to end,
     * which may go on sending until it has ended.  Unused (NULL) in inline transports.
     */
    const idt_msg_t *(*recv) (void *impl);

    /* A request has been handed to its handler.  NULL: nobody counts. */
    void (*served) (void *impl);

    /* Read once from the connection into a buffer, from which alone recv takes.  Called when recv had
     * nothing and pollfd is readable.  Returns 0, or -1 with errno as recv.  NULL: recv reads by itself.
     */
    int (*fill) (void *impl);

    /* Descriptor that is readable when recv or fill may have something; level-triggered.  NULL: inline. */
    int (*pollfd) (void *impl);

    /* Whether something waits to be written (then the handle watches for POLLOUT and calls flush).
     * NULL: never.
     */
    bool (*pending) (void *impl);
    int (*flush) (void *impl); /* as msg_stream_flush () */

    /* An attribute's value without a round trip (borrowed, until it changes); NULL in the table: ask by RPC. */
    const char *(*attr_get) (void *impl, const char *name);

    /* As idt_attr_define (), without a round trip; NULL in the table: ask by RPC. */
    const char *(*attr_define) (void *impl, const char *name, const char *value);

    /* As idt_overlay_attach (); NULL: not supported. */
    int (*overlay_attach) (void *impl, const struct idt_overlay_ops *ops, void *arg);

    /* As idt_overlay_covers (); NULL: it cannot be told. */
    bool (*overlay_covers) (void *impl, const idt_msg_t *request, uint32_t rank);

    /* As idt_module_keep (), with a size that is allowed, and idt_module_kept (); NULL: not supported. */
    int (*keep) (void *impl, const void *data, size_t size);
    const void *(*kept) (void *impl, size_t *size);

    /* As idt_log (), with the line made and errno to be kept; NULL: send log.append. */
    void (*log) (void *impl, int level, const char *name, const char *text);

    /* A module in a thread has started (errnum 0), or could not, and 'text' says why.  Returns 0, or -1 with errno
     * set.  NULL: nobody waits for it.
     */
    int (*started) (void *impl, int errnum, const char *text);

    /* The handle's reactor runs; told at least once, when it begins to.  NULL: nobody wants to know. */
    void (*runs) (void *impl);

    void (*destroy) (void *impl);
};

/* Make a handle on a transport; 'impl' becomes the handle's.  NULL with errno ENOMEM ('impl' stays the
 * caller's).
 */
idt_t *idt_handle_create (const struct idt_transport *transport, void *impl);

/* Hand one message to the handle's futures and handlers, as its reactor would (borrowed).  Not from a
 * callback of the same handle.
 */
void idt_handle_dispatch (idt_t *h, const idt_msg_t *msg);

/* Name the module: for the answers that the library makes itself (NAME.ping, ...), and for its log lines.
 * Returns 0, or -1 with errno ENOMEM.
 */
int idt_handle_set_module (idt_t *h, const char *name);

/* Refuse requests with a JSON text of more bytes before a handler sees them (0: none is refused). */
void idt_handle_set_max_json (idt_t *h, size_t size);

#endif /* IDTREE_TRANSPORT_H */
