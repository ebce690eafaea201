/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* log.c - lines for the broker's log
 *
 * A line is sent as RFC 5424 text: <PRI>1 TIMESTAMP RANK NAME PID - - TEXT. RANK is "-" until this handle knows the
 * rank, since logging never waits. A line that cannot be sent immediately is lost. PRI is the severity times 8, as
 * deployed Flux clients write and read it.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "libidtree/private.h"
#include "libutil/clock.h"

#define LOG_MAX_TEXT (IDT_LOG_TEXT_MAX + 1)
#define LOG_MAX_HEADER 256

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

/* Each line of a text is a line of the log. Empty lines are left out; a text without any other line gives one empty log
 * line.
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
