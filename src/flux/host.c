/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* host.c - makes the fluid service a module of Flux: to the service, Flux's broker looks like idtree's
 *
 * A module knows its broker only through its handle, and a handle knows its broker only through the functions of a
 * transport (libidtree/transport.h). This file is a transport over the handle that Flux gives to its modules. So code
 * that uses libidtree runs in Flux unchanged, with libidtree's reactor and futures.
 *
 * Flux's own reactor never runs in the module's thread. The handle's reactor waits on Flux's descriptor. This
 * descriptor is edge-triggered, so all messages are read each time (next_message ()).
 *
 * Flux may cancel a thread at any system call. Here cancellation is enabled only between two turns of the reactor,
 * where the module can end cleanly: it returns its leases, and unlocks its folder for the next load.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>

#include <flux/core.h>
#include <idtree/idtree.h>
#include <idtree/module.h>

#include "flux/ending.h"
#include "flux/hello.h"
#include "flux/sender.h"
#include "flux/settings.h"
#include "libidtree/transport.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

#define HOST_SERVICE "fluid"
#define SMALL 1024         /* largest message in bytes that is converted without an allocation */
#define MAX_JSON (2 << 20) /* bytes of a request's text; in idtree's broker, broker.max-json sets this limit */

struct flux_host {
    flux_t *flux;
    idt_t *h;
    const char *name; /* the module's name in Flux, borrowed */
    char uuid[IDT_MSG_UUID_LEN + 1];
    uint32_t rank;
    struct settings *settings;
    struct flux_children *below;
    struct greeter *greeter;
    struct ending *ending;
    struct flux_parent *parent; /* NULL at rank 0, and until a module attaches to the overlay */
    char flux_handover_path[PATH_MAX];
    void *past; /* the handover of the previous load, or NULL */
    size_t flux_handover_size;
};

/* --- messages -------------------------------------------------------------------------------------- */

/* Return a buffer of 'size' bytes: 'small', if it suffices. */
static void *room (size_t size, char small[SMALL])
{
    return size <= SMALL ? small : malloc (size);
}

static void leave (void *buf, const char *small)
{
    int saved = errno;

    if (buf != small)
        free (buf);
    errno = saved;
}

/* Convert a message. libflux and libidtree encode a message as the same bytes (RFC 3), so each decodes what the other
 * has encoded. Returns a new message, or NULL with errno set (ENOMEM, EPROTO).
 */
static idt_msg_t *message_from_flux (const flux_msg_t *in)
{
    char small[SMALL], *buf;
    ssize_t size = flux_msg_encode_size (in);
    idt_msg_t *msg = NULL;

    if (size < 0 || !(buf = room ((size_t)size, small)))
        return NULL;
    if (flux_msg_encode (in, buf, (size_t)size) == 0)
        msg = idt_msg_decode (buf, (size_t)size);
    leave (buf, small);
    return msg;
}

static flux_msg_t *message_to_flux (const idt_msg_t *in)
{
    char small[SMALL], *buf;
    size_t size = idt_msg_encode_size (in);
    flux_msg_t *msg = NULL;

    if (!(buf = room (size, small)))
        return NULL;
    if (idt_msg_encode (in, buf, size) >= 0)
        msg = flux_msg_decode (buf, size);
    leave (buf, small);
    return msg;
}

/* Restore the route of an answer. Its newest hop was this broker, until sender_mark () replaced it (sender.h). */
static int restore_route (const struct flux_host *host, flux_msg_t *msg, const idt_msg_t *from)
{
    if (idt_msg_type (from) != IDT_MSGTYPE_RESPONSE || idt_msg_route_count (from) == 0)
        return 0;
    return flux_msg_route_delete_last (msg) < 0 ? -1 : flux_msg_route_push (msg, host->uuid);
}

static int host_send (void *impl, const idt_msg_t *msg)
{
    struct flux_host *host = impl;
    flux_msg_t *out = message_to_flux (msg);

    if (out && restore_route (host, out, msg) == 0 && flux_send_new (host->flux, &out, 0) == 0)
        return 0;
    int errnum = errno;
    flux_msg_decref (out);
    return errset (errnum);
}

