/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* main.c - the fluid service as a module of Flux
 *
 * Flux may cancel a thread at any system call. Here cancellation is enabled only between two turns of the reactor,
 * where the module can end cleanly: it returns what it holds, and unlocks its folder for the next load.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <syslog.h>

#include <idtree/idtree.h>

#include "flux/host.h"


struct module_run {
    struct flux_host *host;
    bool started;
    void *ctx;
    idt_watcher_t *turns;
};

static void look_cb (idt_watcher_t *w, int revents, void *arg)
{
    pthread_setcancelstate (PTHREAD_CANCEL_ENABLE, NULL);
    pthread_testcancel ();
    pthread_setcancelstate (PTHREAD_CANCEL_DISABLE, NULL);
}

static void end (void *arg)
{
    struct module_run *run = arg;
    int saved = errno;

    if (run->host)
        host_ending (run->host);
    if (run->started)
        idt_module.fini (host_handle (run->host), run->ctx);
    idt_watcher_destroy (run->turns);
    host_destroy (run->host);
    errno = saved;
}

static int start (struct module_run *run, flux_t *flux, int argc, char **argv, idt_error_t *errp)
{
    if (!(run->host = host_create (flux, argc, argv, errp)))
        return -1;
    idt_t *h = host_handle (run->host);
    if (!(run->turns = idt_prepare_watcher_create (idt_get_reactor (h), look_cb, NULL)))
        return -1;
    if (idt_module.init (h, 0, NULL, &run->ctx, errp) < 0)
        return -1;
    run->started = true;
    idt_watcher_start (run->turns);
    return host_started (run->host, errp);
}

/* A handle returns EPIPE when the module is to end. */
static int serve (struct module_run *run, flux_t *flux, int argc, char **argv)
{
    idt_error_t error = { "out of memory" };

    if (start (run, flux, argc, argv, &error) < 0) {
        int errnum = errno ? errno : EIO;

        flux_log (flux, LOG_ERR, "%s", error.text);
        errno = errnum;
        return -1;
    }
    return idt_reactor_run (idt_get_reactor (host_handle (run->host)), IDT_REACTOR_DEFAULT) < 0 && errno != EPIPE ? -1
                                                                                                                  : 0;
}

__attribute__ ((visibility ("default"))) int mod_main (flux_t *flux, int argc, char **argv);

int mod_main (flux_t *flux, int argc, char **argv)
{
    struct module_run run = { 0 };
    int state, rc;

    pthread_setcancelstate (PTHREAD_CANCEL_DISABLE, &state);
    pthread_cleanup_push (end, &run);
    rc = serve (&run, flux, argc, argv);
    pthread_cleanup_pop (1);
    pthread_setcancelstate (state, NULL);
    return rc;
}
