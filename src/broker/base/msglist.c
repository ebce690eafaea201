/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* msglist.c - a list of streaming requests */
#include "config.h"

#include <czmq.h>
#include <errno.h>
#include <stdlib.h>

#include "broker/base/msglist.h"
#include "libmodule/quota.h"
#include "libmodule/module.h"
#include "libutil/errprintf.h"

struct msglist {
    zlistx_t *requests; /* each with a reference */
    struct quota quota; /* limits the requests of one user */
};

static void unref_message (void **item)
{
    idt_msg_unref (*item);
    *item = NULL;
}

struct msglist *msglist_create (void)
{
    struct msglist *fw = calloc (1, sizeof (*fw));

    if (!fw || !(fw->requests = zlistx_new ())) {
        free (fw);
        return errset_null (ENOMEM);
    }
    zlistx_set_destructor (fw->requests, unref_message);
    quota_init (&fw->quota, QUOTA_FOLLOWERS);
    return fw;
}

void msglist_destroy (struct msglist *fw)
{
    if (!fw)
        return;
    zlistx_destroy (&fw->requests);
    quota_fini (&fw->quota);
    free (fw);
}

int msglist_add (struct msglist *fw, const idt_msg_t *request, idt_error_t *errp)
{
    if (quota_take (&fw->quota, idt_msg_cred (request), errp) < 0)
        return -1;
    if (zlistx_add_end (fw->requests, (void *)idt_msg_ref (request)))
        return 0;
    idt_msg_unref (request);
    quota_give (&fw->quota, idt_msg_cred (request));
    return errsetf (errp, ENOMEM, "out of memory");
}

size_t msglist_count (const struct msglist *fw)
{
    return zlistx_size (fw->requests);
}

void msglist_respond (struct msglist *fw, idt_t *h, const char *s)
{
    const idt_msg_t *request = zlistx_first (fw->requests);

    for (; request; request = zlistx_next (fw->requests))
        idt_respond (h, request, s);
}

void msglist_end (struct msglist *fw, idt_t *h, int errnum)
{
    const idt_msg_t *request = zlistx_first (fw->requests);

    for (; request; request = zlistx_next (fw->requests))
        idt_respond_error (h, request, errnum, NULL);
    zlistx_purge (fw->requests);
    quota_fini (&fw->quota);
}

void msglist_disconnect (struct msglist *fw, const idt_msg_t *msg)
{
    const idt_msg_t *request = zlistx_first (fw->requests);

    for (; request; request = zlistx_next (fw->requests))
        if (module_same_client (request, msg)) {
            quota_give (&fw->quota, idt_msg_cred (request));
            zlistx_delete (fw->requests, zlistx_cursor (fw->requests));
        }
}