/* Return the next message, or NULL with errno EAGAIN (no message) or ECONNRESET. */
static flux_msg_t *next_message (struct flux_host *host)
{
    flux_msg_t *msg;

    while (!(msg = flux_recv (host->flux, FLUX_MATCH_ANY, FLUX_O_NONBLOCK))) {
        if (errno != EAGAIN && errno != EWOULDBLOCK)
            return NULL;
        int events = flux_pollevents (host->flux);
        if (events < 0 || (events & FLUX_POLLERR))
            return errset_null (ECONNRESET);
        if (!(events & FLUX_POLLIN))
            return errset_null (EAGAIN);
    }
    return msg;
}

/* Whether Flux's broker ends the module by this request: NAME.shutdown, sent as the instance owner. */
static bool is_end (const struct flux_host *host, const idt_msg_t *msg)
{
    const char *topic = idt_msg_topic (msg);
    size_t len = strlen (host->name);

    return topic && (idt_msg_cred (msg).rolemask & IDT_ROLE_OWNER) && strncmp (topic, host->name, len) == 0
           && strcmp (topic + len, ".shutdown") == 0;
}

/* Mark a request as idtree's own broker would. Returns whether the handle must get the request. Otherwise it was
 * answered here, or dropped because memory is short.
 */
static bool admit (struct flux_host *host, idt_msg_t *request)
{
    if (sender_mark (request, host->below) < 0)
        return false;
    if (!host->greeter || !greeter_holds_off (host->greeter, request, clock_us (CLOCK_BOOTTIME)))
        return true;
    (void)idt_respond_error (
        host->h, request, EAGAIN,
        "the rank that was asked has no fluid service, or reloads it now: ask again, or load it with flux module load");
    return false;
}

/* Receive a message for the handle. Messages that cannot be decoded are dropped, as Flux drops them. Returns NULL with
 * errno EPIPE if the module must end.
 */
static const idt_msg_t *host_recv (void *impl)
{
    struct flux_host *host = impl;
    flux_msg_t *in;

    while ((in = next_message (host))) {
        idt_msg_t *msg = message_from_flux (in);

        flux_msg_decref (in);
        if (!msg)
            continue;
        bool request = idt_msg_type (msg) == IDT_MSGTYPE_REQUEST;
        bool end = request && is_end (host, msg);
        if (!end && (!request || admit (host, msg)))
            return msg;
        idt_msg_unref (msg);
        if (end)
            return errset_null (EPIPE);
    }
    return NULL;
}

static int host_pollfd (void *impl)
{
    struct flux_host *host = impl;

    return flux_pollfd (host->flux);
}

/* --- attributes, log ---------------------------------------------------------------------------------- */

/* Get an attribute. Flux's rundir is hidden, because Flux removes it when the broker ends, so nothing durable may be
 * stored there.
 */
static const char *host_attr_get (void *impl, const char *name)
{
    struct flux_host *host = impl;
    const char *value = settings_get (host->settings, name);

    if (value)
        return value;
    if (strcmp (name, "rundir") == 0 || strncmp (name, HOST_SERVICE ".", sizeof (HOST_SERVICE)) == 0)
        return errset_null (ENOENT);
    return flux_attr_get (host->flux, name);
}

static const char *host_attr_define (void *impl, const char *name, const char *value)
{
    const char *given = host_attr_get (impl, name);

    return given ? given : value;
}

static void host_log (void *impl, int level, const char *name, const char *text)
{
    struct flux_host *host = impl;

    flux_log (host->flux, level, "%s", text);
}

/* --- the overlay ---------------------------------------------------------------------------------------- */

static int host_overlay_attach (void *impl, const struct idt_overlay_ops *ops, void *arg)
{
    struct flux_host *host = impl;

    if (host->parent)
        return errset (EEXIST);
    if (host->rank > 0 && !(host->parent = flux_parent_create (host->h, host->rank, ops, arg)))
        return -1;
    greeter_set_clock (host->greeter, ops, arg);
    return 0;
}

static bool host_overlay_covers (void *impl, const idt_msg_t *request, uint32_t rank)
{
    const struct flux_host *host = impl;

    return sender_covers (request, host->below, host->rank, rank);
}

