/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module_rig.c - a module in a broker whose messages are the fuzzer's input */
#include <errno.h>
#include <stdio.h>

#include <idtree/idtree.h>

#include "fuzz.h"
#include "libidtree/transport.h"
#include "libutil/queue/fifo.h"
#include "module_rig.h"

#define REQUESTS_MAX 200

struct rig {
    const struct module_rig *conf;
    idt_t *h;
    void *ctx;
    const idt_msg_t *open[REQUESTS_MAX]; /* requests of the module that were not answered yet, oldest first */
    size_t nopen;
    uint8_t answers[REQUESTS_MAX + 1]; /* number of answers; the index is the matchtag of the request */
    enum { NONE, MAY, MUST } wanted[REQUESTS_MAX + 1];
    uint32_t asked;
    bool refuse;
};

/* --- the broker's side ------------------------------------------------------------------------ */

static void answered (struct rig *rig, const idt_msg_t *msg)
{
    uint32_t tag = idt_msg_matchtag (msg);

    must (tag >= 1 && tag <= rig->asked && rig->wanted[tag] != NONE);
    must (rig->answers[tag]++ == 0);
}

static int rig_send (void *impl, const idt_msg_t *msg)
{
    struct rig *rig = impl;

    if (idt_msg_type (msg) == IDT_MSGTYPE_RESPONSE) {
        answered (rig, msg);
        return 0;
    }
    if (rig->refuse) {
        rig->refuse = false;
        errno = ENOMEM;
        return -1;
    }
    if (idt_msg_type (msg) == IDT_MSGTYPE_REQUEST && !idt_msg_has_flag (msg, IDT_MSGFLAG_NORESPONSE)) {
        must (rig->nopen < REQUESTS_MAX); /* the module limits the number of its pending requests */
        rig->open[rig->nopen++] = idt_msg_ref (msg);
    }
    return 0;
}

static const char *rig_attr_get (void *impl, const char *name)
{
    struct rig *rig = impl;

    for (const char *const *a = rig->conf->attrs; *a; a += 2)
        if (strcmp (a[0], name) == 0)
            return a[1];
    errno = ENOENT;
    return NULL;
}

static const char *rig_attr_define (void *impl, const char *name, const char *value)
{
    const char *given = rig_attr_get (impl, name);

    return given ? given : value;
}

static int rig_attach (void *impl, const struct idt_overlay_ops *ops, void *arg)
{
    return 0;
}

static bool rig_covers (void *impl, const idt_msg_t *request, uint32_t rank)
{
    return rank < 16;
}

static void rig_log (void *impl, int level, const char *name, const char *text)
{
    must (text && *text);
}

static void rig_destroy (void *impl)
{
}

static const struct idt_transport transport = {
    .send = rig_send,
    .attr_get = rig_attr_get,
    .attr_define = rig_attr_define,
    .overlay_attach = rig_attach,
    .overlay_covers = rig_covers,
    .log = rig_log,
    .destroy = rig_destroy,
};

/* --- what comes ---------------------------------------------------------------------------------- */

/* Set topic and payload from "TOPIC PAYLOAD". Returns false if the text has no topic. */
static bool fill (idt_msg_t *msg, char *text)
{
    char *space = strchr (text, ' ');

    if (space)
        *space = '\0';
    return *text && idt_msg_set_topic (msg, text) == 0 && idt_msg_set_string (msg, space ? space + 1 : NULL) == 0;
}

static bool ends_with (const char *s, const char *end)
{
    size_t n = strlen (s), m = strlen (end);

    return n >= m && strcmp (s + n - m, end) == 0;
}

/* Disconnect the clients, so that they no longer wait for answers. */
static void let_go (struct rig *rig)
{
    for (uint32_t tag = 1; tag <= rig->asked; tag++)
        if (rig->wanted[tag] == MUST && rig->answers[tag] == 0)
            rig->wanted[tag] = MAY;
}

static void ask (struct rig *rig, char *text, uint32_t roles)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

    must (msg != NULL);
    if (rig->asked < REQUESTS_MAX && fill (msg, text)) {
        bool is_end = ends_with (idt_msg_topic (msg), ".disconnect");

        rig->wanted[++rig->asked] = is_end ? NONE : MUST;
        if (is_end) {
            let_go (rig);
            idt_msg_set_flag (msg, IDT_MSGFLAG_NORESPONSE);
        }
        idt_msg_set_matchtag (msg, rig->asked);
        idt_msg_set_cred (msg, (struct idt_cred){ 0, roles });
        idt_msg_route_clear (msg);
        must (idt_msg_route_push (msg, "cccccccc-0000-4000-8000-000000000000") == 0);
        idt_handle_dispatch (rig->h, msg);
    }
    idt_msg_unref (msg);
}

static void event (struct rig *rig, char *text)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_EVENT);

    must (msg != NULL);
    if (fill (msg, text)) {
        idt_msg_set_cred (msg, (struct idt_cred){ 0, IDT_ROLE_OWNER });
        idt_handle_dispatch (rig->h, msg);
    }
    idt_msg_unref (msg);
}

static void answer (struct rig *rig, size_t i, int errnum, const char *payload)
{
    const idt_msg_t *request;
    idt_msg_t *msg;

    if (rig->nopen == 0)
        return;
    request = rig->open[i];
    rig->nopen--;
    memmove (rig->open + i, rig->open + i + 1, (rig->nopen - i) * sizeof (rig->open[0]));
    must ((msg = idt_msg_respond (request, (uint32_t)errnum)) && idt_msg_set_string (msg, payload) == 0);
    idt_handle_dispatch (rig->h, msg);
    idt_msg_unref (msg);
    idt_msg_unref (request);
}

static void take (struct rig *rig, char *line)
{
    const char *rest = line[1] ? line + 1 : NULL;

    switch (*line) {
    case '>':
        ask (rig, line + 1, IDT_ROLE_OWNER | IDT_ROLE_LOCAL);
        break;
    case '^':
        ask (rig, line + 1, IDT_ROLE_OWNER | IDT_ROLE_BROKER);
        break;
    case '!':
        event (rig, line + 1);
        break;
    case '=':
        answer (rig, 0, 0, rest);
        break;
    case '+':
        answer (rig, rig->nopen > 0 ? rig->nopen - 1 : 0, 0, rest);
        break;
    case '-':
        answer (rig, 0, 1 + (rest ? atoi (rest) & 127 : 0), rest);
        break;
    case '~':
        rig->refuse = true;
        break;
    default:
        break;
    }
    must (idt_reactor_run (idt_get_reactor (rig->h), IDT_REACTOR_NOWAIT) == 0);
}

void module_rig_run (const struct module_rig *conf, const uint8_t *data, size_t size)
{
    struct rig rig = { .conf = conf };
    struct input in = { data, size };
    idt_error_t err = { "" };
    char *line;
    size_t len;

    must ((rig.h = idt_handle_create (&transport, &rig)) && idt_get_reactor (rig.h)
          && idt_handle_set_module (rig.h, conf->name) == 0);
    must (idt_module.init (rig.h, 0, NULL, &rig.ctx, &err) == 0);
    while ((line = input_line (&in, &len))) {
        if (len > 0)
            take (&rig, line);
        free (line);
    }
    idt_module.fini (rig.h, rig.ctx);
    idt_close (rig.h);
    for (uint32_t tag = 1; tag <= rig.asked; tag++)
        must (rig.answers[tag] == 1 || rig.wanted[tag] != MUST);
    while (rig.nopen > 0)
        idt_msg_unref (rig.open[--rig.nopen]);
}
