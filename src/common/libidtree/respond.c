/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* respond.c - answers to requests
 *
 * Nothing is sent where nobody waits for an answer (NORESPONSE).
 */
#include <assert.h>
#include <stdlib.h>

#include "libidtree/private.h"

static bool wants_response (const idt_msg_t *request)
{
    return !idt_msg_has_flag (request, IDT_MSGFLAG_NORESPONSE);
}

static int send_new (idt_t *h, idt_msg_t *response)
{
    int rc = idt_send (h, response);

    idt_msg_unref (response);
    return rc;
}

static int respond_string (idt_t *h, const idt_msg_t *request, int errnum, const char *s)
{
    if (!wants_response (request))
        return 0;
    idt_msg_t *response = idt_msg_respond (request, (uint32_t)errnum);
    if (response && idt_msg_set_string (response, s) == 0)
        return send_new (h, response);
    idt_msg_unref (response);
    return -1;
}

int idt_respond (idt_t *h, const idt_msg_t *request, const char *s)
{
    return respond_string (h, request, 0, s);
}

int idt_respond_error (idt_t *h, const idt_msg_t *request, int errnum, const char *text)
{
    assert (errnum > 0);
    return respond_string (h, request, errnum, text);
}

int idt_respond_raw (idt_t *h, const idt_msg_t *request, const void *data, size_t size)
{
    if (!wants_response (request))
        return 0;
    idt_msg_t *response = idt_msg_respond (request, 0);
    if (response && idt_msg_set_payload (response, data, size) == 0)
        return send_new (h, response);
    idt_msg_unref (response);
    return -1;
}

int idt_respond_pack (idt_t *h, const idt_msg_t *request, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    char *s = json_vpack_text (fmt, ap);
    va_end (ap);
    if (!s)
        return -1;
    int rc = idt_respond (h, request, s);
    free (s);
    return rc;
}
