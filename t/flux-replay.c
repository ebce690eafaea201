/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flux-replay.c - send a broker the messages of a stock Flux client, and compare the answers with the recorded ones
 *
 * flux-client.json contains commands, with the messages that they exchanged with flux-core (protocol.md section 4). For
 * each command a new connection is made to the broker at IDTREE_URI (one of 3). Every recorded answer must arrive, with
 * the same type and flags. A payload must be an object with the same keys and kinds of values, or be missing, as
 * recorded. An error must have the recorded number; its text must be the recorded one, and may continue behind that.
 * The recording uses the module heartbeat, which idtree does not have. So its requests are sent to the fluid module,
 * which has its own keys of statistics.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "libmsg/stream.h"
#include "test/msg_vectors.h"

#define MAX_EARLY 64
#define STRANGE "heartbeat" /* a module of the recording that idtree does not have */
#define OURS "fluid"

struct client {
    int fd;
    struct msg_stream *stream;
    idt_msg_t *early[MAX_EARLY]; /* messages that have arrived, but are not expected yet */
    int count;
    char fault[1024];
};

static const char *text_of (json_t *o, const char *key)
{
    const char *s = json_string_value (json_object_get (o, key));

    return s ? s : "";
}

static uint32_t number_of (json_t *o, const char *key)
{
    return json_integer_value (json_object_get (o, key));
}

/* --- the connection --------------------------------------------------------------------------------------- */

static void client_init (struct client *c)
{
    const char *uri = getenv ("IDTREE_URI");
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    char welcome = 1;

    memset (c, 0, sizeof (*c));
    if (!uri || strncmp (uri, "local://", 8) != 0)
        bail_out ("IDTREE_URI is not set: this runs inside of an instance");
    snprintf (addr.sun_path, sizeof (addr.sun_path), "%s", uri + 8);
    c->fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect (c->fd, (struct sockaddr *)&addr, sizeof (addr)) < 0 || read (c->fd, &welcome, 1) != 1 || welcome != 0)
        bail_out ("no welcome");
    c->stream = msg_stream_create (c->fd, MSG_STREAM_MAX_MESSAGE, MSG_STREAM_MAX_QUEUE);
}

static void client_fini (struct client *c)
{
    while (c->count > 0)
        idt_msg_unref (c->early[--c->count]);
    msg_stream_destroy (c->stream);
    close (c->fd);
}

static void send_bytes (struct client *c, const void *data, size_t size)
{
    if (send (c->fd, data, size, MSG_NOSIGNAL) != (ssize_t)size)
        snprintf (c->fault, sizeof (c->fault), "the connection is closed on sending");
}

static void send_message (struct client *c, const idt_msg_t *msg)
{
    if (msg_stream_put (c->stream, msg) < 0 || msg_stream_flush (c->stream) != 0)
        snprintf (c->fault, sizeof (c->fault), "the connection is closed on sending");
}

/* Return the next message. If the connection has ended, return NULL with 'fault' set. */
static idt_msg_t *receive (struct client *c)
{
    struct pollfd pfd = { .fd = c->fd, .events = POLLIN };
    bool eof = false;
    idt_msg_t *msg;

    while (!(msg = msg_stream_next (c->stream, NULL))) {
        int errnum = errno;

        wait_until (poll (&pfd, 1, TAP_WAIT_S * 1000) == 1);
        if (errnum != EAGAIN || msg_stream_fill (c->stream, &eof) < 0 || eof) {
            snprintf (c->fault, sizeof (c->fault), "the broker closed the connection");
            return NULL;
        }
    }
    return msg;
}

/* --- comparing --------------------------------------------------------------------------------------------- */

/* Whether two values have the same kinds of values under the same keys. Only the first elements of arrays are compared.
 */
static bool same_form (json_t *want, json_t *got)
{
    const char *key;
    json_t *value;

    if (json_is_boolean (want) && json_is_boolean (got))
        return true;
    if (json_typeof (want) != json_typeof (got) || json_object_size (want) != json_object_size (got))
        return false;
    json_object_foreach (want, key, value)
        if (!json_object_get (got, key) || !same_form (value, json_object_get (got, key)))
            return false;
    if (json_array_size (want) > 0 && json_array_size (got) > 0)
        return same_form (json_array_get (want, 0), json_array_get (got, 0));
    return true;
}

/* Return the object in a payload, whose text ends with a NUL; NULL if it is not an object. */
static json_t *object_of (const char *data, size_t size)
{
    return size > 1 && data[size - 1] == '\0' && *data == '{' ? json_loadb (data, size - 1, 0, NULL) : NULL;
}

