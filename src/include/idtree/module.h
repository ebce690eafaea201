/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module.h - a module that runs in a broker (RFC 5)
 *
 * A module is a shared object. It must export at least
 *     int idt_mod_main (idt_t *h, int argc, char **argv);
 * which registers handlers and runs idt_get_reactor (h) in a thread of its own until the reactor is stopped. The
 * module's name is its file name without ".so", and it has the service of that name. Every module answers NAME.ping,
 * stats-get, stats-clear, rusage, metrics and disconnect; the library answers a request of these for which the module
 * has no handler.
 *
 * A module that never blocks may use IDT_MODULE () instead. The broker can then host it inline, which means on the
 * broker's own reactor. The macro also defines idt_mod_main, from the module's init and fini, for brokers that run the
 * module in a thread. A module that may block uses IDT_MODULE_THREADED (). A module that computes for a long time but
 * waits for nothing uses IDT_MODULE_SHARED (): all such modules of all brokers of a process share one thread. With each
 * of these macros the broker waits until the module has started.
 *
 * In RFC 5 the function is named mod_main, and Flux's broker calls it with a handle of Flux. A file that exports only
 * mod_main is a module for Flux, so idtree's broker refuses it. Flux's broker refuses a file that exports only
 * idt_mod_main.
 */
#ifndef IDTREE_MODULE_H
#define IDTREE_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/handle.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct idt_module {
    const char *name;
    /* Register handlers and make the context in '*ctx'. Must not run the reactor; may block only if 'threaded' is true.
     * Returns 0; or -1 with errno set and the reason in 'errp', after undoing all that it did.
     */
    int (*init) (idt_t *h, int argc, char **argv, void **ctx, idt_error_t *errp);
    /* Answer all pending requests, return what the module holds of the instance (such as leases), free the context. */
    void (*fini) (idt_t *h, void *ctx);
    bool threaded; /* never hosted inline */
    bool shared;   /* in one thread with other modules: may block only in init and fini, not longer than a disk needs */
};

/* A module defines these two, by itself or with a macro below. This declaration exports them, even if the module is
 * compiled with -fvisibility=hidden.
 */
extern const struct idt_module idt_module; /* optional; without it the broker runs idt_mod_main in a thread */
int idt_mod_main (idt_t *h, int argc, char **argv);

/* Run a module in the calling thread: init, reactor, fini. Notifies the broker whether init succeeded. Returns 0, or -1
 * with errno set.
 */
int idt_module_run (const struct idt_module *m, idt_t *h, int argc, char **argv);

/* Define the exports of a module: one that the broker can host inline, one that needs a thread of its own, and one that
 * shares a thread with other modules.
 */
#define IDT_MODULE(NAME, INIT, FINI) IDT_MODULE_DEFINE (NAME, INIT, FINI, false, false)
#define IDT_MODULE_THREADED(NAME, INIT, FINI) IDT_MODULE_DEFINE (NAME, INIT, FINI, true, false)
#define IDT_MODULE_SHARED(NAME, INIT, FINI) IDT_MODULE_DEFINE (NAME, INIT, FINI, true, true)

#define IDT_MODULE_DEFINE(NAME, INIT, FINI, THREADED, SHARED)                                      \
    const struct idt_module idt_module = {                                                         \
        .name = (NAME), .init = (INIT), .fini = (FINI), .threaded = (THREADED), .shared = (SHARED) \
    };                                                                                             \
    int idt_mod_main (idt_t *h, int argc, char **argv)                                             \
    {                                                                                              \
        return idt_module_run (&idt_module, h, argc, argv);                                        \
    }

/* --- the next life ------------------------------------------------------------------------------- */

/* Leave data for the next load of this module in this broker. The broker keeps a copy in memory until the loaded module
 * has started, or the broker ends. Call this function in fini; a second call replaces the data. Until the next load,
 * requests of clients for the module's service wait for the module, 5 s at most, and are not forwarded to other
 * brokers. Requests from modules of brokers are forwarded. Returns 0, or -1 with errno set:
 *   EINVAL    no bytes
 *   EMSGSIZE  more than IDT_MODULE_KEEP_MAX
 *   ENOTSUP   the handle is not a module's
 *   ENOMEM
 */
#define IDT_MODULE_KEEP_MAX (4 << 20)
int idt_module_keep (idt_t *h, const void *data, size_t size);

/* The data that the previous load left (borrowed until init returns), with its size in '*size'. NULL: it left no data.
 * Call this function in init. The data may be from another version of the code: check that it can be read.
 */
const void *idt_module_kept (idt_t *h, size_t *size);

/* --- the overlay, for inline modules --------------------------------------------------------- */

/* One exchange with the parent, in microseconds. Local times are from CLOCK_BOOTTIME. The parent's times are the
 * instance's time, as the parent reads it.
 */
struct idt_clock_sample {
    uint64_t sent_us;          /* request sent (local) */
    uint64_t peer_received_us; /* request received by the parent (instance) */
    uint64_t peer_sent_us;     /* answer sent by the parent (instance) */
    uint64_t received_us;      /* answer received (local) */
    uint64_t peer_bound_us;    /* the largest error of the parent's reading */
};

/* The functions of the module that is attached to the overlay. The overlay's hellos and heartbeats synchronize the
 * clock of that module.
 */
struct idt_overlay_ops {
    /* Read the instance's time and its largest error, in microseconds. Returns false while unknown. */
    bool (*read_clock) (void *arg, uint64_t *now_us, uint64_t *bound_us);
    /* Called after each exchange with the parent. */
    void (*sample) (void *arg, const struct idt_clock_sample *sample);
    /* Called when the parent has accepted this broker (true), and when it is lost (false). If there is a parent
     * already, idt_overlay_attach () calls this function immediately.
     */
    void (*parent) (void *arg, bool up);
};

/* Attach to the overlay. Only one module may be attached. 'ops' is borrowed until fini. Returns 0, or -1 with errno
 * ENOTSUP (the handle is not an inline module's) or EEXIST (another module is attached).
 */
int idt_overlay_attach (idt_t *h, const struct idt_overlay_ops *ops, void *arg);

/* Whether the sender of this request may act for rank 'rank'. A broker below this one may act for itself and the ranks
 * below it; a module of this broker may act for this rank. The broker derives the answer from the connection over which
 * the request arrived, not from the request's contents. Returns false, too, if the connection is unknown (the handle is
 * not an inline module's, or the sender has disconnected).
 */
bool idt_overlay_covers (idt_t *h, const idt_msg_t *request, uint32_t rank);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* IDTREE_MODULE_H */
