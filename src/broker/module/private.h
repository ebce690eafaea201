/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private.h - what the files of modules share
 *
 *   serve.c   module.list, module.load, module.remove
 *   module.c  load, start, stop, forget
 *   load.c    from a name to a module, or to code: file, arguments, shared object
 *   host.c    how messages get to a module and from it
 *   shared.c  the thread that modules of a process share
 */
#ifndef BROKER_MODULE_PRIVATE_H
#define BROKER_MODULE_PRIVATE_H

#include <czmq.h>
#include <pthread.h>
#include <sys/queue.h>

#include "broker/route/module_handover.h"
#include "broker/module/module.h"
#include "libidtree/transport.h"
#include "libutil/queue/fifo.h"
#include "broker/module/mailbox.h"
#include "libutil/queue/drr_queue.h"

#define MODULE_MAX_ARGS 64
#define MODULE_MAX_NAME 64
#define MODULE_TURN_US 50     /* time in which messages are handed on before sockets get their turn */
#define MODULE_MAX_ASKS 16384 /* requests that wait for one service */
#define MODULE_MAX_BYTES (16 << 20)
#define MODULE_MAX_INSIDE 256 /* requests that a thread has and has not looked at */

/* Control messages of a thread to its host, and to the shared thread. */
enum module_control {
    MODULE_CONTROL_STARTED = 0,
    MODULE_CONTROL_ROOM = 1,
    MODULE_CONTROL_BEGIN = 2,
    MODULE_CONTROL_END = 3,
};

/* Module status as module.list tells it (RFC 5). */
enum module_status { MODULE_STARTING = 0, MODULE_RUNNING = 1, MODULE_STOPPING = 2, MODULE_ENDED = 3 };

struct module {
    struct peer own; /* of the router, unless it is the broker's own */
    struct peer *peer;
    struct modules *ms;
    char name[MODULE_MAX_NAME + 1];
    char *path;
    void *dso;
    idt_t *h;
    const struct idt_module *def; /* NULL: it has only idt_mod_main */
    bool threaded;
    bool shared;        /* and in the thread that several share */
    bool attached;      /* to the overlay */
    bool stopping;      /* was told to end: gets no more messages, is not found any more */
    bool tells_nothing; /* to be summed up (NAME.metrics) */
    bool quiet;         /* the same, but only until it is given a message */
    uint64_t given;     /* messages, and how many it was when it was asked last */
    uint64_t asked_at;
    bool left_behind; /* did not end in its time: nobody's but its thread's, its broker may be gone */
    void *ctx;
    const void *kept; /* what its last life left (borrowed until it has started), and what it leaves */
    size_t kept_size;
    void *kept_copy; /* in a thread: that is 'kept' */
    void *left;
    size_t left_size;
    double used; /* when it last sent or received, seconds */
    /* What waits: host.c tells the order. */
    struct fifo said;       /* what it sent, inline */
    struct fifo replies;    /* answers and events to it, inline */
    struct drr_queue *asks; /* requests to it, by askers */
    int inside;             /* requests that the thread has; atomic */
    bool active;            /* in the list of those with something to hand on */
    TAILQ_ENTRY (module) link;
    /* in a thread */
    struct mailbox *in; /* to the module */
    struct mailbox *out;
    idt_watcher_t *w;
    pthread_t thread;
    bool told; /* the broker, that its reactor runs; the thread's */
    /* in the shared thread, which has all of it until it has closed 'out' */
    idt_reactor_t *view;
    struct attrs *attrs; /* the broker's, to read */
    bool begun;
    int result;               /* errno with which it ended; 0: well */
    struct error_text *texts; /* values of attributes that it was lent */
    enum module_status status;
    const idt_msg_t *loader;  /* request to load it, answered when it runs, or does not */
    const idt_msg_t *remover; /* request to unload it, answered when it is gone */
    int (*mod_main) (idt_t *h, int argc, char **argv);
    int argc;
    char **argv;
};

struct modules {
    struct modules_conf conf;
    zlistx_t *list;
    struct module *builtin;
    struct absents *absents;
    TAILQ_HEAD (, module) active;
    uint32_t owner;    /* user id: whom modules speak for */
    uint64_t seed;     /* of askers' keys */
    uint64_t max_json; /* bytes of a request's text that is parsed on the reactor */
};

double module_now (void); /* seconds */

/* --- module.c ---------------------------------------------------------------------------------- */

/* Begin to unload, by name or by the path that it was loaded from; 'request' is answered when the module is gone.
 * Returns 0, or -1 with errno ENOENT.
 */
int modules_remove (struct modules *ms, const char *name, const idt_msg_t *request);

/* A message, or the end of all, has come from the shared thread.  The module may be gone after. */
void module_heard (struct module *m);

/* When its thread is done with it. */
void module_destroy (struct module *m);

/* --- load.c ------------------------------------------------------------------------------- */

struct module *modules_find (struct modules *ms, const char *name); /* NULL: there is none */

/* Find a module's file, its name and its arguments, and open it.  Returns 0, or -1 with errno set and 'errp' filled as
 * modules_load () says; what was made is the module's to free.
 */
int module_open (struct module *m, const char *path, const char *name, int argc, char **argv, idt_error_t *errp);

/* Whether it was loaded from the file that 'path' names; whether it has the name of its file. */
bool module_is_from (const struct module *m, const char *path);
bool module_has_name_of_file (const struct module *m);

/* --- host.c --------------------------------------------------------------------------------- */

/* Make the module's peer, known to the router, and its handle.  Return 0, or -1 with errno set. */
int module_make_peer (struct module *m);
int module_make_handle (struct module *m);

/* The same for the broker's own services, with the caller's peer. */
int module_make_builtin (struct module *m, struct peer *peer);

/* Tell the broker, from the module's thread, how its start ended.  Returns 0, or -1 with errno set. */
int module_tell_started (struct module *m, int errnum, const char *text);

/* A message that a module sent (steals the reference, which is the only one by now). */
void module_sent (struct module *m, idt_msg_t *msg);

/* A module that goes takes what waits for it along. */
void module_forget_messages (struct module *m);

/* What waits for a module, or its room for that, has changed. */
void module_check_active (struct module *m);

/* What it was lent. */
void module_free_texts (struct module *m);

/* Take it off the overlay, before the code that the overlay would call is gone. */
void module_detach (struct module *m);

/* --- shared.c -------------------------------------------------------------------------------- */

/* Make the mailboxes of a module for the thread; then have it begin there.  Return 0, or -1 with errno set. */
int shared_make_mailboxes (struct shared *s, struct module *m, size_t limit);
int shared_start (struct shared *s, struct module *m, idt_error_t *errp);

/* It does not end: what it needs stays until it does.  Meanwhile the thread is stuck. */
void shared_leave_behind (struct shared *s);
bool shared_is_stuck (const struct shared *s);

#endif /* BROKER_MODULE_PRIVATE_H */
