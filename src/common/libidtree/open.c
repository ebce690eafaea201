/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* open.c - a handle with all its parts: opening and closing it, and the functions of the parts that the handle calls */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libidtree/handle.h"
#include "libpage/page_client.h"
#include "libutil/errprintf.h"

static void dispatch (idt_t *h, const idt_msg_t *msg)
{
    if (h->documents && idt_msg_type (msg) == IDT_MSGTYPE_EVENT)
        document_event (h, msg);
    service_dispatch (h, msg);
}

static void connected (idt_t *h)
{
    if (h->documents)
        document_connected (h);
    registration_repeat_late (h);
}

static const struct handle_ops parts = {
    .dispatch = dispatch,
    .lost = broker_forget,
    .connecting = registration_repeat,
    .misses_events = registration_subscribed,
    .connected = connected,
};

void idt_close (idt_t *h)
{
    if (!h)
        return;
    int saved_errno = errno;
    assert (!h->documents);
    generate_fini (h);
    service_fini (h);
    registration_fini (h);
    json_decref (h->attrs);
    free (h->module);
    handle_destroy (h);
    errno = saved_errno;
}

idt_t *idt_handle_create (const struct idt_transport *transport, void *impl)
{
    json_t *attrs = json_object ();
    idt_t *h = attrs ? handle_create (transport, impl, &parts) : NULL;

    if (!h) {
        json_decref (attrs);
        return errset_null (ENOMEM);
    }
    h->attrs = attrs;
    TAILQ_INIT (&h->handlers);
    TAILQ_INIT (&h->registrations);
    generate_init (h);
    return h;
}

/* Connect to a broker of the list 'uris'. */
static idt_t *open_uris (const char *uris, const struct idt_open_options *o, idt_error_t *errp)
{
    struct connection *c = connection_open (uris, o, errp);

    if (!c)
        return NULL;
    idt_t *h = idt_handle_create (&connection_transport, c);
    if (!h) {
        errprintf (errp, "%s", strerror (errno));
        connection_destroy (c);
        return NULL;
    }
    handle_set_connection (h, c, o->flags);
    idt_set_interrupt (h, o->interrupt, o->arg);
    return h;
}

const char *idt_default_uri (void)
{
    return call_default_uri ();
}

idt_t *idt_open_ex (const char *uri, const struct idt_open_options *options, idt_error_t *errp)
{
    static const struct idt_open_options defaults;
    const struct idt_open_options *o = options ? options : &defaults;
    bool nowhere = !uri && !call_is_told ();

    if ((o->flags & ~(IDT_O_RECONNECT | IDT_O_NORECONNECT | IDT_O_NOSHM)) != 0
        || (o->flags & (IDT_O_RECONNECT | IDT_O_NORECONNECT)) == (IDT_O_RECONNECT | IDT_O_NORECONNECT)) {
        errsetf (
            errp, EINVAL,
            "flags 0x%x are not valid: use IDT_O_RECONNECT or IDT_O_NORECONNECT or neither, and optionally IDT_O_NOSHM",
            (unsigned)o->flags);
        return NULL;
    }
    idt_t *h = open_uris (uri ? uri : idt_default_uri (), o, errp);
    if (!h && nowhere && (errno == ENOENT || errno == ECONNREFUSED))
        errprintf (errp,
                   "no instance: neither IDTREE_URI nor FLUX_URI is set, and no broker listens at " CALL_DEFAULT_URI);
    return h;
}

idt_t *idt_open (const char *uri, idt_error_t *errp)
{
    return idt_open_ex (uri, NULL, errp);
}
