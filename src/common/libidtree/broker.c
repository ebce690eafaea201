/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* broker.c - functions that the owner of a handle uses on its broker: attributes, the log, and for a module its life
 *
 * Each response with a value is kept, since the caller borrows the value. An attribute that the broker marks immutable
 * is requested only once.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "libidtree/handle.h"
#include "libutil/clock.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"

#define ATTR_IMMUTABLE 1 /* "flags" of attr.get */
#define LOG_MAX_TEXT (IDT_LOG_TEXT_MAX + 1)
#define LOG_MAX_HEADER 256

/* --- attributes ------------------------------------------------------------------------------ */

/* The value of an attribute that is known without a round trip (borrowed); NULL: not known. */
static const char *attr_peek (idt_t *h, const char *name)
{
    const char *value;
    int flags = 0;

    if (h->transport->attr_get)
        return h->transport->attr_get (h->impl, name);
    if (json_unpack (json_object_get (h->attrs, name), "{s:s s?i}", "value", &value, "flags", &flags) < 0)
        return NULL;
    return flags & ATTR_IMMUTABLE ? value : NULL;
}

void broker_forget (idt_t *h)
{
    const char *name;
    json_t *answer;

    json_object_foreach (h->attrs, name, answer)
        json_object_del (answer, "flags");
    h->has_rank = false;
}

/* Returns the value in the response to attr.get or attr.define, and keeps the response. Destroys 'f'. */
static const char *keep_answer (idt_t *h, const char *name, idt_future_t *f)
{
    const char *value = NULL;
    json_t *answer;

    if (f && idt_rpc_get_unpack (f, "o", &answer) == 0) {
        if (!(value = json_string_value (json_object_get (answer, "value"))))
            errno = EPROTO;
        else if (json_object_set (h->attrs, name, answer) < 0)
            value = errset_null (ENOMEM);
    }
    idt_future_destroy (f);
    return value;
}

const char *idt_attr_get (idt_t *h, const char *name)
{
    const char *value = attr_peek (h, name);

    if (value || h->transport->attr_get)
        return value;
    return keep_answer (h, name, idt_rpc_pack (h, "attr.get", IDT_NODEID_ANY, RPC_TYPED, "{s:s}", "name", name));
}

const char *idt_attr_define (idt_t *h, const char *name, const char *value)
{
    if (h->transport->attr_define)
        return h->transport->attr_define (h->impl, name, value);
    return keep_answer (h, name,
                        idt_rpc_pack (h, "attr.define", IDT_NODEID_ANY, 0, "{s:s s:s}", "name", name, "value", value));
}

int idt_attr_set (idt_t *h, const char *name, const char *value, idt_error_t *errp)
{
    idt_future_t *f = idt_rpc_pack (h, "attr.set", IDT_NODEID_ANY, RPC_TYPED, "{s:s s:s}", "name", name, "value",
                                    value);
    int rc = f ? idt_rpc_get (f, NULL) : -1;

    if (rc < 0)
        errprintf (errp, "%s: %s", name, f && idt_future_is_ready (f) ? idt_future_error (f) : strerror (errno));
    idt_future_destroy (f);
    return rc;
}

static int get_number (idt_t *h, const char *name, uint32_t *number)
{
    const char *value = idt_attr_get (h, name);
    uint64_t n;

    if (!value)
        return -1;
    if (parse_number (value, 0, UINT32_MAX, &n) < 0)
        return errset (EPROTO);
    *number = (uint32_t)n;
    return 0;
}

/* The rank is kept, since each request to the parent contains it. */
int idt_get_rank (idt_t *h, uint32_t *rank)
{
    if (!h->has_rank && get_number (h, "rank", &h->rank) < 0)
        return -1;
    h->has_rank = true;
    *rank = h->rank;
    return 0;
}

int idt_get_size (idt_t *h, uint32_t *size)
{
    return get_number (h, "size", size);
}

/* --- the log --------------------------------------------------------------------------------- */

/* A line is sent as RFC 5424 text: <PRI>1 TIMESTAMP RANK NAME PID - - TEXT. Logging never waits. So RANK is "-" until
 * this handle knows the rank, and a line that cannot be sent immediately is lost. PRI is the severity times 8, because
 * deployed Flux clients write and read it in this form.
 */
