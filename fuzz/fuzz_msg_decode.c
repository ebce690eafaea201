/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_msg_decode.c - arbitrary data for the decoder of messages
 *
 * If a message is decoded, it must encode to the same bytes, and so must its copy. Its routes, topic and payload must
 * be complete, and it must be possible to change it like any other message.
 */
#include <stdlib.h>
#include <string.h>

#include <idtree/msg.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

static void must (bool good)
{
    if (!good)
        abort ();
}

static void check_encoding (const idt_msg_t *msg, const uint8_t *data, size_t size)
{
    uint8_t *buf = malloc (size);

    must (buf && idt_msg_encode_size (msg) == size && idt_msg_encode (msg, buf, size) == (ssize_t)size
          && memcmp (buf, data, size) == 0);
    free (buf);
}

/* Read all parts of the message, so that a sanitizer detects reads outside of it. */
static void check_contents (const idt_msg_t *msg)
{
    unsigned count = idt_msg_route_count (msg);
    const char *topic = idt_msg_topic (msg);
    const char *string = idt_msg_string (msg);
    size_t size;

    for (unsigned i = 0; i < count; i++)
        must (strlen (idt_msg_route_at (msg, i)) == IDT_MSG_UUID_LEN);
    must (!idt_msg_route_at (msg, count) && count <= IDT_MSG_MAX_ROUTES);
    must (!topic || (topic[0] && strlen (topic) <= IDT_MSG_MAX_TOPIC));
    must (!string || (idt_msg_payload (msg, NULL, &size) == 0 && strlen (string) == size - 1));
}

static void check_copy (const idt_msg_t *msg, const uint8_t *data, size_t size)
{
    idt_msg_t *cpy = idt_msg_copy (msg, true);
    idt_msg_t *response = idt_msg_respond (msg, 1);

    must (cpy != NULL);
    check_encoding (cpy, data, size);
    must (!response == (idt_msg_type (msg) != IDT_MSGTYPE_REQUEST));
    must (!response || idt_msg_route_count (response) == idt_msg_route_count (msg));
    idt_msg_unref (cpy);
    idt_msg_unref (response);
}

static void change (idt_msg_t *msg)
{
    static const char uuid[] = "aaaaaaaa-0000-4000-8000-000000000001";
    int pushed = 0;

    while (pushed < 6 && idt_msg_route_push (msg, uuid) == 0)
        pushed++;
    check_contents (msg);
    must (pushed == 0 || strcmp (idt_msg_route_newest (msg), uuid) == 0);
    while (pushed-- > 0)
        idt_msg_route_pop (msg);
    must (idt_msg_set_topic (msg, "other") == 0 && idt_msg_set_string (msg, "other") == 0);
    check_contents (msg);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    idt_msg_t *msg = idt_msg_decode (data, size);

    if (msg) {
        check_encoding (msg, data, size);
        check_contents (msg);
        check_copy (msg, data, size);
        change (msg);
        idt_msg_unref (msg);
    }
    return 0;
}
