/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* codec_test.c - messages to bytes and back: golden vectors, each changed byte, all small frames */
#include <errno.h>

#include "libmsg/message.h"
#include "test/msg_vectors.h"

#define HEADER_SIZE IDT_MSG_HEADER_SIZE

static bool is_refused (const void *buf, size_t size)
{
    idt_msg_t *msg;

    errno = 0;
    msg = idt_msg_decode (buf, size);
    idt_msg_unref (msg);
    return !msg && errno == EPROTO;
}

/* Whether the bytes are refused, or are the only encoding of a message. */
static bool is_sound (const uint8_t *data, size_t size)
{
    idt_msg_t *msg = idt_msg_decode (data, size);
    struct bytes again;
    bool good;

    if (!msg)
        return errno == EPROTO;
    again = message_bytes (msg);
    good = again.size == size && memcmp (again.data, data, size) == 0;
    free (again.data);
    idt_msg_unref (msg);
    return good;
}

/* --- golden vectors ----------------------------------------------------------------------- */

static void check_golden (const char *name, struct bytes golden, json_t *fields)
{
    idt_msg_t *made = vector_message (fields);
    struct bytes encoded = message_bytes (made);
    idt_msg_t *read = idt_msg_decode (golden.data, golden.size);

    ok (encoded.size == golden.size && memcmp (encoded.data, golden.data, golden.size) == 0,
        "the message %s is encoded to the golden bytes", name);
    ok (read && same_message (read, made), "the message %s is decoded from the golden bytes", name);
    errno = 0;
    ok (idt_msg_encode (made, encoded.data, encoded.size - 1) < 0 && errno == EINVAL,
        "the message %s is not encoded into a buffer that is too small", name);
    idt_msg_unref (read);
    idt_msg_unref (made);
    free (encoded.data);
}

static void check_prefixes (const char *name, struct bytes golden)
{
    size_t n = 0;

    while (n < golden.size) {
        uint8_t *exact = malloc (n > 0 ? n : 1); /* exact size, so that a sanitizer sees reads beyond the end */
        bool refused;

        memcpy (exact, golden.data, n);
        refused = is_refused (exact, n);
        free (exact);
        if (!refused)
            break;
        n++;
    }
    ok (n == golden.size, "the message %s is refused if it is cut at any byte", name);
}

static void check_damage (const char *name, struct bytes golden)
{
    size_t i;
    int value = 0;

    for (i = 0; i < golden.size; i++) {
        uint8_t saved = golden.data[i];

        for (value = 0; value < 256; value++) {
            golden.data[i] = value;
            if (!is_sound (golden.data, golden.size))
                break;
        }
        golden.data[i] = saved;
        if (value < 256)
            break;
    }
    ok (i == golden.size, "the message %s with any byte changed is refused, or is another message", name);
    if (i < golden.size)
        diag ("byte %zu as 0x%02x", i, value);
}

static void test_golden (void)
{
    json_t *vectors = vectors_load ("rfc3-messages.json");
    json_t *vector;
    size_t i;

    json_array_foreach (vectors, i, vector) {
        const char *name = json_string_value (json_object_get (vector, "name"));
        struct bytes golden = bytes_get (vector, "parts_encoded_hex");

        check_golden (name, golden, json_object_get (vector, "fields"));
        check_prefixes (name, golden);
        check_damage (name, golden);
        free (golden.data);
    }
    json_decref (vectors);
}

/* --- a recording of a Flux client and its broker --------------------------------------------- */

static bool recorded_strings_match (json_t *m, const idt_msg_t *msg)
{
    json_t *payload = json_object_get (m, "payload");
    json_t *routes = json_object_get (m, "routes");
    const char *topic = json_string_value (json_object_get (m, "topic"));
    const void *data;
    size_t size;

    if (!topic != !idt_msg_topic (msg) || (topic && strcmp (topic, idt_msg_topic (msg)) != 0))
        return false;
    if (json_array_size (routes) != idt_msg_route_count (msg))
        return false;
    if (idt_msg_payload (msg, &data, &size) < 0)
        return !payload;
    return payload && size == json_string_length (payload) && memcmp (data, json_string_value (payload), size) == 0;
}

