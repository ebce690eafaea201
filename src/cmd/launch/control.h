/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* control.h - the socket on which the launcher serves idtree startctl
 *
 * The launcher listens on the UNIX stream socket "start" in the instance's directory, which only the owner may enter. A
 * client sends one JSON object on a line, and gets one as the answer:
 *
 *    {"verb":"status"}    {"brokers":[{"rank":i,"pid":i or null,"state":s}...]}
 *    {"verb":"kill|stop|cont|run","rank":i,"signal":i}    {} once it is done, or {"error":s}
 */
#ifndef CMD_CONTROL_H
#define CMD_CONTROL_H

#include <jansson.h>

#include <idtree/error.h>
#include <idtree/reactor.h>

#define CONTROL_SOCKET "start"
#define CONTROL_CLIENTS_MAX 64
#define CONTROL_LINE_MAX 1024 /* bytes of a request */

/* The error that other users get.  If such a user cannot even connect, startctl prints this text itself. */
#define CONTROL_OWNER_ONLY "only the owner of the instance may ask its launcher"

struct control_request {
    const char *verb; /* "kill", "stop", "cont", "run" */
    int rank;
    int signum; /* signal of a kill */
};

enum control_result {
    CONTROL_FAILED = -1,
    CONTROL_DONE = 0,
    CONTROL_WAIT = 1,
};

struct control_ops {
    json_t *(*status) (void *arg); /* returns the answer to a status, a new object; NULL: out of memory */
    /* Begin a request.  Returns CONTROL_WAIT, or CONTROL_FAILED with the reason in 'errp'. */
    enum control_result (*begin) (void *arg, const struct control_request *req, idt_error_t *errp);
    /* Whether a request is done.  It is called after 'begin', and at each control_notify (). */
    enum control_result (*check) (void *arg, const struct control_request *req, idt_error_t *errp);
};

struct control;

/* Listen in 'dir'.  'ops' is borrowed.  Returns NULL with errno set and the reason in 'errp'. */
struct control *control_create (idt_reactor_t *r, const char *dir, const struct control_ops *ops, void *arg,
                                idt_error_t *errp);
void control_destroy (struct control *ctl); /* drops waiting clients; 'ctl' may be NULL */

/* Call this when the state of a broker has changed.  It checks the requests of all waiting clients. */
void control_notify (struct control *ctl);

#endif /* CMD_CONTROL_H */
