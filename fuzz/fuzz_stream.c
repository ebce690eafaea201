/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_stream.c - arbitrary data for the framing of stream sockets
 *
 * The first byte is the size of the pieces in which the rest arrives. The messages and the final error must not depend
 * on this size.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmsg/stream.h"

#define MAX_MESSAGE 100000

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

/* The messages and the error of a stream. */
struct outcome {
    size_t bytes; /* bytes of complete messages, with their frame headers */
    unsigned count;
    int errnum;
};

static void must (bool good)
{
    if (!good)
        abort ();
}

static void take_all (struct msg_stream *s, struct outcome *outcome)
{
    idt_error_t error = { "" };
    idt_msg_t *msg;

    while ((msg = msg_stream_next (s, &error))) {
        outcome->bytes += idt_msg_encode_size (msg) + 8;
        outcome->count++;
        idt_msg_unref (msg);
    }
    outcome->errnum = errno;
    must ((errno == EAGAIN) == (error.text[0] == '\0'));
}

static struct outcome run (const uint8_t *data, size_t size, size_t piece)
{
    struct msg_stream *s = msg_stream_create (-1, MAX_MESSAGE, 0);
    struct outcome outcome = { .errnum = EAGAIN };

    must (s != NULL);
    for (size_t i = 0; i < size && outcome.errnum == EAGAIN; i += piece) {
        must (msg_stream_feed (s, data + i, piece < size - i ? piece : size - i) == 0);
        take_all (s, &outcome);
    }
    msg_stream_destroy (s);
    return outcome;
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    struct outcome whole, pieces;

    if (size == 0)
        return 0;
    whole = run (data + 1, size - 1, size);
    pieces = run (data + 1, size - 1, 1 + data[0]);
    must (whole.errnum == pieces.errnum && whole.count == pieces.count && whole.bytes == pieces.bytes
          && whole.bytes <= size - 1);
    must (whole.errnum == EAGAIN || whole.errnum == EPROTO || whole.errnum == EMSGSIZE);
    return 0;
}
