/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* channel.c - one link to another broker: queues, credit, parts of long messages
 *
 * Messages are queued by class.  channel_pump () sends them in the order of the classes, as much as the credit allows.
 * 'out' has for each class at most one message that was taken from its queue and is not sent completely yet.  'in' has
 * the messages that are being received.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/base/uuid_key.h"
#include "broker/overlay/channel.h"
#include "broker/overlay/control.h"
#include "libmsg/access.h"
#include "libmsg/message.h"
#include "libutil/minmax.h"
#include "libutil/errprintf.h"

#define QUANTUM 4096 /* bytes that a requester may send in its turn */
#define MOST_PARTS 4 /* parts of one class that are sent together: a megabyte */

#define GRANT_SIZE (WINDOW_RECORD * (CLASS_COUNT - 1))

static enum link_class class_of (const idt_msg_t *msg)
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

static void piece_clear (struct piece *p)
{
    idt_msg_unref (p->msg);
    memset (p, 0, sizeof (*p));
}

void channel_break (struct channel *ch, const char *why)
{
    if (ch->broken)
        return;
    ch->broken = why;
    if (ch->ops->broken)
        ch->ops->broken (ch->arg);
}

/* --- credit ------------------------------------------------------------------------------------------------- */

/* Initialize the window of a new link. */
static void window_open (struct window *w, bool credits, uint64_t bytes, uint32_t messages)
{
    memset (w, 0, sizeof (*w));
    w->credits = credits;
    w->size[CLASS_ANSWER] = (struct total){ messages * 4 / 9, bytes / 2 };
    w->size[CLASS_EVENT] = (struct total){ messages * 4 / 9, bytes / 4 };
    w->size[CLASS_ASK] = (struct total){ messages / 9, bytes / 4 };
}

/* Whether a total is below a limit. */
static bool is_below (const struct total *t, const struct total *limit)
{
    return (int32_t)(limit->messages - t->messages) > 0 && t->bytes < limit->bytes;
}

static void count (struct total *t, size_t bytes)
{
    t->messages++;
    t->bytes += bytes;
}

static bool window_may_send (const struct window *w, enum link_class c)
{
    return !w->credits || c == CLASS_CONTROL || is_below (&w->sent[c], &w->limit[c]);
}

/* Count a received message.  Returns 0, or -1 with errno EPROTO if the other side had no credit for it. */
static int window_received (struct window *w, enum link_class c, size_t bytes)
{
    if (w->credits && c != CLASS_CONTROL && !is_below (&w->received[c], &w->granted[c]))
        return errset (EPROTO);
    count (&w->received[c], bytes);
    return 0;
}

/* Take the grant for one class.  A class that only a newer version knows is ignored.  Returns 0, or -1 with errno
 * EPROTO if the other side lowers a grant.
 */
static int take_record (struct window *w, const uint8_t *p)
{
    struct total t = { (uint32_t)get_be (p + 4, 4), get_be (p + 8, 8) };
    struct total *limit = p[0] < CLASS_COUNT ? &w->limit[p[0]] : NULL;

    if (!limit)
        return 0;
    if ((int32_t)(t.messages - limit->messages) < 0 || t.bytes < limit->bytes)
        return errset (EPROTO);
    *limit = t;
    return 0;
}

/* Take a grant of the other side.  Returns 0, or -1 with errno EPROTO if it is malformed or lowers an earlier grant. */
static int window_granted (struct window *w, const void *payload, size_t size)
{
    const uint8_t *p = payload;

    if (size % WINDOW_RECORD != 0)
        return errset (EPROTO);
    for (; size > 0; p += WINDOW_RECORD, size -= WINDOW_RECORD)
        if (take_record (w, p) < 0)
            return -1;
    return 0;
}

/* Whether a grant is due, because a quarter of the window of a class is used up. */
static bool is_due (const struct window *w, enum link_class c)
{
    const struct total *size = &w->size[c], *received = &w->received[c], *granted = &w->granted[c];

    return (int32_t)(received->messages + size->messages - granted->messages) >= (int32_t)(size->messages / 4 + 1)
           || received->bytes + size->bytes - granted->bytes >= size->bytes / 4 + 1;
}

/* Write grants for the classes for which one is due.  Returns the size of the payload; 0: no grant is due. */
static size_t window_grant (struct window *w, uint8_t payload[GRANT_SIZE])
{
    uint8_t *p = payload;

    for (enum link_class c = CLASS_CONTROL + 1; w->credits && c < CLASS_COUNT; c++) {
        if (!is_due (w, c))
            continue;
        w->granted[c].messages = w->received[c].messages + w->size[c].messages;
        w->granted[c].bytes = w->received[c].bytes + w->size[c].bytes;
        memset (p, 0, WINDOW_RECORD);
        p[0] = c;
        put_be (p + 4, 4, w->granted[c].messages);
        put_be (p + 8, 8, w->granted[c].bytes);
        p += WINDOW_RECORD;
    }
    assert (p <= payload + GRANT_SIZE);
    return p - payload;
}

/* --- on the wire -------------------------------------------------------------------------------------- */