static bool recorded_numbers_match (json_t *m, const idt_msg_t *msg)
{
    struct idt_cred cred = idt_msg_cred (msg);

    return vector_type (json_string_value (json_object_get (m, "type"))) == idt_msg_type (msg)
           && (int)vector_int (m, "flags", 0) == idt_msg_flags (msg) && vector_int (m, "userid", 0) == cred.userid
           && vector_int (m, "rolemask", 0) == cred.rolemask;
}

static bool recorded_message_holds (json_t *m)
{
    struct bytes frame = bytes_get (m, "frame_hex");
    idt_msg_t *msg;
    bool good;

    if (!frame.data)
        return true;
    msg = idt_msg_decode (frame.data + 8, frame.size - 8);
    good = msg && is_sound (frame.data + 8, frame.size - 8) && recorded_numbers_match (m, msg)
           && recorded_strings_match (m, msg);
    idt_msg_unref (msg);
    free (frame.data);
    return good;
}

static void test_recorded (void)
{
    json_t *commands = vectors_load ("flux-client.json");
    json_t *command, *m;
    size_t i, j;

    json_array_foreach (commands, i, command) {
        json_t *args = json_object_get (command, "args");
        json_t *messages = json_object_get (command, "messages");
        size_t good = 0;

        json_array_foreach (messages, j, m)
            good += recorded_message_holds (m);
        ok (good == json_array_size (messages),
            "%zu messages of a recorded 'flux %s' are decoded, and encoded to the same bytes", good,
            json_string_value (json_array_get (args, 1)));
    }
    json_decref (commands);
}

/* --- headers ------------------------------------------------------------------------------ */

static void test_headers (void)
{
    uint8_t frame[1 + HEADER_SIZE] = { HEADER_SIZE, 0x8e, 1, 1 };
    const char *names[] = { "magic", "version", "type" };
    const char *values[] = { "8e", "01", "01 02 04 08" };

    ok (!is_refused (frame, sizeof (frame)), "a request without topic and payload is valid");
    for (int i = 0; i < 3; i++) {
        uint8_t saved = frame[1 + i];
        char accepted[1024] = "";

        for (int value = 0; value < 256; value++) {
            frame[1 + i] = value;
            if (!is_refused (frame, sizeof (frame)))
                sprintf (accepted + strlen (accepted), "%s%02x", accepted[0] ? " " : "", value);
        }
        frame[1 + i] = saved;
        ok (!strcmp (accepted, values[i]), "in the header of a message the field %s is one of: %s", names[i],
            values[i]);
    }
    int flags = 0, wrong = 0;
    for (; flags < 256; flags++) {
        frame[4] = flags;
        wrong += is_refused (frame, sizeof (frame)) != ((flags & 0x0b) != 0);
    }
    ok (wrong == 0,
        "a message with a flag that announces a part is refused without that part, and other flags are accepted");
}

/* --- sizes -------------------------------------------------------------------------------- */

/* Frames are assembled by hand here, independently of the encoder. */
struct frame {
    uint8_t data[64 * 1024];
    size_t size;
};

static void add_bytes (struct frame *f, const void *data, size_t size)
{
    memcpy (f->data + f->size, data, size);
    f->size += size;
}

static void add_long_part (struct frame *f, const void *data, size_t size)
{
    uint8_t head[5] = { 255, size >> 24, size >> 16, size >> 8, size };

    add_bytes (f, head, 5);
    add_bytes (f, data, size);
}

static void add_part (struct frame *f, const void *data, size_t size)
{
    uint8_t head = size;

    if (size >= 255) {
        add_long_part (f, data, size);
    }
    else {
        add_bytes (f, &head, 1);
        add_bytes (f, data, size);
    }
}

static void add_header (struct frame *f, int flags)
{
    uint8_t header[HEADER_SIZE] = { 0x8e, 1, 1, flags };

    add_part (f, header, sizeof (header));
}

static void test_sizes (void)
{
    static struct frame f;
    static const uint8_t data[300];
    size_t n;

    for (n = 0; n <= 300; n++) {
        bool good;

        f.size = 0;
        add_part (&f, data, n);
        add_header (&f, IDT_MSGFLAG_PAYLOAD);
        good = !is_refused (f.data, f.size);
        f.size = 0;
        add_long_part (&f, data, n);
        add_header (&f, IDT_MSGFLAG_PAYLOAD);
        if (!good || is_refused (f.data, f.size) != (n < 255))
            break;
    }
    ok (n == 301, "the size of a part has exactly one encoding: one byte up to 254, five bytes from 255 on");
}

