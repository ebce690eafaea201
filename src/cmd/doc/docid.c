/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* docid.c - ids of documents on the command line: DOCUMENT:ID, DOCUMENT:UUID */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/base/ask.h"
#include "cmd/doc/docid.h"

/* Parse a decimal number; a local id is negative. */
static int parse_number (const char *s, int64_t *id)
{
    char *end;

    if (strspn (s + (*s == '-'), "0123456789") != strlen (s + (*s == '-')))
        return -1;
    errno = 0;
    *id = strtoll (s, &end, 10);
    return errno == 0 && end != s && *end == '\0' ? 0 : -1;
}

int docid_parse (const char *s, size_t len, struct docid *id)
{
    const char *colon = memchr (s, ':', len);
    struct idcomp_uuid uuid;

    if (!colon || colon == s || colon - s > DOCID_NAME_MAX || strlen (s) != len)
        return -1;
    memcpy (id->document, s, colon - s);
    id->document[colon - s] = '\0';
    id->by_uuid = idcomp_uuid_parse (colon + 1, strlen (colon + 1), &uuid, NULL) == 0;
    if (!id->by_uuid)
        return parse_number (colon + 1, &id->id);
    idcomp_uuid_format (&uuid, id->uuid, sizeof (id->uuid));
    return 0;
}

/* --- what a broker knows ---------------------------------------------------------------------- */

/* Send a request for one element and return the first element of the array 'key' in the answer, a new reference. */
static json_t *ask_one (struct cmd *cmd, const char *topic, json_t *request, const char *key, idt_error_t *errp)
{
    idt_future_t *f = ask_ready (cmd, ask_send (cmd, topic, IDT_NODEID_ANY, request), topic);
    json_t *array = NULL, *one = NULL;

    if (idt_future_errnum (f) != 0)
        snprintf (errp->text, sizeof (errp->text), "%s", idt_future_error (f));
    else if (idt_rpc_get_unpack (f, "{s:o}", key, &array) < 0 || !(one = json_incref (json_array_get (array, 0))))
        snprintf (errp->text, sizeof (errp->text), "%s: malformed answer", topic);
    idt_future_destroy (f);
    return one;
}

/* The id in session space. */
static json_t *find_id (struct cmd *cmd, const struct docid *id, idt_error_t *errp)
{
    json_t *o;

    if (!id->by_uuid)
        return json_integer (id->id);
    o = ask_one (cmd, "compressor.recompress", json_pack ("{s:s s:[s]}", "document", id->document, "uuids", id->uuid),
                 "ids", errp);
    if (!json_is_null (o))
        return o;
    snprintf (errp->text, sizeof (errp->text), "no id of %s stands for it", id->document);
    return NULL;
}

json_t *docid_describe_new (struct cmd *cmd, const struct docid *id, idt_error_t *errp)
{
    json_t *found = find_id (cmd, id, errp), *uuid = NULL, *op = NULL, *o = NULL;

    if (found)
        uuid = ask_one (cmd, "compressor.decompress", json_pack ("{s:s s:[O]}", "document", id->document, "ids", found),
                        "uuids", errp);
    if (uuid)
        op = ask_one (cmd, "compressor.normalize", json_pack ("{s:s s:[O]}", "document", id->document, "ids", found),
                      "ids", errp);
    if (op)
        o = json_pack ("{s:s s:s s:O s:O s:O}", "scheme", "compressor", "document", id->document, "id", found, "op", op,
                       "uuid", uuid);
    json_decref (found);
    json_decref (uuid);
    json_decref (op);
    return o;
}