/* Put a message on the wire.  Returns whether the wire took it. */
static bool wire_send (struct channel *ch, enum link_class c, const idt_msg_t *msg)
{
    assert (window_may_send (&ch->window, c));
    if (ch->ops->send (ch->arg, msg) < 0) {
        if (errno == EAGAIN)
            ch->blocked = true;
        else
            channel_break (ch, "its connection is gone");
        return false;
    }
    count (&ch->window.sent[c], idt_msg_encode_size (msg));
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
        ch->blocked = true; /* no memory now: try again later */
    idt_msg_unref (part);
    p->done += sent ? size : 0;
    return sent;
}

static bool goes_in_parts (const struct channel *ch, enum link_class c, const struct piece *p)
{
    return ch->window.credits && c != CLASS_CONTROL && p->size > CHANNEL_PART;
}

/* The number of messages of a class that are queued behind the one that is being sent. */
static size_t count_waiting (const struct channel *ch, enum link_class c)
{
    return ch->turns[c] ? drr_queue_count (ch->turns[c]) : ch->fifo[c].count;
}

static size_t count_all (const struct channel *ch, enum link_class c)
{
    return count_waiting (ch, c) + (ch->out[c].msg != NULL);
}

/* Take the next message of a class from its queue.  Returns whether there was a message. */
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
    return p->msg != NULL;
}

static void sent_whole (struct channel *ch, enum link_class c)
{
    struct piece *p = &ch->out[c];

    if (c == CLASS_EVENT && ch->ops->event)
        ch->ops->event_sent (ch->arg);
    else {
        assert (ch->bytes[c] >= p->size + CHANNEL_OVERHEAD);
        ch->bytes[c] -= p->size + CHANNEL_OVERHEAD;
    }
    if (c == CLASS_ANSWER && count_waiting (ch, c) == 0)
        ch->errors = 0;
    piece_clear (p);
}

/* Send a message, or a part of it.  Returns whether something was sent. */
static bool flush_one (struct channel *ch, enum link_class c)
{
    struct piece *p = &ch->out[c];

    if (ch->blocked || ch->broken || !window_may_send (&ch->window, c) || (!p->msg && !take_next (ch, c)))
        return false;
    if (!goes_in_parts (ch, c, p))
        p->done = wire_send (ch, c, p->msg) ? p->size : 0;
    else if (!send_part (ch, c, p))
        return false;
    if (p->done == 0)
        return false;
    assert (p->done <= p->size);
    if (p->done == p->size)
        sent_whole (ch, c);
    return true;
}