/* A header without a NUL in it, so that a read beyond a part's end does not stop there. */
static void add_dense_header (struct frame *f, int flags)
{
    uint8_t header[HEADER_SIZE];

    memset (header, 'a', sizeof (header));
    memcpy (header, "\x8e\x01\x01", 3);
    header[3] = flags;
    add_part (f, header, sizeof (header));
}

static void test_lying_sizes (void)
{
    static struct frame f;
    const int flags[] = { IDT_MSGFLAG_TOPIC, IDT_MSGFLAG_PAYLOAD, IDT_MSGFLAG_ROUTE };
    const struct {
        const char *bytes;
        int size;
    } lies[] = {
        { "\xff\xff\xff\xff\xff", 5 },
        { "\xff\x80\x00\x00\x00", 5 },
        { "\xff\x00\x00\x01\x00", 5 },
        { "\xff\x00\x00\x01", 4 }, /* cut off by the header */
        { "\xff\x00\x00", 3 },
        { "\xff", 1 },
        { "\xfe", 1 },
        { "\x24", 1 },
        { "\x15", 1 },                                     /* as long as the header with its size byte */
        { "\x24uuuuuuuu-uuuu-uuuu-uuuu-uuuuuuuuuuu", 36 }, /* one byte is missing */
    };

    for (size_t i = 0; i < sizeof (lies) / sizeof (lies[0]); i++) {
        int refused = 0;

        for (int j = 0; j < 3; j++) {
            f.size = 0;
            add_bytes (&f, lies[i].bytes, lies[i].size);
            add_dense_header (&f, flags[j]);
            refused += is_refused (f.data, f.size);
        }
        ok (refused == 3, "a message with a topic, payload or route longer than its frame is refused (%zu)", i);
    }
}

static void test_header_place (void)
{
    static struct frame f;
    uint8_t header[HEADER_SIZE + 1] = { 0x8e, 1, 1, 0 };

    for (size_t n = 0; n <= sizeof (header); n++) {
        f.size = 0;
        add_part (&f, header, n);
        ok (is_refused (f.data, f.size) == (n != HEADER_SIZE), "a message with a header of %zu bytes is %s", n,
            n == HEADER_SIZE ? "taken" : "refused");
    }
    f.size = 0;
    add_header (&f, 0);
    add_header (&f, 0);
    ok (is_refused (f.data, f.size), "a message with two headers is refused");
    f.size = 0;
    add_header (&f, IDT_MSGFLAG_PAYLOAD);
    add_part (&f, "x", 1);
    ok (is_refused (f.data, f.size), "a message whose header is not its last part is refused");
    ok (is_refused (NULL, 0), "a message of an empty frame is refused");
}

static void test_route_limit (void)
{
    static struct frame f;

    for (int n = IDT_MSG_MAX_ROUTES - 1; n <= IDT_MSG_MAX_ROUTES + 1; n++) {
        f.size = 0;
        for (int i = 0; i < n; i++)
            add_part (&f, "aaaaaaaa-0000-4000-8000-000000000001", 36);
        add_part (&f, "", 0);
        add_header (&f, IDT_MSGFLAG_ROUTE);
        ok (is_refused (f.data, f.size) == (n > IDT_MSG_MAX_ROUTES), "a message with %d routes is %s", n,
            n > IDT_MSG_MAX_ROUTES ? "refused" : "taken");
    }
}

static void test_topic_limit (void)
{
    static struct frame f;
    char topic[IDT_MSG_MAX_TOPIC + 1];

    memset (topic, 't', sizeof (topic));
    for (size_t n = IDT_MSG_MAX_TOPIC - 1; n <= sizeof (topic); n++) {
        f.size = 0;
        add_part (&f, topic, n);
        add_header (&f, IDT_MSGFLAG_TOPIC);
        ok (is_refused (f.data, f.size) == (n > IDT_MSG_MAX_TOPIC), "a message with a topic of %zu bytes is %s", n,
            n > IDT_MSG_MAX_TOPIC ? "refused" : "taken");
    }
}

