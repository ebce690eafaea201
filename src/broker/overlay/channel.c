/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* channel.c - one link to another broker: queues, credit, parts of long messages
 *
 * Messages are queued by class.  channel_pump () sends in the order of the classes as much as the credit allows.  'out'
 * has one message of each class that was taken from its queue and is not yet sent completely.  'in' has the messages
 * that are being received.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libmsg/access.h"
#include "libmsg/message.h"
#include "libutil/errprintf.h"
#include "broker/overlay/channel_private.h"
#include "broker/overlay/control.h"

#define QUANTUM 4096 /* bytes of requests of one requester per turn */
#define MOST_PARTS 4 /* of one class that are sent together: a megabyte */

enum link_class channel_class_of (const idt_msg_t *msg)
{
    switch (idt_msg_type (msg)) {
    case IDT_MSGTYPE_REQUEST:
        return CLASS_ASK;
    case IDT_MSGTYPE_RESPONSE:
        return CLASS_ANSWER;
    case IDT_MSGTYPE_EVENT:
        return CLASS_EVENT;
    default:
        return CLASS_CONTROL;
    }
}

static size_t cost_of (const idt_msg_t *msg)
{
    return idt_msg_encode_size (msg) + CHANNEL_OVERHEAD;
}

void channel_piece_clear (struct piece *p)
{
    idt_msg_unref (p->msg);
    memset (p, 0, sizeof (*p));
}

static bool piece_is_empty (const struct piece *p)
{
    return !p->msg;
}

void channel_break (struct channel *ch, const char *why)
{
    if (!ch->broken)
        ch->broken = why;
}

/* --- on the wire -------------------------------------------------------------------------------------- */

/* Returns whether the wire took the message. */
static bool wire_send (struct channel *ch, enum link_class c, const idt_msg_t *msg)
{
    if (ch->ops->send (ch->arg, msg) < 0) {
        if (errno == EAGAIN)
            ch->blocked = true;
        else
            channel_break (ch, "its connection is gone");
        return false;
    }
    window_sent (&ch->window, c, idt_msg_encode_size (msg));
    return true;
}

static bool send_part (struct channel *ch, enum link_class c, struct piece *p)
{
    size_t left = p->size - p->done, size = left < CHANNEL_PART ? left : CHANNEL_PART;
    uint32_t status = c | (p->done == 0 ? CONTROL_PART_FIRST : 0) | (size == left ? CONTROL_PART_LAST : 0);
    idt_msg_t *part = control_encode (CONTROL_PART, status, NULL);
    uint8_t *bytes = part ? idt_msg_alloc_payload (part, size) : NULL;
    bool sent = false;

    if (bytes) {
        msg_put_slice (bytes, p->msg, p->done, size);
        sent = wire_send (ch, c, part);
    }
    else
        ch->blocked = true; /* no memory now */
    idt_msg_unref (part);
    p->done += sent ? size : 0;
    return sent;
}

static bool goes_in_parts (const struct channel *ch, enum link_class c, const struct piece *p)
{
    return ch->window.credits && c != CLASS_CONTROL && p->size > CHANNEL_PART;
}

/* Messages of a class behind the one that is being sent. */
static size_t count_waiting (const struct channel *ch, enum link_class c)
{
    return ch->turns[c] ? drr_queue_count (ch->turns[c]) : ch->fifo[c].count;
}

static size_t count_all (const struct channel *ch, enum link_class c)
{
    return count_waiting (ch, c) + !piece_is_empty (&ch->out[c]);
}

/* Take the next message of a class out of its queue.  Returns whether there was one. */
static bool take_next (struct channel *ch, enum link_class c)
{
    struct piece *p = &ch->out[c];

    if (c == CLASS_EVENT && ch->ops->event) {
        if ((p->msg = (idt_msg_t *)ch->ops->event (ch->arg)))
            idt_msg_ref (p->msg);
    }
    else
        p->msg = ch->turns[c] ? drr_queue_next (ch->turns[c]) : (idt_msg_t *)fifo_pop (&ch->fifo[c]);
    p->size = p->msg ? idt_msg_encode_size (p->msg) : 0;
    p->cost = p->msg ? cost_of (p->msg) : 0;
    return p->msg != NULL;
}

static void sent_whole (struct channel *ch, enum link_class c)
{
    struct piece *p = &ch->out[c];

    if (c == CLASS_EVENT && ch->ops->event)
        ch->ops->event_sent (ch->arg);
    else
        ch->bytes[c] -= p->cost;
    if (c == CLASS_ANSWER && count_waiting (ch, c) == 0)
        ch->errors = 0;
    channel_piece_clear (p);
}

/* Send a message, or a part of it.  Returns whether something was sent. */
static bool flush_one (struct channel *ch, enum link_class c)
{
    struct piece *p = &ch->out[c];

    if (ch->blocked || ch->broken || !window_may_send (&ch->window, c) || (piece_is_empty (p) && !take_next (ch, c)))
        return false;
    if (!goes_in_parts (ch, c, p))
        p->done = wire_send (ch, c, p->msg) ? p->size : 0;
    else if (!send_part (ch, c, p))
        return false;
    if (p->done == 0)
        return false;
    if (p->done == p->size)
        sent_whole (ch, c);
    return true;
}

