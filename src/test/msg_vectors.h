/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* msg_vectors.h - shared by the tests of libmsg: recorded messages, and functions that compare messages
 *
 * rfc3-messages.json and flux-client.json were recorded from a running flux-core; see protocol.md, section 1.
 * IDTREE_VECTORS may name another folder with files of the same form.
 */
#ifndef MSG_VECTORS_H
#define MSG_VECTORS_H

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <idtree/msg.h>

#include "test/tap.h"

struct bytes {
    uint8_t *data;
    size_t size;
};

__attribute__ ((unused)) static json_t *vectors_load (const char *name)
{
    const char *dir = getenv ("IDTREE_VECTORS");
    char path[4096];
    json_error_t error;
    json_t *vectors;

    snprintf (path, sizeof (path), "%s/%s", dir ? dir : VECTORS_DIR, name);
    if (!(vectors = json_load_file (path, JSON_ALLOW_NUL, &error))) {
        diag ("%s:%d: %s", path, error.line, error.text);
        bail_out ("cannot read the vectors");
    }
    return vectors;
}

/* Return the bytes of a member that is a hexadecimal string. The caller frees '.data', which is NULL if there is no
 * such member.
 */
__attribute__ ((unused)) static struct bytes bytes_get (json_t *o, const char *key)
{
    const char *hex = json_string_value (json_object_get (o, key));
    struct bytes b = { 0 };

    if (!hex)
        return b;
    b.size = strlen (hex) / 2;
    b.data = malloc (b.size > 0 ? b.size : 1);
    for (size_t i = 0; i < b.size; i++)
        sscanf (hex + 2 * i, "%2hhx", &b.data[i]);
    return b;
}

static uint32_t vector_int (json_t *fields, const char *key, uint32_t otherwise)
{
    json_t *n = json_object_get (fields, key);

    return n ? (uint32_t)json_integer_value (n) : otherwise;
}

static enum idt_msgtype vector_type (const char *name)
{
    if (!strcmp (name, "request"))
        return IDT_MSGTYPE_REQUEST;
    if (!strcmp (name, "response"))
        return IDT_MSGTYPE_RESPONSE;
    return !strcmp (name, "event") ? IDT_MSGTYPE_EVENT : IDT_MSGTYPE_CONTROL;
}

static void vector_set_numbers (idt_msg_t *msg, json_t *fields)
{
    switch (idt_msg_type (msg)) {
    case IDT_MSGTYPE_REQUEST:
        idt_msg_set_nodeid (msg, vector_int (fields, "nodeid", IDT_NODEID_ANY));
        idt_msg_set_matchtag (msg, vector_int (fields, "matchtag", 0));
        break;
    case IDT_MSGTYPE_RESPONSE:
        idt_msg_set_errnum (msg, vector_int (fields, "errnum", 0));
        idt_msg_set_matchtag (msg, vector_int (fields, "matchtag", 0));
        break;
    case IDT_MSGTYPE_EVENT:
        idt_msg_set_seq (msg, vector_int (fields, "sequence", 0));
        break;
    default:
        idt_msg_set_control (msg, vector_int (fields, "control_type", 0), vector_int (fields, "status", 0));
    }
}

static void vector_set_payload (idt_msg_t *msg, json_t *fields)
{
    json_t *payload = json_object_get (fields, "payload");
    json_t *raw = json_object_get (fields, "payload_raw");

    if (raw && !strcmp (json_string_value (raw), "299 x then NUL")) {
        char *p = idt_msg_alloc_payload (msg, 300);

        memset (p, 'x', 299);
        p[299] = '\0';
    }
    else if (raw) {
        idt_msg_set_payload (msg, json_string_value (raw), json_string_length (raw));
    }
    else if (payload) {
        idt_msg_set_payload (msg, json_string_value (payload), json_string_length (payload));
    }
}

static void vector_set_routes (idt_msg_t *msg, json_t *fields)
{
    json_t *routes = json_object_get (fields, "routes_oldest_first");
    json_t *route;
    size_t i;

    if (routes || json_object_get (fields, "routes"))
        idt_msg_route_clear (msg);
    json_array_foreach (routes, i, route)
        idt_msg_route_push (msg, json_string_value (route));
}