/* Stop the hellos to the parent and the answers to children. */
static void stop_hellos (struct flux_host *host)
{
    flux_parent_destroy (host->parent);
    greeter_destroy (host->greeter);
    ending_destroy (host->ending);
    host->parent = NULL;
    host->ending = NULL;
    host->greeter = NULL;
}

/* --- the handover ----------------------------------------------------------------------------------------- */

static int host_keep (void *impl, const void *data, size_t size)
{
    struct flux_host *host = impl;

    return flux_handover_write (host->flux_handover_path, data, size);
}

static const void *host_kept (void *impl, size_t *size)
{
    struct flux_host *host = impl;

    *size = host->flux_handover_size;
    return host->past;
}

static void host_fini (void *impl)
{
}

static const struct idt_transport transport = {
    .send = host_send,
    .recv = host_recv,
    .pollfd = host_pollfd,
    .attr_get = host_attr_get,
    .attr_define = host_attr_define,
    .overlay_attach = host_overlay_attach,
    .overlay_covers = host_overlay_covers,
    .keep = host_keep,
    .kept = host_kept,
    .log = host_log,
    .destroy = host_fini,
};

/* --- start: requests to Flux's broker ------------------------------------------------------------------------- */

static int read_settings (struct flux_host *host, int argc, char **argv, idt_error_t *errp)
{
    json_t *config = NULL;
    const flux_conf_t *conf = flux_get_conf (host->flux);
    flux_error_t error;

    if (conf && flux_conf_unpack (conf, &error, "{s?o}", "idtree", &config) < 0)
        return errprintf (errp, "cannot read the configuration: %s", error.text);
    if (!(host->settings = settings_create (argc, argv, config, errp)))
        return -1;
    /* the setting counts as known on all ranks, although only rank 0 reads it */
    (void)settings_get (host->settings, "statedir");
    return 0;
}

static int read_place (struct flux_host *host, uint32_t *size, idt_error_t *errp)
{
    const char *uuid = flux_attr_get (host->flux, "broker.uuid"), *rundir = NULL;

    if (flux_get_rank (host->flux, &host->rank) < 0 || flux_get_size (host->flux, size) < 0
        || !(rundir = flux_attr_get (host->flux, "rundir")))
        return errprintf (errp, "cannot get rank, size or rundir of this broker: %s", strerror (errno));
    if (!uuid || strlen (uuid) != IDT_MSG_UUID_LEN)
        return errsetf (errp, ENOTSUP, "this broker has no attribute broker.uuid: a newer Flux is needed");
    strcpy (host->uuid, uuid);
    if (snprintf (host->flux_handover_path, sizeof (host->flux_handover_path), "%s/idtree-" HOST_SERVICE "-%s", rundir,
                  uuid)
        >= (int)sizeof (host->flux_handover_path))
        return errsetf (errp, ENAMETOOLONG, "the path of rundir is too long");
    host->past = flux_handover_take (host->flux_handover_path, IDT_MODULE_KEEP_MAX, &host->flux_handover_size);
    return 0;
}

static int read_tree (struct flux_host *host, uint32_t size, idt_error_t *errp)
{
    flux_future_t *f = flux_rpc_pack (host->flux, "overlay.topology", FLUX_NODEID_ANY, 0, "{s:i}", "rank",
                                      (int)host->rank);
    json_t *topology;

    if (!f || flux_rpc_get_unpack (f, "o", &topology) < 0)
        errprintf (errp, "overlay.topology: %s", strerror (errno));
    else
        host->below = flux_children_create (topology, size, errp);
    int saved = errno;
    flux_future_destroy (f);
    errno = saved;
    return host->below ? 0 : -1;
}

/* Wait for the answer to 'f' (stolen). Returns 0, or -1 with errno set and a sentence in 'errp'. */
static int wait_for (idt_future_t *f, const char *what, idt_error_t *errp)
{
    int rc = f ? idt_rpc_get (f, NULL) : -1;

    if (rc < 0)
        errprintf (errp, "%s: %s", what, f && idt_future_errnum (f) ? idt_future_error (f) : strerror (errno));
    idt_future_destroy (f);
    return rc;
}

/* Register the service if it is not the name of the module, and subscribe to the event that clears the service's stats.
 */