/* Send at most MOST_PARTS parts at a time.  That is more than a quarter of any window, so the other side grants more
 * credit, and sending continues then.
 */
static void flush_class (struct channel *ch, enum link_class c)
{
    for (int parts = 0; parts < MOST_PARTS && flush_one (ch, c);)
        parts += ch->out[c].done > 0;
}

static bool is_empty (const struct channel *ch)
{
    for (enum link_class c = CLASS_CONTROL; c < CLASS_COUNT; c++)
        if (count_all (ch, c) > 0)
            return false;
    return true;
}

void channel_pump (struct channel *ch)
{
    if (!ch->open)
        return;
    for (enum link_class c = CLASS_CONTROL; c < CLASS_COUNT; c++)
        flush_class (ch, c);
    if (ch->last && is_empty (ch) && wire_send (ch, CLASS_CONTROL, ch->last)) {
        idt_msg_unref (ch->last);
        ch->last = NULL;
    }
}

void channel_retry (struct channel *ch)
{
    ch->blocked = false;
    channel_pump (ch);
}

/* --- queues --------------------------------------------------------------------------------------------- */

/* The FNV-1a hash of the requester's UUID, the oldest route. */
static uint64_t requester_of (const idt_msg_t *msg)
{
    const char *s = idt_msg_route_oldest (msg);
    uint64_t hash = UINT64_C (14695981039346656037);

    for (; s && *s; s++)
        hash = (hash ^ (unsigned char)*s) * UINT64_C (1099511628211);
    return hash;
}

static int queue (struct channel *ch, enum link_class c, const idt_msg_t *msg)
{
    uint64_t user = access_share (idt_msg_cred (msg));

    if (ch->turns[c] ? drr_queue_put_of (ch->turns[c], user, requester_of (msg), (void *)msg, cost_of (msg)) < 0
                     : fifo_push (&ch->fifo[c], msg) < 0)
        return -1;
    idt_msg_ref (msg);
    ch->bytes[c] += cost_of (msg);
    return 0;
}

static int queue_control (struct channel *ch, const idt_msg_t *msg)
{
    if (ch->fifo[CLASS_CONTROL].count >= CHANNEL_MAX_CONTROL) {
        channel_break (ch, "it does not read the control messages that it causes");
        return errset (EHOSTUNREACH);
    }
    return queue (ch, CLASS_CONTROL, msg);
}

/* Queue a response or break the link.  A requester would wait forever for a dropped response, or miss it in a stream.
 */
static int queue_surely (struct channel *ch, const idt_msg_t *answer)
{
    if (queue (ch, CLASS_ANSWER, answer) == 0)
        return 0;
    channel_break (ch, "out of memory");
    return errset (EHOSTUNREACH);
}

/* Queue an error in place of a response that does not fit.  A peer that does not read even the errors and sends further
 * requests violates the protocol.
 */
static int queue_error (struct channel *ch, const idt_msg_t *answer, int errnum, const char *text)
{
    idt_msg_t *msg = idt_msg_copy (answer, false);
    int rc = -1;

    ch->stats.failed++;
    ch->errors++;
    if (msg && idt_msg_set_string (msg, text) == 0) {
        idt_msg_set_errnum (msg, errnum);
        rc = queue_surely (ch, msg);
    }
    else
        channel_break (ch, "out of memory");
    idt_msg_unref (msg);
    return rc;
}

static int queue_answer (struct channel *ch, const idt_msg_t *msg)
{
    size_t size = idt_msg_encode_size (msg);
    char text[128];

    if (size > CHANNEL_MAX_MESSAGE) {
        snprintf (text, sizeof (text), "an answer of %zu bytes is longer than a link takes (%zu)", size,
                  CHANNEL_MAX_MESSAGE);
        return queue_error (ch, msg, EMSGSIZE, text);
    }
    if (ch->bytes[CLASS_ANSWER] == 0 || ch->bytes[CLASS_ANSWER] + size <= ch->max_queue)
        return queue_surely (ch, msg);
    if (ch->errors >= CHANNEL_MAX_ERRORS) {
        channel_break (ch, "it sends requests and does not read the answers (tbon.max-queue)");
        return errset (EHOSTUNREACH);
    }
    snprintf (text, sizeof (text), "a broker on the way does not take its answers: %zu bytes wait (tbon.max-queue)",
              ch->bytes[CLASS_ANSWER]);
    return queue_error (ch, msg, ENOBUFS, text);
}

static int queue_event (struct channel *ch, const idt_msg_t *msg)
{
    if (ch->bytes[CLASS_EVENT] == 0 || ch->bytes[CLASS_EVENT] + cost_of (msg) <= ch->max_queue)
        return queue (ch, CLASS_EVENT, msg);
    ch->stats.dropped++;
    return errset (ENOBUFS);
}

static int queue_ask (struct channel *ch, const idt_msg_t *msg)
{
    int rc = queue (ch, CLASS_ASK, msg);

    ch->stats.refused += rc < 0;
    return rc;
}

