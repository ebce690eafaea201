/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_http.c - a client that sends arbitrary data to idtree-http, and a broker that sends arbitrary answers
 *
 * Bits of the first byte: 1: a token is needed; 2: other users of this host can connect; 4: the broker answers with the
 * first line of the input. The rest is the data of one connection. The answer must begin like HTTP, ids must not be
 * sent without the token, and no object may be left at the end.
 */
#include "config.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "http/site.h"
#include "libfluid/block.h"
#include "libidtree/transport.h"
#include "libutil/minmax.h"

#define ANSWERS 4096 /* most answers of the broker that are not read yet */
#define TURNS 200    /* most turns of the reactor */
#define TOKEN "0123456789abcdef"

/* --- a broker ------------------------------------------------------------------------------ */

struct broker {
    idt_msg_t *answers[ANSWERS];
    unsigned first, n;
    int event;
    uint64_t next_id;
    const char *says; /* answer of the broker; NULL: a valid one */
};

static const char *right_answer (const char *topic)
{
    if (strcmp (topic, "overlay.topology") == 0)
        return "{\"rank\":0,\"size\":3,\"children\":[{\"rank\":1},{\"rank\":2}]}";
    if (strcmp (topic, "metrics.get") == 0)
        return "{\"sum\":{\"fluid_ids\":3},\"ranks\":{\"status\":{\"full\":\"0-1\",\"lost\":\"2\"}}}";
    if (strcmp (topic, "fluid.info") == 0)
        return "{\"state\":\"active\",\"served_by\":0,\"generator\":0,\"timestamp_ms\":\"5\",\"lease\":[\"1\",\"9\"],"
               "\"epoch\":\"2026-01-01T00:00:00.000Z\"}";
    return "{\"value\":\"x\",\"ids\":1,\"parent-rank\":0}";
}

static void set_ids (struct broker *b, const idt_msg_t *request, idt_msg_t *answer)
{
    const void *data;
    size_t size;
    uint8_t run[BLOCK_RUN_SIZE];
    uint32_t n;
    fluid_t after;

    must (idt_msg_payload (request, &data, &size) == 0);
    must (block_get_request (data, size, &n, &after));
    block_put_run (run, (struct id_run){ b->next_id, n });
    b->next_id += n;
    must (idt_msg_set_payload (answer, run, sizeof (run)) == 0);
}

static int broker_send (void *impl, const idt_msg_t *msg)
{
    struct broker *b = impl;

    if (idt_msg_type (msg) != IDT_MSGTYPE_REQUEST || idt_msg_matchtag (msg) == 0 || b->n == ANSWERS)
        return 0;
    const char *topic = idt_msg_topic (msg);
    idt_msg_t *answer = idt_msg_respond (msg, strcmp (topic, "log.dmesg") == 0 ? EPERM : 0);

    must (answer != NULL);
    if (strcmp (topic, "fluid.block") == 0)
        set_ids (b, msg, answer);
    else
        must (idt_msg_set_string (answer, b->says ? b->says : right_answer (topic)) == 0);
    b->answers[(b->first + b->n++) % ANSWERS] = answer;
    must (eventfd_write (b->event, 1) == 0);
    return 0;
}

static const idt_msg_t *broker_recv (void *impl)
{
    struct broker *b = impl;
    eventfd_t count;

    if (b->n == 0) {
        (void)eventfd_read (b->event, &count);
        errno = EAGAIN;
        return NULL;
    }
    const idt_msg_t *msg = b->answers[b->first];
    b->first = (b->first + 1) % ANSWERS;
    b->n--;
    return msg;
}

static int broker_pollfd (void *impl)
{
    return ((struct broker *)impl)->event;
}

static void broker_destroy (void *impl)
{
    struct broker *b = impl;
    const idt_msg_t *msg;

    while ((msg = broker_recv (b)))
        idt_msg_unref (msg);
    close (b->event);
    free (b);
}

static const struct idt_transport transport = {
    .send = broker_send,
    .recv = broker_recv,
    .pollfd = broker_pollfd,
    .destroy = broker_destroy,
};

static idt_t *open_broker (const char *says)
{
    struct broker *b = calloc (1, sizeof (*b));

    must (b != NULL);
    b->event = eventfd (0, EFD_NONBLOCK | EFD_CLOEXEC);
    b->next_id = 1;
    b->says = says;
    idt_t *h = idt_handle_create (&transport, b);
    must (b->event >= 0 && h != NULL);
    return h;
}

/* --- a client ------------------------------------------------------------------------------ */

/* Make a listening socket with a unique name, and a socket that is connected to it. */
static void open_sockets (int *listening, int *client)
{
    struct sockaddr_storage a = { .ss_family = AF_UNIX };
    socklen_t len = sizeof (a.ss_family);

    *listening = socket (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    must (*listening >= 0 && bind (*listening, (struct sockaddr *)&a, len) == 0 && listen (*listening, 8) == 0);
    len = sizeof (a);
    must (getsockname (*listening, (struct sockaddr *)&a, &len) == 0);
    *client = socket (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    must (*client >= 0 && connect (*client, (struct sockaddr *)&a, len) == 0);
}

static bool has (const void *data, size_t size, const char *text)
{
    return memmem (data, size, text, strlen (text)) != NULL;
}

/* Check that a request without the token does not get these answers. */
static void check_answer (const char *answer, size_t size, bool known)
{
    must (size < 7 || memcmp (answer, "HTTP/1.", 7) == 0);
    must (known || (!has (answer, size, "\"ids\":[") && !has (answer, size, "idtree_")));
}

static void talk (idt_t *h, int client, const uint8_t *data, size_t size, bool known)
{
    static char answer[1 << 20];
    size_t got = 0, sent = 0;
    ssize_t n = 1;

    for (int i = 0; i < TURNS && n != 0; i++) {
        ssize_t out = sent < size ? send (client, data + sent, size - sent, MSG_NOSIGNAL) : 0;

        sent += out > 0 ? (size_t)out : 0;
        if (sent == size || (out < 0 && errno != EAGAIN))
            (void)shutdown (client, SHUT_WR);
        must (idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_NOWAIT) >= 0);
        while (got < sizeof (answer) && (n = recv (client, answer + got, sizeof (answer) - got, 0)) > 0)
            got += (size_t)n;
    }
    check_answer (answer, got, known);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    struct input in = { data, size };
    uint8_t choice = input_byte (&in);
    size_t len;
    char *says = choice & 4 ? input_line (&in, &len) : NULL;
    struct site_conf conf = { .server = { .door = { .token = choice & 1 ? TOKEN : NULL, .loopback = choice & 2 },
                                          .max_connections = 16,
                                          .max_answers = 1 << 20 } };
    int client;
    idt_error_t error;

    idt_t *h = open_broker (says);
    open_sockets (&conf.server.fd, &client);
    struct site *s = site_create (h, &conf, &error);
    must (s != NULL);
    talk (h, client, in.p, in.left, !(choice & 1) || has (in.p, in.left, TOKEN));
    close (client);
    site_destroy (s);
    idt_close (h);
    free (says);
    return 0;
}
