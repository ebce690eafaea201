/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* doc.h - documents of the id compressor: their list, and their ids on the command line, DOCUMENT:ID and DOCUMENT:UUID
 *
 * Ids of schemes (id/scheme.h) never contain a colon.
 */
#ifndef CMD_DOC_H
#define CMD_DOC_H

#include <jansson.h>

#include <idtree/idcomp.h>

#include "cmd/base/cmd.h"

/* Parse the options of a command, connect, and return the answer that lists all documents, a new reference.  Ends the
 * program on failure.
 */
json_t *doc_list_new (struct cmd *cmd);

#define DOCID_NAME_MAX 100 /* characters of a document's name */

struct docid {
    char document[DOCID_NAME_MAX + 1];
    bool by_uuid;
    int64_t id;
    char uuid[IDCOMP_UUID_TEXT_MAX];
};

/* Parse DOCUMENT:ID or DOCUMENT:UUID.  Returns 0, or -1 if the 'len' bytes at 's' are neither. */
int docid_parse (const char *s, size_t len, struct docid *id);

/* Get the fields of an id from the session that the broker has in the document.  Returns a new reference, or NULL with
 * a message in 'errp'. Ends the program if the broker does not answer.
 */
json_t *docid_describe_new (struct cmd *cmd, const struct docid *id, idt_error_t *errp);

#endif /* CMD_DOC_H */
