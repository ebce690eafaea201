/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* inside.c - lines between brokers of one process
 *
 * A line is freed when both ends have released it.  The lower end releases it with inside_line_close ().  The port
 * releases it when it has read that the line has ended, or when the port is destroyed.  If the lower end closes a line
 * that the port does not know yet, the port releases it immediately: otherwise a port that reads nothing would collect
 * closed lines of brokers that try again.  The list 'ready' of a port has the lines with input for this port.
 */
#include "config.h"

#include <assert.h>
#include <czmq.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "broker/overlay/wire/inside.h"
#include "libmsg/message.h"
#include "libutil/errprintf.h"
#include "libutil/queue/fifo.h"

/* The messages on their way to one end. */
struct road {
    struct fifo fifo;
    size_t bytes;
};

struct inside_line {
    struct inside_port *port; /* NULL: the port has released it */
    struct inside_end below;
    bool closed; /* the lower end has closed the line */
    bool known;  /* the port has read from the line, or has asked for its opener */
    struct road up, down;
    uint32_t rank;
    int number;
    bool ready;
    TAILQ_ENTRY (inside_line) link; /* valid while 'ready' */
    char identity[IDT_MSG_UUID_LEN + 1];
};

TAILQ_HEAD (line_list, inside_line);

struct inside_port {
    struct inside *in;
    struct inside_end end;
    int tag;
    int count; /* number of lines opened so far */
    zhashx_t *lines;
    struct line_list ready;
    char rank[16];
    char name[64];
};

struct inside {
    zhashx_t *ports; /* by rank */
    uint64_t count;  /* number of ports created so far */
};

/* --- roads ----------------------------------------------------------------------------------------- */

static size_t cost_of (const idt_msg_t *msg)
{
    return idt_msg_encode_size (msg) + INSIDE_OVERHEAD;
}

static int road_put (struct road *r, const struct inside_end *from, const idt_msg_t *msg)
{
    size_t cost = cost_of (msg);

    if (r->fifo.count >= from->messages || (r->fifo.count > 0 && r->bytes + cost > from->bytes))
        return errset (EAGAIN);
    if (fifo_push (&r->fifo, msg) < 0)
        return -1;
    idt_msg_ref (msg);
    r->bytes += cost;
    return 0;
}

/* Take a message; the caller then owns it.  NULL with errno EAGAIN: there is no message; ENOMEM: one message is lost.
 */
static idt_msg_t *road_take (struct road *r)
{
    const idt_msg_t *msg = fifo_pop (&r->fifo);

    if (!msg)
        return errset_null (EAGAIN);
    assert (r->bytes >= cost_of (msg));
    r->bytes -= cost_of (msg);
    fifo_shrink (&r->fifo);
    return msg_own (msg);
}

static void road_clear (struct road *r)
{
    const idt_msg_t *msg;

    while ((msg = fifo_pop (&r->fifo)))
        idt_msg_unref (msg);
    fifo_fini (&r->fifo);
    r->bytes = 0;
}

static void touch (const struct inside_end *end)
{
    end->touched (end->arg);
}

/* --- above ----------------------------------------------------------------------------------------- */

static void line_free (struct inside_line *line)
{
    road_clear (&line->up);
    road_clear (&line->down);
    free (line);
}

static void set_ready (struct inside_line *line)
{
    assert (line->port);
    if (!line->ready)
        TAILQ_INSERT_TAIL (&line->port->ready, line, link);
    line->ready = true;
}

static void unset_ready (struct inside_line *line)
{
    if (line->ready)
        TAILQ_REMOVE (&line->port->ready, line, link);
    line->ready = false;
}

/* Release the line for the port. */
static void let_go (struct inside_line *line)
{
    unset_ready (line);
    zhashx_delete (line->port->lines, line->identity);
    line->port = NULL;
    if (line->closed)
        line_free (line);
    else
        touch (&line->below);
}

struct inside_port *inside_port_create (struct inside *in, uint32_t rank, int tag, const struct inside_end *end)
{
    struct inside_port *port = calloc (1, sizeof (*port));

    if (!port)
        return NULL;
    TAILQ_INIT (&port->ready);
    port->end = *end;
    port->tag = tag;
    snprintf (port->rank, sizeof (port->rank), "%u", rank);
    snprintf (port->name, sizeof (port->name), "idtree-%u-%ju", rank, (uintmax_t)in->count++);
    if (!(port->lines = zhashx_new ()) || zhashx_insert (in->ports, port->rank, port) < 0) {
        zhashx_destroy (&port->lines);
        free (port);
        return errset_null (EEXIST);
    }
    zhashx_set_key_duplicator (port->lines, NULL);
    zhashx_set_key_destructor (port->lines, NULL);
    port->in = in;
    return port;
}