static int register_service (struct flux_host *host, idt_error_t *errp)
{
    if (strcmp (host->name, HOST_SERVICE) != 0
        && wait_for (idt_service_add (host->h, HOST_SERVICE), "the service " HOST_SERVICE, errp) < 0)
        return -1;
    return wait_for (idt_event_subscribe (host->h, HOST_SERVICE ".stats-clear"), "events", errp);
}

static void over_cb (void *arg)
{
    const struct flux_host *host = arg;

    idt_reactor_stop (idt_get_reactor (host->h));
}

static int open_handle (struct flux_host *host, idt_error_t *errp)
{
    if (!(host->h = idt_handle_create (&transport, host)) || idt_handle_set_module (host->h, HOST_SERVICE) < 0
        || !idt_get_reactor (host->h) || !(host->greeter = greeter_create (host->h, host->below))
        || !(host->ending = ending_create (host->h, over_cb, host)))
        return errprintf (errp, "cannot start: %s", strerror (errno));
    idt_handle_set_max_json (host->h, MAX_JSON);
    return 0;
}

/* The module has started. Check that each given setting was read, and report to Flux that the module runs. Returns 0,
 * or -1 with errno set and a sentence in 'errp'.
 */
static int host_started (struct flux_host *host, idt_error_t *errp)
{
    const char *unknown = settings_unknown (host->settings);

    if (unknown)
        return errsetf (errp, EINVAL, "%s: there is no such setting", unknown);
    if (flux_module_set_running (host->flux) < 0)
        return errprintf (errp, "module.status: %s", strerror (errno));
    return 0;
}

static void host_destroy (struct flux_host *host)
{
    if (!host)
        return;
    int saved = errno;
    stop_hellos (host);
    idt_close (host->h);
    flux_children_destroy (host->below);
    settings_destroy (host->settings);
    free (host->past);
    free (host);
    errno = saved;
}

/* Make the host from Flux's handle of a module (borrowed) and the module's arguments. Sends requests to the broker, and
 * blocks until they are answered. Returns NULL with errno set and a sentence in 'errp'.
 */
static struct flux_host *host_create (flux_t *flux, int argc, char **argv, idt_error_t *errp)
{
    struct flux_host *host = calloc (1, sizeof (*host));
    uint32_t size;

    if (!host) {
        errprintf (errp, "out of memory");
        return NULL;
    }
    host->flux = flux;
    if (!(host->name = flux_aux_get (flux, "flux::name")))
        host->name = HOST_SERVICE;
    if (read_settings (host, argc, argv, errp) == 0 && read_place (host, &size, errp) == 0
        && read_tree (host, size, errp) == 0 && open_handle (host, errp) == 0 && register_service (host, errp) == 0)
        return host;
    host_destroy (host);
    return NULL;
}

/* --- the module ----------------------------------------------------------------------------------------- */

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
        stop_hellos (run->host);
    if (run->started)
        idt_module.fini (run->host->h, run->ctx);
    idt_watcher_destroy (run->turns);
    host_destroy (run->host);
    errno = saved;
}

static int start (struct module_run *run, flux_t *flux, int argc, char **argv, idt_error_t *errp)
{
    if (!(run->host = host_create (flux, argc, argv, errp)))
        return -1;
    idt_t *h = run->host->h;
    if (!(run->turns = idt_prepare_watcher_create (idt_get_reactor (h), look_cb, NULL)))
        return -1;
    if (idt_module.init (h, 0, NULL, &run->ctx, errp) < 0)
        return -1;
    run->started = true;
    idt_watcher_start (run->turns);
    return host_started (run->host, errp);
}

/* Run the module. A handle returns EPIPE when the module must end, so EPIPE is not an error. */
static int serve (struct module_run *run, flux_t *flux, int argc, char **argv)
{
    idt_error_t error = { "out of memory" };

    if (start (run, flux, argc, argv, &error) < 0) {
        int errnum = errno ? errno : EIO;

        flux_log (flux, LOG_ERR, "%s", error.text);
        errno = errnum;
        return -1;
    }
    return idt_reactor_run (idt_get_reactor (run->host->h), IDT_REACTOR_DEFAULT) < 0 && errno != EPIPE ? -1 : 0;
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