/* Make the message that the "fields" of a vector of rfc3-messages.json describe. */
__attribute__ ((unused)) static idt_msg_t *vector_message (json_t *fields)
{
    const char *type = json_string_value (json_object_get (fields, "type"));
    idt_msg_t *msg = idt_msg_create (vector_type (type));

    idt_msg_set_cred (msg, (struct idt_cred){
                               .userid = vector_int (fields, "userid", IDT_USERID_UNKNOWN),
                               .rolemask = vector_int (fields, "rolemask", IDT_ROLE_NONE),
                           });
    vector_set_numbers (msg, fields);
    vector_set_routes (msg, fields);
    idt_msg_set_topic (msg, json_string_value (json_object_get (fields, "topic")));
    vector_set_payload (msg, fields);
    if (json_is_true (json_object_get (fields, "noresponse")))
        idt_msg_set_flag (msg, IDT_MSGFLAG_NORESPONSE);
    if (json_is_true (json_object_get (fields, "upstream")))
        idt_msg_set_flag (msg, IDT_MSGFLAG_UPSTREAM);
    if (json_is_true (json_object_get (fields, "streaming")))
        idt_msg_set_flag (msg, IDT_MSGFLAG_STREAMING);
    return msg;
}

/* Return the encoded message. The caller frees '.data'. */
__attribute__ ((unused)) static struct bytes message_bytes (const idt_msg_t *msg)
{
    struct bytes b = { .size = idt_msg_encode_size (msg) };

    b.data = malloc (b.size);
    if (idt_msg_encode (msg, b.data, b.size) != (ssize_t)b.size)
        bail_out ("the encoded size of a message is wrong");
    return b;
}

static bool same_routes (const idt_msg_t *a, const idt_msg_t *b)
{
    if (idt_msg_route_count (a) != idt_msg_route_count (b))
        return false;
    for (unsigned i = 0; i < idt_msg_route_count (a); i++) {
        if (strcmp (idt_msg_route_at (a, i), idt_msg_route_at (b, i)) != 0)
            return false;
    }
    return true;
}

static bool same_payload (const idt_msg_t *a, const idt_msg_t *b)
{
    const void *pa, *pb;
    size_t na, nb;
    int rc = idt_msg_payload (a, &pa, &na);

    if (rc != idt_msg_payload (b, &pb, &nb))
        return false;
    return rc < 0 || (na == nb && memcmp (pa, pb, na) == 0);
}

/* Whether two messages are the same in all fields that functions can read. */
__attribute__ ((unused)) static bool same_message (const idt_msg_t *a, const idt_msg_t *b)
{
    const char *ta = idt_msg_topic (a), *tb = idt_msg_topic (b);
    struct idt_cred ca = idt_msg_cred (a), cb = idt_msg_cred (b);

    if (idt_msg_type (a) != idt_msg_type (b) || idt_msg_flags (a) != idt_msg_flags (b) || ca.userid != cb.userid
        || ca.rolemask != cb.rolemask || !ta != !tb || (ta && strcmp (ta, tb) != 0) || !same_routes (a, b)
        || !same_payload (a, b))
        return false;
    switch (idt_msg_type (a)) {
    case IDT_MSGTYPE_REQUEST:
        return idt_msg_nodeid (a) == idt_msg_nodeid (b) && idt_msg_matchtag (a) == idt_msg_matchtag (b);
    case IDT_MSGTYPE_RESPONSE:
        return idt_msg_errnum (a) == idt_msg_errnum (b) && idt_msg_matchtag (a) == idt_msg_matchtag (b);
    case IDT_MSGTYPE_EVENT:
        return idt_msg_seq (a) == idt_msg_seq (b);
    default:
        return idt_msg_control_type (a) == idt_msg_control_type (b)
               && idt_msg_control_status (a) == idt_msg_control_status (b);
    }
}

#endif /* MSG_VECTORS_H */
