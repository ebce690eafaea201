/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* service.c - what goes up without an answer */
#include "modules/fluid/service/service.h"

int service_tell_up (struct service *sv, const char *topic, json_t *o)
{
    idt_future_t *f = idt_rpc_pack (sv->h, topic, IDT_NODEID_UPSTREAM, IDT_RPC_NORESPONSE, "o", o);

    if (!f)
        return -1;
    idt_future_destroy (f);
    return 0;
}