/* --- all frames of a small world ------------------------------------------------------------- */

/* The parts that a frame may consist of, and what each may be. */
static const struct letter {
    const char *data;
    int size;
    bool route, delimiter, topic;
} letters[] = {
    { .data = "", .size = 0, .delimiter = true },
    { .data = "a", .size = 1, .topic = true },
    { .data = "a\0b", .size = 3 },
    { .data = "aaaaaaaa-0000-4000-8000-000000000001", .size = 36, .route = true, .topic = true },
    { .data = "aaaaaaaa-0000-4000-8000-00000000000", .size = 36 }, /* its last byte is a NUL */
    { .data = "aaaaaaaa-0000-4000-8000-0000000000012", .size = 37, .topic = true },
    { .data = "\x8e\x01\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", .size = 20 }, /* a header */
};
#define LETTERS (int)(sizeof (letters) / sizeof (letters[0]))
#define WORD_MAX 5

/* The rules of protocol.md section 1 again, as a walk over letters. */
static bool word_is_message (const int *word, int len, int flags)
{
    int i = 0;

    if (flags & IDT_MSGFLAG_ROUTE) {
        while (i < len && letters[word[i]].route)
            i++;
        if (i == len || !letters[word[i++]].delimiter)
            return false;
    }
    if ((flags & IDT_MSGFLAG_TOPIC) && (i == len || !letters[word[i++]].topic))
        return false;
    if ((flags & IDT_MSGFLAG_PAYLOAD) && i++ == len)
        return false;
    return i == len;
}

static bool word_holds (const int *word, int len, int flags)
{
    static struct frame f;
    bool refused;

    f.size = 0;
    for (int i = 0; i < len; i++)
        add_part (&f, letters[word[i]].data, letters[word[i]].size);
    add_header (&f, flags);
    refused = is_refused (f.data, f.size);
    return refused != word_is_message (word, len, flags) && is_sound (f.data, f.size);
}

/* Count to the next word of the same length, like an odometer. False: that was the last word. */
static bool next_word (int *word, int len)
{
    for (int i = 0; i < len; i++) {
        if (++word[i] < LETTERS)
            return true;
        word[i] = 0;
    }
    return false;
}

static void test_small_world (void)
{
    const int content[] = { 0, 1, 2, 3, 8, 9, 10, 11 }; /* all sets of TOPIC, PAYLOAD, ROUTE */

    for (int len = 0; len <= WORD_MAX; len++) {
        int word[WORD_MAX] = { 0 };
        int words = 0, bad = 0;

        do {
            for (int i = 0; i < 8; i++)
                bad += !word_holds (word, len, content[i]);
            words++;
        } while (next_word (word, len));
        ok (bad == 0, "all %d messages of %d parts, with all flags, are accepted or refused by the rules of the format",
            words, len);
    }
}

/* Each slice of a message equals that slice of its encoding. */
static void test_slices (void)
{
    static const char payload[] = "the payload of a message";
    uint8_t all[256], slice[256];
    int bad = 0, n = 0;

    for (int kind = 0; kind < 8; kind++) {
        idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

        if (kind & 1)
            idt_msg_route_push (msg, "aaaaaaaa-0000-4000-8000-000000000000");
        if (kind & 2)
            idt_msg_set_topic (msg, "a.b");
        if (kind & 4)
            idt_msg_set_payload (msg, payload, sizeof (payload));
        size_t size = idt_msg_encode_size (msg);
        idt_msg_encode (msg, all, sizeof (all));
        for (size_t from = 0; from <= size; from++) {
            for (size_t len = 0; from + len <= size; len++, n++) {
                memset (slice, 0xee, sizeof (slice));
                msg_put_slice (slice, msg, from, len);
                bad += memcmp (slice, all + from, len) != 0 || slice[len] != 0xee;
            }
        }
        idt_msg_unref (msg);
    }
    ok (bad == 0, "each of %d slices of a message equals the same bytes of the whole message, and writes nothing else",
        n);
}

int main (void)
{
    test_golden ();
    test_recorded ();
    test_headers ();
    test_sizes ();
    test_lying_sizes ();
    test_header_place ();
    test_route_limit ();
    test_topic_limit ();
    test_small_world ();
    test_slices ();
    return done_testing ();
}
