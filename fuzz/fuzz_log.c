/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_log.c - log lines from untrusted sources: log.dmesg returns printable text for all of them
 *
 * If a line of the input begins with '!', the broker itself logs it. If it begins with '?', it is the value of one of
 * the log's attributes. Other lines are sent to log.append.
 */
#include "broker/base/log.h"
#include "fuzz.h"
#include "libidtree/transport.h"
#include "libutil/text.h"

struct fuzz_log {
    struct attrs *attrs;
    struct log *log;
    idt_t *h;
    size_t told; /* number of lines that log.dmesg returned */
    bool ended;
};

static int log_send (void *impl, const idt_msg_t *msg)
{
    struct fuzz_log *fl = impl;
    const char *s = idt_msg_string (msg);

    if (idt_msg_errnum (msg) != 0)
        fl->ended = true;
    else if (s) {
        size_t len = strlen (s);

        must (!fl->ended && len <= LOG_LINE_MAX && utf8_span (s, len) == len);
        for (size_t i = 0; i < len; i++)
            must ((unsigned char)s[i] >= ' ' || s[i] == '\t');
        fl->told++;
    }
    return 0;
}

static void log_no_impl (void *impl)
{
}

static const struct idt_transport transport = { .send = log_send, .destroy = log_no_impl };

static void request (struct fuzz_log *fl, const char *topic, const void *data, size_t size, int flag)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

    must (msg && idt_msg_set_topic (msg, topic) == 0 && idt_msg_set_payload (msg, data, size) == 0);
    idt_msg_set_flag (msg, flag);
    idt_msg_set_matchtag (msg, 1);
    idt_msg_set_cred (msg, (struct idt_cred){ 0, IDT_ROLE_OWNER });
    idt_msg_route_clear (msg);
    must (idt_msg_route_push (msg, "00000000-0000-4000-8000-000000000000") == 0);
    idt_handle_dispatch (fl->h, msg);
    idt_msg_unref (msg);
}

static bool swallow (const char *line, void *arg)
{
    return true;
}

static void take (struct fuzz_log *fl, const char *line, size_t len)
{
    static const char *const names[] = { "log-level", "log-forward-level", "log-stderr-level" };

    if (*line == '!')
        log_printf (fl->log, len % 8, "fuzz", "%s", line + 1);
    else if (*line == '?')
        (void)attr_set (fl->attrs, names[len % 3], line + 1, NULL);
    else
        request (fl, "log.append", line, len, IDT_MSGFLAG_NORESPONSE);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    struct input in = { data, size };
    struct fuzz_log fl = { .attrs = attrs_create () };
    size_t len;
    char *line;

    must (fl.attrs && attr_give (fl.attrs, "log-stderr-level", "0", NULL) == 0
          && attr_give (fl.attrs, "log-forward-level", "7", NULL) == 0
          && attr_give (fl.attrs, "log-ring-size", "8", NULL) == 0);
    must ((fl.log = log_create (fl.attrs, 0, NULL)) && (fl.h = idt_handle_create (&transport, &fl)));
    log_set_forward (fl.log, swallow, NULL);
    must (log_serve (fl.log, fl.h) == 0);
    while ((line = input_line (&in, &len))) {
        take (&fl, line, len);
        free (line);
    }
    request (&fl, "log.dmesg", "{}", 3, IDT_MSGFLAG_STREAMING);
    must (fl.ended && fl.told <= 8);
    log_destroy (fl.log);
    idt_close (fl.h);
    attrs_destroy (fl.attrs);
    return 0;
}
