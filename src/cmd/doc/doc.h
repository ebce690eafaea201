/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* doc.h - what the commands about documents of the id compressor share (doc/design/compressor.md) */
#ifndef CMD_DOC_H
#define CMD_DOC_H

#include "cmd/base/ask.h"

#define DOC_AT(member) offsetof (struct doc, member)
#define DOC_RANK_OPTION                                                                                             \
    {                                                                                                               \
        'r', "rank", "R", "the session of rank R (default: of the broker of the URI)", cmd_take_rank, DOC_AT (rank) \
    }
#define DOC_IDS_MAX 65536 /* ids of one request */

/* The parsed options of a command. */
struct doc {
    struct cmd *cmd;
    uint32_t rank;
    uint64_t count;
    bool uuid;
    bool now;
    bool discard;
};

/* Parse the options and connect.  Ends the program on failure. */
struct doc doc_begin (struct cmd *cmd);

/* Send a request of the service "compressor"; 'request' is stolen. */
idt_future_t *doc_send (const struct doc *d, const char *method, json_t *request);

/* Send a request of the service and return the answer, a new reference; 'request' is stolen.  If it fails end the
 * program with "WHAT: why".
 */
json_t *doc_ask_new (const struct doc *d, const char *method, json_t *request, const char *what);

/* Get rank 0's fields of the document of this name, a new reference.  Ends the program if it does not exist. */
json_t *doc_need_new (const struct doc *d, const char *name);

/* Print the members of an object, one a line; or with --json the object on one line. */
void doc_print (const struct doc *d, const json_t *o);

#endif /* CMD_DOC_H */