static int put (struct channel *ch, enum link_class c, const idt_msg_t *msg)
{
    if (c != CLASS_ANSWER && idt_msg_encode_size (msg) > CHANNEL_MAX_MESSAGE)
        return errset (EMSGSIZE);
    switch (c) {
    case CLASS_CONTROL:
        return queue_control (ch, msg);
    case CLASS_ANSWER:
        return queue_answer (ch, msg);
    case CLASS_EVENT:
        return queue_event (ch, msg);
    default:
        return queue_ask (ch, msg);
    }
}

/* Whether the message can be sent now: it fits in one frame, and no message of its class waits. */
static bool may_pass (const struct channel *ch, enum link_class c, const idt_msg_t *msg)
{
    return !ch->blocked && piece_is_empty (&ch->out[c]) && count_waiting (ch, c) == 0
           && window_may_send (&ch->window, c) && idt_msg_encode_size (msg) <= CHANNEL_PART;
}

int channel_send (struct channel *ch, const idt_msg_t *msg)
{
    enum link_class c = channel_class_of (msg);

    if (!ch->open || ch->broken)
        return errset (EHOSTUNREACH);
    if (may_pass (ch, c, msg) && wire_send (ch, c, msg))
        return 0;
    if (ch->broken)
        return errset (EHOSTUNREACH);
    if (put (ch, c, msg) < 0)
        return -1;
    channel_pump (ch);
    return 0;
}

void channel_send_last (struct channel *ch, idt_msg_t *msg)
{
    idt_msg_unref (ch->last);
    ch->last = msg;
    channel_pump (ch);
}

/* --- life ------------------------------------------------------------------------------------------------- */

int channel_init (struct channel *ch, const struct channel_ops *ops, void *arg, size_t max_queue, uint64_t window_bytes,
                  uint32_t window_messages)
{
    memset (ch, 0, sizeof (*ch));
    ch->ops = ops;
    ch->arg = arg;
    ch->max_queue = max_queue;
    ch->window_bytes = window_bytes;
    ch->window_messages = window_messages;
    ch->turns[CLASS_ASK] = drr_queue_create (QUANTUM, CHANNEL_MAX_ASKS, CHANNEL_MAX_ASK_BYTES);
    ch->turns[CLASS_ANSWER] = drr_queue_create (QUANTUM, 0, 0); /* queue_answer () limits them */
    if (ch->turns[CLASS_ASK] && ch->turns[CLASS_ANSWER])
        return 0;
    channel_fini (ch);
    return errset (ENOMEM);
}

void channel_fini (struct channel *ch)
{
    channel_close (ch);
    for (enum link_class c = CLASS_CONTROL; c < CLASS_COUNT; c++) {
        drr_queue_destroy (ch->turns[c]);
        ch->turns[c] = NULL;
    }
}

void channel_open (struct channel *ch, int version)
{
    channel_close (ch);
    ch->open = true;
    ch->version = version;
    window_open (&ch->window, version >= CHANNEL_CREDITS, ch->window_bytes, ch->window_messages);
    channel_grant (ch);
}

bool channel_takes_whole (const struct channel *ch)
{
    return ch->version >= CHANNEL_WHOLE;
}

static void free_message (void *item, void *arg)
{
    idt_msg_unref (item);
}

static void drop (struct fifo *q)
{
    const idt_msg_t *msg;

    while ((msg = fifo_pop (q)))
        idt_msg_unref (msg);
    fifo_fini (q);
}

static void drop_queue (struct channel *ch, enum link_class c)
{
    drop (&ch->fifo[c]);
    if (ch->turns[c])
        drr_queue_drain (ch->turns[c], free_message, NULL);
    channel_piece_clear (&ch->out[c]);
    ch->bytes[c] = 0;
    ch->errors = 0;
}

void channel_close (struct channel *ch)
{
    int saved_errno = errno;

    for (enum link_class c = CLASS_CONTROL; c < CLASS_COUNT; c++) {
        drop_queue (ch, c);
        channel_piece_clear (&ch->in[c]);
    }
    drop (&ch->held);
    idt_msg_unref (ch->last);
    ch->last = NULL;
    ch->open = ch->blocked = ch->holding = false;
    ch->broken = NULL;
    errno = saved_errno;
}

void channel_forget_events (struct channel *ch)
{
    drop_queue (ch, CLASS_EVENT);
}

bool channel_is_slow (const struct channel *ch, const idt_msg_t *ask)
{
    return ch->bytes[CLASS_ANSWER] > ch->max_queue / 4
           && drr_queue_flow_count (ch->turns[CLASS_ANSWER], requester_of (ask)) > 0;
}

struct channel_stats channel_stats (const struct channel *ch)
{
    struct channel_stats s = ch->stats;

    s.answers = count_all (ch, CLASS_ANSWER);
    s.events = count_all (ch, CLASS_EVENT);
    s.asks = count_all (ch, CLASS_ASK);
    s.bytes = ch->bytes[CLASS_ANSWER] + ch->bytes[CLASS_EVENT] + ch->bytes[CLASS_ASK];
    return s;
}