/* Send messages of a class, at most MOST_PARTS parts at a time.  So many parts are more than a quarter of any window,
 * so the other side grants more credit, and then sending continues.
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

/* A hash of the requester's UUID, the oldest route. */
static uint64_t requester_of (const idt_msg_t *msg)
{
    const char *uuid = idt_msg_route_oldest (msg);

    return uuid ? uuid_key (0, uuid) : 0;
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

/* Queue a response.  If this fails, break the link, because a requester would wait forever for a dropped response, or
 * would miss one response of a stream.
 */
static int queue_surely (struct channel *ch, const idt_msg_t *answer)
{
    if (queue (ch, CLASS_ANSWER, answer) == 0)
        return 0;
    channel_break (ch, "out of memory");
    return errset (EHOSTUNREACH);
}

/* Queue an error in place of a response that does not fit.  If a peer reads not even the errors, but sends further
 * requests, it violates the protocol.
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

/* Whether a message can be sent now, before any is queued: it fits into one frame, and no message of its class waits.
 */
static bool may_pass (const struct channel *ch, enum link_class c, const idt_msg_t *msg)
{
    return !ch->blocked && !ch->out[c].msg && count_waiting (ch, c) == 0 && window_may_send (&ch->window, c)
           && idt_msg_encode_size (msg) <= CHANNEL_PART;
}

int channel_send (struct channel *ch, const idt_msg_t *msg)
{
    enum link_class c = class_of (msg);

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

/* --- receiving ---------------------------------------------------------------------------------------------- */

static int violation (struct channel *ch, const char *why)
{
    channel_break (ch, why);
    return errset (EPROTO);
}

/* If a grant is due, send it to the other side. */
static void send_grant (struct channel *ch)
{
    uint8_t payload[GRANT_SIZE];
    size_t size = window_grant (&ch->window, payload);
    idt_msg_t *msg;

    if (size == 0)
        return;
    if ((msg = control_encode (CONTROL_CREDIT, 0, NULL)) && idt_msg_set_payload (msg, payload, size) == 0)
        channel_send (ch, msg);
    else
        channel_break (ch, "out of memory");
    idt_msg_unref (msg);
}

/* Enlarge the buffer, to twice its size or more.  For such sizes the kernel moves the memory without copying it. */
static int make_room (struct piece *p, size_t size)
{
    size_t room = p->size * 2 > size ? p->size * 2 : size;
    struct idt_msg *msg = p->msg ? msg_grow (p->msg, room) : msg_alloc (NULL, room, 0);

    if (!msg)
        return -1;
    p->msg = msg;
    p->size = room;
    return 0;
}

static int append (struct piece *p, const void *data, size_t size)
{
    if (p->done + size > CHANNEL_MAX_MESSAGE)
        return errset (EPROTO);
    if ((!p->msg || p->done + size > p->size) && make_room (p, p->done + size) < 0)
        return -1;
    memcpy (msg_bytes (p->msg) + p->done, data, size);
    p->done += size;
    return 0;
}

/* Parse the received bytes as a message.  Returns NULL if they are malformed. */
static idt_msg_t *take_whole (struct piece *p)
{
    idt_msg_t *msg = p->msg;

    p->msg = NULL;
    if (!msg_parse (msg, p->done))
        return msg;
    idt_msg_unref (msg);
    return NULL;
}

static int part_received (struct channel *ch, const idt_msg_t *part)
{
    uint32_t status = idt_msg_control_status (part);
    enum link_class c = status & CONTROL_PART_CLASS;
    struct piece *p = &ch->in[c];
    const void *data;
    idt_msg_t *msg;
    size_t size;

    if (status & CONTROL_PART_FIRST)
        piece_clear (p);
    if (idt_msg_payload (part, &data, &size) < 0 || (p->done == 0 && !(status & CONTROL_PART_FIRST)))
        return violation (ch, "it sent a part without the first part");
    if (append (p, data, size) < 0)
        return violation (ch, errno == ENOMEM ? "out of memory" : "it sent a message that is too long");
    if (!(status & CONTROL_PART_LAST))
        return 0;
    msg = take_whole (p);
    piece_clear (p);
    if (!msg || class_of (msg) != c) {
        idt_msg_unref (msg);
        return violation (ch, "it sent a malformed message");
    }
    ch->ops->message (ch->arg, msg);
    return 0;
}

static int control_received (struct channel *ch, const idt_msg_t *msg)
{
    const void *data;
    size_t size;

    switch (idt_msg_control_type (msg)) {
    case CONTROL_CREDIT:
        if (idt_msg_payload (msg, &data, &size) < 0 || window_granted (&ch->window, data, size) < 0)
            return violation (ch, "it revoked credit");
        channel_pump (ch);
        return 0;
    case CONTROL_PART:
        return part_received (ch, msg);
    default:
        ch->ops->control (ch->arg, msg);
        return 0;
    }
}

/* The class under which the sender has counted a message.  CLASS_COUNT: the message has no valid class. */
static enum link_class class_on_wire (const idt_msg_t *msg)
{
    uint32_t c;

    if (idt_msg_type (msg) != IDT_MSGTYPE_CONTROL || idt_msg_control_type (msg) != CONTROL_PART)
        return class_of (msg);
    c = idt_msg_control_status (msg) & CONTROL_PART_CLASS;
    return c > CLASS_CONTROL && c < CLASS_COUNT ? c : CLASS_COUNT;
}

int channel_received (struct channel *ch, idt_msg_t *msg)
{
    enum link_class c = class_on_wire (msg);
    int rc = 0;

    if (ch->broken) { /* an earlier message is lost, and a stream must not continue without it */
        idt_msg_unref (msg);
        return errset (EPROTO);
    }
    if (ch->holding && c != CLASS_CONTROL && fifo_push (&ch->held, msg) == 0)
        return 0;
    if (c == CLASS_COUNT || window_received (&ch->window, c, idt_msg_encode_size (msg)) < 0) {
        idt_msg_unref (msg);
        return violation (ch, "it sent more than its credit");
    }
    send_grant (ch);
    if (idt_msg_type (msg) != IDT_MSGTYPE_CONTROL) {
        ch->ops->message (ch->arg, msg);
        return 0;
    }
    rc = control_received (ch, msg);
    idt_msg_unref (msg);
    return rc;
}

void channel_hold (struct channel *ch)
{
    ch->holding = true;
}

void channel_release (struct channel *ch)
{
    const idt_msg_t *msg;

    ch->holding = false;
    while ((msg = fifo_pop (&ch->held)))
        channel_received (ch, (idt_msg_t *)msg);
}

/* --- life ------------------------------------------------------------------------------------------------- */

int channel_init (struct channel *ch, const struct channel_ops *ops, void *arg, size_t max_queue, uint64_t window_bytes,
                  uint32_t window_messages)
{
    *ch = (struct channel){
        .ops = ops,
        .arg = arg,
        .max_queue = max_queue,
        .window_bytes = window_bytes,
        .window_messages = window_messages,
    };
    ch->turns[CLASS_ASK] = drr_queue_create (QUANTUM, CHANNEL_MAX_ASKS, CHANNEL_MAX_ASK_BYTES);
    ch->turns[CLASS_ANSWER] = drr_queue_create (QUANTUM, 0, 0); /* queue_answer () limits responses */
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
    send_grant (ch);
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
    piece_clear (&ch->out[c]);
    ch->bytes[c] = 0;
    if (c == CLASS_ANSWER)
        ch->errors = 0;
}

void channel_close (struct channel *ch)
{
    int saved_errno = errno;

    for (enum link_class c = CLASS_CONTROL; c < CLASS_COUNT; c++) {
        drop_queue (ch, c);
        piece_clear (&ch->in[c]);
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
