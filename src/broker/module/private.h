/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private.h - declarations that the files of modules share
 *
 *   serve.c   module.list, module.load, module.remove
 *   module.c  load, start, stop, forget
 *   load.c    finds a module by name, and opens its file: name, arguments, shared object
 *   host.c    the paths of messages to and from a module
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
#define MODULE_TURN_US 50     /* time for messages of modules before the reactor polls sockets */
#define MODULE_MAX_ASKS 16384 /* requests that wait for one service */
#define MODULE_MAX_BYTES (16 << 20)
#define MODULE_MAX_INSIDE 256 /* requests in the mailbox of a thread */

/* Control messages between a thread and its host, and to the shared thread. */
enum module_control {
    MODULE_CONTROL_STARTED = 0,
    MODULE_CONTROL_ROOM = 1,
    MODULE_CONTROL_BEGIN = 2,
    MODULE_CONTROL_END = 3,
};

/* Module status as in module.list (RFC 5). */
enum module_status { MODULE_STARTING = 0, MODULE_RUNNING = 1, MODULE_STOPPING = 2, MODULE_ENDED = 3 };

struct module {
    struct peer own; /* of the router; unused for the broker's own services */
    struct peer *peer;
    struct modules *ms;
    char name[MODULE_MAX_NAME + 1];
    char *path;
    void *dso;
    idt_t *h;
    const struct idt_module *def; /* NULL: it has only idt_mod_main */
    bool threaded;
    bool shared;        /* in the thread that several modules share */
    bool attached;      /* to the overlay */
    bool stopping;      /* is ending: gets no messages, and is no longer in the list */
    bool tells_nothing; /* has no figures (NAME.metrics) */
    bool quiet;         /* has only zeros until it gets a message */
    uint64_t given;     /* messages that it got, and that count at the last request for figures */
    uint64_t asked_at;
    bool left_behind; /* did not end in time: owned by its thread; its broker may be destroyed */
    void *ctx;
    const void *kept; /* handover that it got (borrowed until its start), and that it leaves */
    size_t kept_size;
    void *kept_copy; /* owner of 'kept' for a thread */
    void *left;
    size_t left_size;
    double used; /* time of its last message, seconds */
    /* Waiting messages; host.c has the order. */
    struct fifo said;       /* sent by an inline module */
    struct fifo replies;    /* responses and events for an inline module */
    struct drr_queue *asks; /* requests for it, by requester */
    int inside;             /* requests in the thread; atomic */
    bool active;            /* in the list of modules with messages to pass on */
    TAILQ_ENTRY (module) link;
    /* for a module in a thread */
    struct mailbox *in; /* to the module */
    struct mailbox *out;
    idt_watcher_t *w;
    pthread_t thread;
    bool told; /* its start was reported; used by its thread */
    /* in the shared thread, which owns these until it has closed 'out' */
    idt_reactor_t *view;
    struct attrs *attrs; /* the broker's, to read */
    bool begun;
    int result;               /* errno with which it ended; 0: no error */
    struct error_text *texts; /* values of attributes that it has read */
    enum module_status status;
    const idt_msg_t *loader;  /* request to load it, answered after its start or failure */
    const idt_msg_t *remover; /* request to unload it, answered when it has ended */
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
    uint32_t owner;    /* user id of the instance owner */
    uint64_t seed;     /* of the keys of requesters */
    uint64_t max_json; /* bytes of a request that is parsed on the reactor */
};

double module_now (void); /* seconds */

/* --- module.c ---------------------------------------------------------------------------------- */

/* Begin to unload a module, by name or by the path of its file; 'request' is answered when the module has ended.
 * Returns 0, or -1 with errno ENOENT.
 */
int modules_remove (struct modules *ms, const char *name, const idt_msg_t *request);

/* Handle a message, or the end, of a module in the shared thread. This may destroy the module. */
void module_heard (struct module *m);

/* Only when its thread no longer uses it. */
void module_destroy (struct module *m);

/* --- load.c ------------------------------------------------------------------------------- */

struct module *modules_find (struct modules *ms, const char *name); /* NULL: not loaded */

/* Find the module's file, name and arguments, and open it. Returns 0, or -1 with errno set and 'errp' filled as
 * modules_load (); the caller destroys the module in both cases.
 */
int module_open (struct module *m, const char *path, const char *name, int argc, char **argv, idt_error_t *errp);

/* Whether it was loaded from the file 'path'; whether its name is the name of its file. */
bool module_is_from (const struct module *m, const char *path);
bool module_has_name_of_file (const struct module *m);

/* --- host.c --------------------------------------------------------------------------------- */

/* Make the module's peer and register it with the router; make its handle. Return 0, or -1 with errno set. */
int module_make_peer (struct module *m);
int module_make_handle (struct module *m);

/* The same for the broker's own services, with the caller's peer. */
int module_make_builtin (struct module *m, struct peer *peer);

/* Report the result of a start from the module's thread to the broker. Returns 0, or -1 with errno set. */
int module_tell_started (struct module *m, int errnum, const char *text);

/* Pass on a message that a module sent (steals the reference, which is the only one). */
void module_sent (struct module *m, idt_msg_t *msg);

/* Drop the messages that wait for a module that ends. */
void module_forget_messages (struct module *m);

/* Must be called when the messages that wait for a module, or its room for them, have changed. */
void module_check_active (struct module *m);

/* Free the values of attributes that it has read. */
void module_free_texts (struct module *m);

/* Detach the module from the overlay, before the code of its callbacks is unmapped. */
void module_detach (struct module *m);

/* --- shared.c -------------------------------------------------------------------------------- */

/* Make the mailboxes of a module in the shared thread; start it there. Return 0, or -1 with errno set. */
int shared_make_mailboxes (struct shared *s, struct module *m, size_t limit);
int shared_start (struct shared *s, struct module *m, idt_error_t *errp);

/* A module does not end: its data stays until it does, and the thread counts as stuck. */
void shared_leave_behind (struct shared *s);
bool shared_is_stuck (const struct shared *s);

#endif /* BROKER_MODULE_PRIVATE_H */
