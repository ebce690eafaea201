/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module.h - a module that runs in a broker (RFC 5)
 *
 * A module is a shared object. It must export at least
 *     int idt_mod_main (idt_t *h, int argc, char **argv);
 * which registers handlers and runs idt_get_reactor (h) in a thread of its own until the reactor is stopped. The
 * module's name is its file name without ".so", and it has the service of that name. Every module answers NAME.ping,
 * stats-get, stats-clear, rusage, metrics and disconnect; the library answers those for which the module has no
 * handler.
 *
 * A module that never blocks may use IDT_MODULE () instead. The broker can then host it inline, on its own reactor; for
 * the case that it runs in a thread, idt_mod_main is made from the two functions. A module that may block uses
 * IDT_MODULE_THREADED (). A module that computes for long but waits for nothing uses IDT_MODULE_SHARED (): all such
 * modules, of all brokers of a process, share one thread. With each of these macros the broker waits until the module
 * has started.
 *
 * RFC 5 names the function mod_main, which Flux's broker calls with a handle of its own. A file that exports only that
 * name is a module for Flux and is refused here; a file that exports only idt_mod_main is refused there.
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
    /* Register handlers and make the context in '*ctx'. Must not run the reactor, nor block unless 'threaded'. Returns
     * 0, or -1 with errno set, the reason in 'errp', and nothing left behind.
     */
    int (*init) (idt_t *h, int argc, char **argv, void **ctx, idt_error_t *errp);
    /* Answer all pending requests, return what is held, free the context. */
    void (*fini) (idt_t *h, void *ctx);
    bool threaded; /* never hosted inline */
    bool shared;   /* in a thread with others: may block in init and fini, no longer than a disk takes */
};

/* A module defines these, by itself or with a macro below. They are exported by this declaration, with any
 * -fvisibility.
 */
extern const struct idt_module idt_module; /* optional: the broker can host the module without a thread */
int idt_mod_main (idt_t *h, int argc, char **argv);

/* Run a module in a thread of its own: init, reactor, fini. Notifies the broker how init ended. Returns 0, or -1 with
 * errno set.
 */
int idt_module_run (const struct idt_module *m, idt_t *h, int argc, char **argv);

/* Define the exports of a module that can be hosted inline, and of one that cannot. */
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

/* Leave data for the next load of this module in this broker. The broker keeps a copy in memory until that load has
 * started, or the broker ends. Called in fini; the last call counts. Until the next load, requests of clients to the
 * module's service wait for it, 5 s at most, and no other broker answers them; requests of brokers' modules are
 * forwarded to other brokers. Returns 0, or -1 with errno set:
 *   EINVAL    no bytes
 *   EMSGSIZE  more than IDT_MODULE_KEEP_MAX
 *   ENOTSUP   the handle is not a module's
 *   ENOMEM
 */
#define IDT_MODULE_KEEP_MAX (2 << 20)
int idt_module_keep (idt_t *h, const void *data, size_t size);

/* The data that the previous load left (borrowed until init returns), with its size in '*size'; NULL: none. Called in
 * init. The data may be from another version of the code: check that it can be read.
 */
const void *idt_module_kept (idt_t *h, size_t *size);

/* --- the overlay, for inline modules --------------------------------------------------------- */

/* One exchange with the parent, in microseconds. Local times are CLOCK_BOOTTIME; the parent's are the instance's time
 * as the parent reads it.
 */
struct idt_clock_sample {
    uint64_t sent_us;          /* request sent (local) */
    uint64_t peer_received_us; /* request received by the parent (instance) */
    uint64_t peer_sent_us;     /* answer sent by the parent (instance) */
    uint64_t received_us;      /* answer received (local) */
    uint64_t peer_bound_us;    /* the largest error of the parent's reading */
};

/* A module's clock is synchronized by the overlay's hellos and heartbeats. */
struct idt_overlay_ops {
    /* Read the instance's time and its largest error, in microseconds. Returns false while unknown. */
    bool (*read_clock) (void *arg, uint64_t *now_us, uint64_t *bound_us);
    /* The parent's clock was read. */
    void (*sample) (void *arg, const struct idt_clock_sample *sample);
    /* The parent has accepted this broker (true), or is lost (false). Called immediately on attaching if there is a
     * parent.
     */
    void (*parent) (void *arg, bool up);
};

/* Attach to the overlay; one module may. 'ops' is borrowed until fini. Returns 0, or -1 with errno ENOTSUP (the handle
 * is not an inline module's) or EEXIST (another module is attached).
 */
int idt_overlay_attach (idt_t *h, const struct idt_overlay_ops *ops, void *arg);

/* Whether the sender of this request may act for rank 'rank'. A broker below this one may act for itself and the ranks
 * below it; a module of this broker may act for this rank. The connection that the request came over decides, not its
 * contents. false also if that is unknown (the handle is not an inline module's, or the sender is gone).
 */
bool idt_overlay_covers (idt_t *h, const idt_msg_t *request, uint32_t rank);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* IDTREE_MODULE_H */
