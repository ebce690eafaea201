/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* respond.c - responses to requests
 *
 * A request with NORESPONSE gets no response. Every other request gets one: if the intended response cannot be made or
 * sent, an error response replaces it. All responses go through answer_new ().
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libidtree/private.h"
#include "libutil/errprintf.h"

static bool wants_response (const idt_msg_t *request)
{
    return !idt_msg_has_flag (request, IDT_MSGFLAG_NORESPONSE);
}

/* If the text cannot be set, the error is still sent. */
static idt_msg_t *make_error (const idt_msg_t *request, int errnum, const char *text)
{
    idt_msg_t *response = idt_msg_respond (request, (uint32_t)errnum);

    if (response)
        (void)idt_msg_set_string (response, text);
    return response;
}

/* Send an error response instead of the intended one. Returns -1; errno stays as it was, or becomes EIO if it was 0. */
static int answer_failed (idt_t *h, const idt_msg_t *request, const char *why)
{
    int errnum = errno > 0 ? errno : EIO;
    idt_error_t text;

    errprintf (&text, "the response cannot be made: %s", why);
    idt_msg_t *response = make_error (request, errnum, text.text);
    if (response)
        (void)idt_send (h, response);
    idt_msg_unref (response);
    return errset (errnum);
}

/* Send 'response' (stolen). NULL: it could not be made; errno is the reason. */
static int answer_new (idt_t *h, const idt_msg_t *request, idt_msg_t *response)
{
    int rc = response ? idt_send (h, response) : -1;

    idt_msg_unref (response);
    return rc < 0 ? answer_failed (h, request, strerror (errno)) : 0;
}

int idt_respond_raw (idt_t *h, const idt_msg_t *request, const void *data, size_t size)
{
    if (!wants_response (request))
        return 0;
    idt_msg_t *response = idt_msg_respond (request, 0);
    if (response && idt_msg_set_payload (response, data, size) < 0) {
        idt_msg_unref (response);
        response = NULL;
    }
    return answer_new (h, request, response);
}

int idt_respond (idt_t *h, const idt_msg_t *request, const char *s)
{
    return idt_respond_raw (h, request, s, s ? strlen (s) + 1 : 0);
}

int idt_respond_error (idt_t *h, const idt_msg_t *request, int errnum, const char *text)
{
    assert (errnum > 0);
    return wants_response (request) ? answer_new (h, request, make_error (request, errnum, text)) : 0;
}

int idt_respond_pack (idt_t *h, const idt_msg_t *request, const char *fmt, ...)
{
    idt_error_t error;
    va_list ap;

    va_start (ap, fmt);
    char *s = json_vpack_text (&error, fmt, ap);
    va_end (ap);
    if (!s) {
        if (errno == EINVAL) /* EINVAL would blame the requester */
            errno = EPROTO;
        return wants_response (request) ? answer_failed (h, request, error.text) : -1;
    }
    int rc = idt_respond (h, request, s);
    free (s);
    return rc;
}
