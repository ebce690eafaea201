/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reactor.h - the event loop of one thread
 *
 * 1. A reactor and its watchers belong to one thread.
 * 2. A watcher is created stopped; its callback is called only between start and stop.
 * 3. A callback may start, stop and destroy any watcher, including its own.
 * 4. Callbacks run to completion and never nest: do not run a reactor from a callback.
 */
#ifndef IDTREE_REACTOR_H
#define IDTREE_REACTOR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct idt_reactor idt_reactor_t;
typedef struct idt_watcher idt_watcher_t;

enum idt_poll {
    IDT_POLLIN = 1,
    IDT_POLLOUT = 2,
};

enum idt_reactor_mode {
    IDT_REACTOR_DEFAULT, /* until idt_reactor_stop () is called or no watcher is started */
    IDT_REACTOR_ONCE,    /* wait for events and handle them once */
    IDT_REACTOR_NOWAIT,  /* handle the events that are ready */
};

typedef void (*idt_watcher_f) (idt_watcher_t *w, int revents, void *arg);

/* Make a reactor. NULL with errno ENOMEM, or with the kernel's error for a new epoll descriptor (EMFILE, ...). */
idt_reactor_t *idt_reactor_create (void);
void idt_reactor_destroy (idt_reactor_t *r); /* destroy its watchers first */

/* Run the reactor. Returns 0, or -1 with errno set to 'errnum' if idt_reactor_stop_error () was called meanwhile. */
int idt_reactor_run (idt_reactor_t *r, enum idt_reactor_mode mode);
void idt_reactor_stop (idt_reactor_t *r);
void idt_reactor_stop_error (idt_reactor_t *r, int errnum);

void idt_watcher_start (idt_watcher_t *w);
void idt_watcher_stop (idt_watcher_t *w);
void idt_watcher_destroy (idt_watcher_t *w); /* stops it; NULL is allowed; errno is preserved */

/* Creating a watcher for a NULL reactor (as idt_get_reactor () may return it) returns NULL and preserves errno. */

/* Call 'cb' when 'fd' is ready for 'events' (enum idt_poll bits; 'revents' has those that are ready). The descriptor is
 * borrowed: close it after the watcher is destroyed. NULL with errno ENOMEM.
 */
idt_watcher_t *idt_fd_watcher_create (idt_reactor_t *r, int fd, int events, idt_watcher_f cb, void *arg);
void idt_fd_watcher_set_events (idt_watcher_t *w, int events);

/* Call 'cb' 'after_ms' milliseconds after the call of idt_watcher_start (), then every 'repeat_ms' milliseconds (0:
 * once). NULL with errno ENOMEM.
 */
idt_watcher_t *idt_timer_watcher_create (idt_reactor_t *r, double after_ms, double repeat_ms, idt_watcher_f cb,
                                         void *arg);
/* Change the times; a running timer starts again with them. */
void idt_timer_watcher_reset (idt_watcher_t *w, double after_ms, double repeat_ms);

/* Call 'cb' once when CLOCK_BOOTTIME, which also counts while the host sleeps, reaches 'at_us' microseconds. A new
 * alarm has no time. The first idt_alarm_watcher_reset () starts it, and each further one sets another time; UINT64_MAX
 * stops it. All alarms of a reactor share one descriptor. NULL with errno ENOMEM, or with the kernel's error for that
 * descriptor (EMFILE, ...).
 */
idt_watcher_t *idt_alarm_watcher_create (idt_reactor_t *r, idt_watcher_f cb, void *arg);
void idt_alarm_watcher_reset (idt_watcher_t *w, uint64_t at_us);

/* A prepare watcher: call 'cb' each time before the reactor waits for events. An idle watcher: while it is started, the
 * reactor does not wait, but calls 'cb' whenever no other event is ready. NULL with errno ENOMEM.
 */
idt_watcher_t *idt_prepare_watcher_create (idt_reactor_t *r, idt_watcher_f cb, void *arg);
idt_watcher_t *idt_idle_watcher_create (idt_reactor_t *r, idt_watcher_f cb, void *arg);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* IDTREE_REACTOR_H */