void inside_port_destroy (struct inside_port *port)
{
    struct inside_line *line;

    if (!port)
        return;
    while ((line = zhashx_first (port->lines)))
        let_go (line);
    zhashx_delete (port->in->ports, port->rank);
    zhashx_destroy (&port->lines);
    free (port);
}

struct inside_port *inside_find (const struct inside *in, uint32_t rank)
{
    char key[16];

    snprintf (key, sizeof (key), "%u", rank);
    return zhashx_lookup (in->ports, key);
}

int inside_port_tag (const struct inside_port *port)
{
    return port->tag;
}

const char *inside_port_name (const struct inside_port *port)
{
    return port->name;
}

static void describe (const struct inside_line *line, struct inside_item *item)
{
    item->rank = line->rank;
    item->line = line->number;
    memcpy (item->identity, line->identity, sizeof (item->identity));
}

/* Take the next input of a ready line: a message, or the end of the line.  Returns whether there was any. */
static bool take_from (struct inside_line *line, struct inside_item *item)
{
    bool has_message = line->up.fifo.count > 0;

    assert (line->ready && (has_message || line->closed));
    line->known = true;
    describe (line, item);
    unset_ready (line);
    item->msg = has_message ? road_take (&line->up) : NULL;
    if (line->up.fifo.count > 0 || (has_message && line->closed))
        set_ready (line);
    else if (line->closed)
        let_go (line);
    return item->msg || !has_message;
}

bool inside_port_next (struct inside_port *port, struct inside_item *item)
{
    struct inside_line *line;

    while ((line = TAILQ_FIRST (&port->ready)))
        if (take_from (line, item))
            return true;
    return false;
}

int inside_port_send (struct inside_port *port, const char *identity, const idt_msg_t *msg)
{
    struct inside_line *line = zhashx_lookup (port->lines, identity);

    if (!line || line->closed)
        return errset (EHOSTUNREACH);
    if (road_put (&line->down, &port->end, msg) < 0)
        return -1;
    touch (&line->below);
    return 0;
}

bool inside_port_who (const struct inside_port *port, const char *identity, uint32_t *rank, int *number)
{
    struct inside_line *line = zhashx_lookup (port->lines, identity);

    if (line) {
        line->known = true;
        *rank = line->rank;
        *number = line->number;
    }
    return line != NULL;
}

/* --- below ----------------------------------------------------------------------------------------- */

struct inside_line *inside_line_open (struct inside_port *port, uint32_t rank, const char *identity,
                                      const struct inside_end *end)
{
    struct inside_line *line = calloc (1, sizeof (*line));

    if (!line)
        return NULL;
    line->port = port;
    line->below = *end;
    line->rank = rank;
    line->number = port->count++;
    snprintf (line->identity, sizeof (line->identity), "%s", identity);
    if (zhashx_insert (port->lines, line->identity, line) == 0)
        return line;
    free (line);
    return errset_null (EEXIST);
}

static void notify_port (struct inside_line *line)
{
    set_ready (line);
    touch (&line->port->end);
}

void inside_line_close (struct inside_line *line)
{
    if (!line)
        return;
    assert (!line->closed);
    line->closed = true;
    road_clear (&line->down);
    if (!line->port)
        line_free (line);
    else if (line->known)
        notify_port (line);
    else
        let_go (line);
}

idt_msg_t *inside_line_next (struct inside_line *line)
{
    idt_msg_t *msg = road_take (&line->down);

    return msg || errno != EAGAIN || line->port ? msg : errset_null (EPIPE);
}

int inside_line_send (struct inside_line *line, const idt_msg_t *msg)
{
    if (!line->port)
        return errset (EHOSTUNREACH);
    if (road_put (&line->up, &line->below, msg) < 0)
        return -1;
    notify_port (line);
    return 0;
}

/* --- life ------------------------------------------------------------------------------------------ */

struct inside *inside_create (void)
{
    struct inside *in = calloc (1, sizeof (*in));

    if (!in || (in->ports = zhashx_new ()))
        return in;
    free (in);
    return errset_null (ENOMEM);
}

void inside_destroy (struct inside *in)
{
    int saved_errno = errno;

    if (!in)
        return;
    zhashx_destroy (&in->ports);
    free (in);
    errno = saved_errno;
}