/* Whether a text is the recorded one. Texts of errors are compared; lines of the log are not. */
static bool same_text (json_t *want, const char *data, size_t size, bool is_error)
{
    const char *text = json_string_value (want);
    size_t length = json_string_length (want);

    if (length > 0 && text[length - 1] == '\0' && (size == 0 || data[size - 1] != '\0'))
        return false;
    while (is_error && length > 0 && text[length - 1] == '\0')
        length--;
    return !is_error || (length <= size && memcmp (text, data, length) == 0);
}

static bool same_payload_form (json_t *want, const idt_msg_t *msg, bool strange)
{
    json_t *recorded = json_object_get (want, "payload");
    json_t *a, *b;
    const void *data;
    size_t size;
    bool same;

    if (idt_msg_payload (msg, &data, &size) < 0)
        return !json_is_string (recorded);
    if (!json_is_string (recorded))
        return number_of (want, "aux1") != 0;
    a = object_of (json_string_value (recorded), json_string_length (recorded));
    b = object_of (data, size);
    if (!a || !b)
        same = !a && !b && same_text (recorded, data, size, number_of (want, "aux1") != 0);
    else
        same = (strange && strstr (text_of (want, "topic"), "stats-get")) || same_form (a, b);
    json_decref (a);
    json_decref (b);
    return same;
}

static bool is_expected (json_t *want, const char *topic, const idt_msg_t *msg)
{
    if (strcmp (idt_msg_typestr (msg), text_of (want, "type")) != 0 || !idt_msg_topic (msg)
        || strcmp (idt_msg_topic (msg), topic) != 0)
        return false;
    return idt_msg_type (msg) != IDT_MSGTYPE_RESPONSE
           || (idt_msg_matchtag (msg) == number_of (want, "aux2")
               && !idt_msg_errnum (msg) == !number_of (want, "aux1"));
}

/* Whether a message has the recorded flags. An error may have a text although the recorded one has none. */
static bool same_flags (json_t *want, const idt_msg_t *msg)
{
    int differ = idt_msg_flags (msg) ^ (int)number_of (want, "flags");
    bool more = number_of (want, "aux1") != 0 && !json_is_string (json_object_get (want, "payload"));

    return (differ & ~(more ? IDT_MSGFLAG_PAYLOAD : 0)) == 0;
}

static void compare (struct client *c, json_t *want, const idt_msg_t *msg, bool strange)
{
    uint32_t errnum = idt_msg_type (msg) == IDT_MSGTYPE_RESPONSE ? idt_msg_errnum (msg) : number_of (want, "aux1");
    const void *data = "";
    size_t size = 0;

    idt_msg_payload (msg, &data, &size);
    if (errnum != number_of (want, "aux1") || !same_flags (want, msg) || !same_payload_form (want, msg, strange))
        snprintf (c->fault, sizeof (c->fault),
                  "%s %s: error %u flags %d payload %.*s; recorded: error %u flags %u payload %s", idt_msg_topic (msg),
                  idt_msg_typestr (msg), errnum, idt_msg_flags (msg), (int)size, (const char *)data,
                  number_of (want, "aux1"), number_of (want, "flags"), text_of (want, "payload"));
}

/* --- replaying --------------------------------------------------------------------------------------------- */

/* Return 's' with the name of an idtree module instead of the recorded one. The caller frees it. */
static char *ours (const char *s, size_t size, size_t *newsize)
{
    const char *p = memmem (s, size, STRANGE, strlen (STRANGE));
    size_t before = p ? (size_t)(p - s) : size;
    char *copy = calloc (1, size + 1);

    memcpy (copy, s, before);
    *newsize = before;
    if (p) {
        memcpy (copy + before, OURS, strlen (OURS));
        memcpy (copy + before + strlen (OURS), p + strlen (STRANGE), size - before - strlen (STRANGE));
        *newsize = size - strlen (STRANGE) + strlen (OURS);
    }
    copy[*newsize] = '\0';
    return copy;
}

/* Send the recorded bytes of a client's message. If the module's name must be replaced, send a changed message. */
static void replay_client (struct client *c, json_t *m, bool strange)
{
    struct bytes b = bytes_get (m, "frame_hex");
    const void *data;
    idt_msg_t *msg;
    size_t size;
    char *copy;

    if (!strange)
        send_bytes (c, b.data, b.size);
    else {
        msg = idt_msg_decode (b.data + 8, b.size - 8);
        copy = ours (idt_msg_topic (msg), strlen (idt_msg_topic (msg)), &size);
        idt_msg_set_topic (msg, copy);
        free (copy);
        if (idt_msg_payload (msg, &data, &size) == 0) {
            copy = ours (data, size, &size);
            idt_msg_set_payload (msg, copy, size);
            free (copy);
        }
        send_message (c, msg);
        idt_msg_unref (msg);
    }
    free (b.data);
}