void idt_log_set_name (idt_t *h, const char *name)
{
    snprintf (h->log_name, sizeof (h->log_name), "%s", name);
    for (char *p = h->log_name; *p; p++) {
        if (*p <= ' ' || *p > '~')
            *p = '_'; /* RFC 5424 6: printable ASCII without blanks */
    }
}

static const char *log_name (const idt_t *h)
{
    if (h->log_name[0])
        return h->log_name;
    return h->module ? h->module : program_invocation_short_name;
}

/* Send a line as idt_rpc () with IDT_RPC_NORESPONSE would, without making a future. */
static void send_line (idt_t *h, const char *line, size_t size)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

    if (msg && idt_msg_set_topic (msg, "log.append") == 0 && idt_msg_set_payload (msg, line, size) == 0) {
        idt_msg_set_flag (msg, IDT_MSGFLAG_NORESPONSE);
        (void)idt_send (h, msg);
    }
    idt_msg_unref (msg);
}

static void log_send (idt_t *h, int level, const char *text)
{
    char line[LOG_MAX_HEADER + LOG_MAX_TEXT];
    char stamp[CLOCK_STAMP_SIZE];
    const char *rank = attr_peek (h, "rank");

    int size = snprintf (line, sizeof (line), "<%d>1 %s %s %s %d - - %s", LOG_PRI (level) << 3, clock_stamp (stamp),
                         rank ? rank : "-", log_name (h), (int)getpid (), text);
    if (size >= (int)sizeof (line))
        size = sizeof (line) - 1;
    send_line (h, line, (size_t)size);
}

static void append_line (idt_t *h, int level, const char *text)
{
    if (h->transport->log)
        h->transport->log (h->impl, level, log_name (h), text);
    else
        log_send (h, level, text);
}

/* Write each line of a text as a line of the log. Empty lines are left out. A text that has only empty lines is written
 * as one empty line.
 */
static void append_lines (idt_t *h, int level, char *text)
{
    char *save = NULL, *line = strtok_r (text, "\n", &save);

    if (!line)
        append_line (h, level, "");
    for (; line; line = strtok_r (NULL, "\n", &save))
        append_line (h, level, line);
}

void idt_log (idt_t *h, int level, const char *fmt, ...)
{
    int saved_errno = errno;
    char text[LOG_MAX_TEXT];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (text, sizeof (text), fmt, ap);
    va_end (ap);
    append_lines (h, level, text);
    errno = saved_errno;
}

/* --- a module's life ------------------------------------------------------------------------- */

static int tell (idt_t *h, int errnum, const char *text)
{
    int rc = h->transport->started ? h->transport->started (h->impl, errnum, text) : 0;

    if (errnum != 0)
        errno = errnum;
    return rc;
}

int idt_module_run (const struct idt_module *m, idt_t *h, int argc, char **argv)
{
    idt_error_t error = { .text = "" };
    void *ctx = NULL;
    int rc = 0;

    if (m->init (h, argc, argv, &ctx, &error) < 0) {
        tell (h, errno ? errno : EIO, error.text);
        return -1;
    }
    idt_reactor_t *r = idt_get_reactor (h);
    /* EPIPE means that no further message will arrive: the broker has asked the module to end. The module may still
     * send.
     */
    if (!r || tell (h, 0, "") < 0 || (idt_reactor_run (r, IDT_REACTOR_DEFAULT) < 0 && errno != EPIPE))
        rc = -1;
    int errnum = errno;
    m->fini (h, ctx);
    errno = errnum;
    return rc;
}

/* --- what a module keeps, and the overlay ---------------------------------------------------- */

int idt_module_keep (idt_t *h, const void *data, size_t size)
{
    if (size == 0 || size > IDT_MODULE_KEEP_MAX)
        return errset (size == 0 ? EINVAL : EMSGSIZE);
    if (h->transport->keep)
        return h->transport->keep (h->impl, data, size);
    return errset (ENOTSUP);
}

const void *idt_module_kept (idt_t *h, size_t *size)
{
    return h->transport->kept ? h->transport->kept (h->impl, size) : NULL;
}

int idt_overlay_attach (idt_t *h, const struct idt_overlay_ops *ops, void *arg)
{
    if (h->transport->overlay_attach)
        return h->transport->overlay_attach (h->impl, ops, arg);
    return errset (ENOTSUP);
}

bool idt_overlay_covers (idt_t *h, const idt_msg_t *request, uint32_t rank)
{
    return h->transport->overlay_covers && h->transport->overlay_covers (h->impl, request, rank);
}
