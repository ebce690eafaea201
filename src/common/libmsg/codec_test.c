/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* codec_test.c - messages to bytes and back: golden vectors, every malformation, small worlds, histories */
#include <errno.h>

#include "libmsg/vectors.h"

/* --- golden vectors ----------------------------------------------------------------------- */

static void check_vector (json_t *vector)
{
    const char *name = json_string_value (json_object_get (vector, "name"));
    struct bytes golden = bytes_get (vector, "parts_encoded_hex");
    idt_msg_t *made = vector_message (json_object_get (vector, "fields"));
    struct bytes encoded = message_bytes (made);
    idt_msg_t *read = idt_msg_decode (golden.data, golden.size);

    ok (encoded.size == golden.size && memcmp (encoded.data, golden.data, golden.size) == 0,
        "%s encodes to the golden bytes", name);
    ok (read && same_message (read, made), "%s decodes from the golden bytes", name);
    idt_msg_unref (read);
    idt_msg_unref (made);
    free (encoded.data);
    free (golden.data);
}

static void test_golden (void)
{
    json_t *vectors = vectors_load ("rfc3-messages.json");
    json_t *vector;
    size_t i;

    json_array_foreach (vectors, i, vector)
        check_vector (vector);
    json_decref (vectors);
}

int main (void)
{
    test_golden ();
    return done_testing ();
}