/* Publish a recorded event that came from another client. */
static void publish (json_t *m)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_EVENT);
    json_t *payload = json_object_get (m, "payload");
    struct client other;

    idt_msg_set_topic (msg, text_of (m, "topic"));
    idt_msg_set_payload (msg, json_string_value (payload), json_string_length (payload));
    idt_msg_route_clear (msg);
    client_init (&other);
    send_message (&other, msg);
    client_fini (&other);
    idt_msg_unref (msg);
}

static idt_msg_t *take_early (struct client *c, json_t *want, const char *topic)
{
    for (int i = 0; i < c->count; i++) {
        idt_msg_t *msg = c->early[i];

        if (is_expected (want, topic, msg)) {
            memmove (&c->early[i], &c->early[i + 1], (--c->count - i) * sizeof (c->early[0]));
            return msg;
        }
    }
    return NULL;
}

/* Wait for the recorded answer. A stream may have more messages before its end than were recorded. */
static void replay_server (struct client *c, json_t *want, bool strange)
{
    size_t size;
    char *topic = ours (text_of (want, "topic"), strlen (text_of (want, "topic")), &size);
    idt_msg_t *msg;

    if (strcmp (text_of (want, "type"), "event") == 0)
        publish (want);
    msg = take_early (c, want, topic);
    while (!msg && !c->fault[0] && (msg = receive (c))) {
        if (is_expected (want, topic, msg))
            break;
        if (idt_msg_has_flag (msg, IDT_MSGFLAG_STREAMING))
            idt_msg_unref (msg);
        else if (c->count < MAX_EARLY)
            c->early[c->count++] = msg;
        msg = NULL;
    }
    if (msg)
        compare (c, want, msg, strange);
    idt_msg_unref (msg);
    free (topic);
}

/* Check that no unrecorded message has arrived. Such a message would arrive before the answer to a last request. */
static void replay_end (struct client *c)
{
    idt_msg_t *fence = idt_msg_create (IDT_MSGTYPE_REQUEST), *msg = NULL;

    idt_msg_set_topic (fence, "broker.ping");
    idt_msg_set_string (fence, "{}");
    idt_msg_set_matchtag (fence, 4711);
    idt_msg_route_clear (fence);
    send_message (c, fence);
    idt_msg_unref (fence);
    while (!c->fault[0] && (msg = receive (c))
           && (idt_msg_type (msg) != IDT_MSGTYPE_RESPONSE || idt_msg_matchtag (msg) != 4711)) {
        snprintf (c->fault, sizeof (c->fault), "not recorded: %s %s", idt_msg_typestr (msg), idt_msg_topic (msg));
        idt_msg_unref (msg);
        msg = NULL;
    }
    idt_msg_unref (msg);
    if (c->count > 0)
        snprintf (c->fault, sizeof (c->fault), "not recorded: %s %s", idt_msg_typestr (c->early[0]),
                  idt_msg_topic (c->early[0]));
}

static void join_args (json_t *command, char *text, size_t size)
{
    json_t *arg;
    size_t i;

    *text = '\0';
    json_array_foreach (json_object_get (command, "args"), i, arg)
        snprintf (text + strlen (text), size - strlen (text), "%s%s", i ? " " : "", json_string_value (arg));
}

static void replay (json_t *command)
{
    struct client c;
    char text[1024];
    json_t *m;
    size_t i;

    join_args (command, text, sizeof (text));
    client_init (&c);
    json_array_foreach (json_object_get (command, "messages"), i, m) {
        bool strange = strstr (text, STRANGE) != NULL;

        if (c.fault[0])
            break;
        if (strcmp (text_of (m, "from"), "client") == 0)
            replay_client (&c, m, strange);
        else
            replay_server (&c, m, strange);
    }
    if (!c.fault[0])
        replay_end (&c);
    ok (!c.fault[0], "%s%s", text, strstr (text, STRANGE) ? " (asked of " OURS ")" : "");
    if (c.fault[0])
        diag ("%s", c.fault);
    client_fini (&c);
}

int main (void)
{
    json_t *commands = vectors_load ("flux-client.json"), *command;
    size_t i;

    json_array_foreach (commands, i, command)
        replay (command);
    json_decref (commands);
    return done_testing ();
}
