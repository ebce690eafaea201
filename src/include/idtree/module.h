/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module.h - what runs inside a broker (RFC 5)
 *
 * A module is a shared object.  The least it exports is
 *     int idt_mod_main (idt_t *h, int argc, char **argv);
 * which registers handlers and runs idt_get_reactor (h) in a thread of its own until that is stopped.  Its name
 * is the file's without ".so", and the service of that name is its own.  Every module answers NAME.ping, stats-get,
 * stats-clear, rusage, metrics and disconnect; those it has no handler for are answered by the library.
 *
 * A module that never blocks may instead use IDT_MODULE (): then the broker can host it inline, on its own reactor, and
 * idt_mod_main is made from the two functions for the case that it runs in a thread.  One that may block uses
 * IDT_MODULE_THREADED ().  One that computes for long but waits for nothing uses IDT_MODULE_SHARED (): the modules of
 * all brokers of a process that do so share one thread.  With each of them the broker knows when the module has
 * started, and waits for that.
 *
 * RFC 5 has another name, mod_main, by which Flux's broker calls its modules with a handle of its own.  What has that
 * name alone is one of those and is refused here; what has idt_mod_main alone is refused there.
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

struct idt_module {
    const char *name;
    /* Register handlers, make the context in '*ctx'.  Must not run the reactor, nor block unless 'threaded'.  Returns
     * 0, or -1 with errno set and nothing left behind; 'errp' says why.
     */
    int (*init) (idt_t *h, int argc, char **argv, void **ctx, idt_error_t *errp);
    /* Answer what is unanswered, give back what is held, free the context. */
    void (*fini) (idt_t *h, void *ctx);
    bool threaded; /* never hosted inline */
    bool shared;   /* in a thread with others: it may block in init and fini, no longer than a disk takes */
};

/* Run a module in a thread of its own: init, reactor, fini.  The broker is told how init ended.  Returns 0, or -1 with
 * errno set.
 */
int idt_module_run (const struct idt_module *m, idt_t *h, int argc, char **argv);

/* Define what a module exports: one that can be hosted inline, one that cannot. */
#define IDT_MODULE(NAME, INIT, FINI) IDT_MODULE_DEFINE (NAME, INIT, FINI, false, false)
#define IDT_MODULE_THREADED(NAME, INIT, FINI) IDT_MODULE_DEFINE (NAME, INIT, FINI, true, false)
#define IDT_MODULE_SHARED(NAME, INIT, FINI) IDT_MODULE_DEFINE (NAME, INIT, FINI, true, true)

#define IDT_MODULE_DEFINE(NAME, INIT, FINI, THREADED, SHARED)                                      \
    extern const struct idt_module idt_module;                                                     \
    const struct idt_module idt_module = {                                                         \
        .name = (NAME), .init = (INIT), .fini = (FINI), .threaded = (THREADED), .shared = (SHARED) \
    };                                                                                             \
    int idt_mod_main (idt_t *h, int argc, char **argv);                                            \
    int idt_mod_main (idt_t *h, int argc, char **argv)                                             \
    {                                                                                              \
        return idt_module_run (&idt_module, h, argc, argv);                                        \
    }

/* --- the next life ------------------------------------------------------------------------------- */

/* Leave something for the module's next life in this broker: bytes of which the broker has a copy, in memory, until
 * that has started, or the broker ends.  Called in fini; the last call counts.  Until the next life what clients ask of
 * the module's service waits for it, 5 s at most, and is answered by no other broker: what brokers' modules ask is.
 * Returns 0, or -1 with errno set:
 *   EINVAL    no bytes
 *   EMSGSIZE  more than IDT_MODULE_KEEP_MAX
 *   ENOTSUP   this handle is not a module's
 *   ENOMEM
 */
#define IDT_MODULE_KEEP_MAX (2 << 20)
int idt_module_keep (idt_t *h, const void *data, size_t size);

/* What the last life left (borrowed until init returns), and in '*size' how much; NULL: nothing.  Called in init.  The
 * code may be another one by now: look whether it can be read.
 */
const void *idt_module_kept (idt_t *h, size_t *size);

/* --- the overlay, for inline modules --------------------------------------------------------- */

/* One exchange with the parent: local times are CLOCK_BOOTTIME, the parent's are the instance's as the
 * parent reads it; all in microseconds.
 */
struct idt_clock_sample {
    uint64_t sent_us;          /* we asked (local) */
    uint64_t peer_received_us; /* the parent got it (instance) */
    uint64_t peer_sent_us;     /* the parent answered (instance) */
    uint64_t received_us;      /* we got the answer (local) */
    uint64_t peer_bound_us;    /* how far the parent's reading may be off */
};

/* A module's clock rides on the overlay's hellos and heartbeats. */
struct idt_overlay_ops {
    /* Read the instance's time, in microseconds, and how far it may be off.  Returns false while unknown. */
    bool (*read_clock) (void *arg, uint64_t *now_us, uint64_t *bound_us);
    /* The parent's clock was read. */
    void (*sample) (void *arg, const struct idt_clock_sample *sample);
    /* The parent took us in (true), or is gone (false).  Told at once when attached, where it is there. */
    void (*parent) (void *arg, bool up);
};

/* Attach to the overlay; one module may.  'ops' is borrowed until fini.  Returns 0, or -1 with errno
 * ENOTSUP (this handle is not an inline module's) or EEXIST (another module is attached).
 */
int idt_overlay_attach (idt_t *h, const struct idt_overlay_ops *ops, void *arg);

/* Whether who sent this request may speak for rank 'rank': a broker below this one does for itself and those below it
 * in the tree, a module of this broker for this rank.  By the connection that it came over, whatever it says.  false
 * where that cannot be told (the handle is not an inline module's, the sender is gone).
 */
bool idt_overlay_covers (idt_t *h, const idt_msg_t *request, uint32_t rank);

#ifdef __cplusplus
}
#endif

#endif /* IDTREE_MODULE_H */
