/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* framing.h - whether a request can be read in one way only (RFC 9112); decides, and does no I/O
 *
 * A proxy in front of the server may read a request that breaks the grammar in another way: it sees another end, and
 * what one client sends as a body is the next request to this server, in the name of another client.  Such a request
 * must be refused, and be the last of its connection.  So must each request with a body: then its end does not matter.
 */
#ifndef HTTP_SERVER_FRAMING_H
#define HTTP_SERVER_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/error.h>

#define FRAMING_MAX_BODY 4096 /* bytes of a body that are read before it is refused */
#define FRAMING_NO_BODY "a request has no body here: parameters belong into the URL, as in /v1/ids?n=3&to=dec"

/* What one header was found to be.  All texts are borrowed. */
struct framing {
    const char *wrong;     /* what breaks the grammar; NULL: nothing so far */
    const char *at;        /* where the next line has to begin; NULL: the parser checks that by itself */
    bool old;              /* HTTP/1.0 */
    const char *host;      /* whose request it is; NULL: the request does not say */
    size_t host_size;      /* bytes of it */
    bool absolute;         /* the target says that, not a Host field */
    unsigned hosts, ends;  /* fields that say whose it is, and where it ends */
    unsigned seen;         /* of fields that say who asks, a bit each */
    bool chunked, unknown; /* Transfer-Encoding is chunked, or another one */
    uint64_t length;       /* Content-Length */
};

/* Whether libmicrohttpd of this version (0.9.75) can be told to refuse what breaks the grammar of a header.  It is the
 * library that runs, not the one whose header was compiled: an upgrade replaces it.
 */
bool framing_parser_is_strict (const char *version);

/* The request is to be refused with 400; the first reason counts.  'why' is borrowed for ever. */
void framing_spoil (struct framing *f, const char *why);

/* The target as it was sent, before anything is decoded in place. */
void framing_target (struct framing *f, const char *target, size_t size);

/* The other parts of the request line.  'target_size': as above.  With 'in_place' the texts must lie where they came
 * in: each 0 byte that ends one was a blank, a colon or a CRLF.  The check of positions finds what a parser skips: a
 * lone LF, a folded line, what is behind a NUL.
 */
void framing_line (struct framing *f, const char *method, const char *target, size_t target_size, const char *version,
                   bool in_place);

/* Each field, in the order in which they came. */
void framing_field (struct framing *f, const char *name, size_t name_size, const char *value, size_t value_size);

/* After the last field.  'end': the byte behind the header (never read; only with 'in_place').  Returns 0 when the
 * request can be served: its connection must end with the answer if 'chunked' is set.  Else returns its status (400,
 * 413, 501), with 'errp' filled: its connection must end, too.
 */
unsigned framing_end (struct framing *f, const char *end, idt_error_t *errp);

#endif /* HTTP_SERVER_FRAMING_H */
