/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* inlined.c - a module for tests that the broker hosts on its own reactor
 *
 *   inlined.echo  {...}  returns the same object
 *   inlined.hold         is answered with ECANCELED when the module ends
 *
 * When the module ends, it overwrites all of its data, so that tests notice if a message arrives later. With the
 * argument "fail" the module does not start.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <idtree/idtree.h>

struct inlined {
    const idt_msg_t *held;
    char *alive;
};

static void echo_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct inlined *x = arg;
    const char *s = idt_msg_string (msg);

    if (strcmp (x->alive, "alive") != 0)
        abort ();
    idt_respond (h, msg, s ? s : "{}");
}

static void hold_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct inlined *x = arg;

    if (x->held)
        idt_respond_error (h, msg, EBUSY, NULL);
    else
        x->held = idt_msg_ref (msg);
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_REQUEST, "inlined.echo", echo_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "inlined.hold", hold_cb, 0 },
    IDT_HANDLERS_END,
};

static int init (idt_t *h, int argc, char **argv, void **ctx, idt_error_t *errp)
{
    struct inlined *x;

    if (argc > 0 && strcmp (argv[0], "fail") == 0) {
        strcpy (errp->text, "the argument 'fail' was given");
        errno = EDOM;
        return -1;
    }
    if (!(x = calloc (1, sizeof (*x))) || !(x->alive = strdup ("alive")))
        abort ();
    *ctx = x;
    return idt_handlers_add (h, handlers, x);
}

static void fini (idt_t *h, void *ctx)
{
    struct inlined *x = ctx;

    if (x->held)
        idt_respond_error (h, x->held, ECANCELED, "the module ends");
    idt_msg_unref (x->held);
    memset (x->alive, 'x', 4);
    free (x->alive);
    free (x);
}

IDT_MODULE ("inlined", init, fini)
