/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* header.h - read the header of a request: whether it can be read in one way only, and which media type the client
 * prefers; no I/O
 */
#ifndef HTTP_SERVER_HEADER_H
#define HTTP_SERVER_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/error.h>

#define FRAMING_MAX_BODY 4096 /* bytes of a body that are read before it is refused */
#define FRAMING_NO_BODY "a request has no body here: parameters belong into the URL, as in /v1/ids?n=3&to=dec"

/* --- framing (RFC 9112) ---------------------------------------------------------------------------
 *
 * A proxy in front of the server may read a malformed request in another way: it finds another end, and the body that
 * one client sends becomes the next request to this server, in the name of another client. Such a request must be
 * refused, and must be the last of its connection. The same holds for each request with a body, so that its end does
 * not matter.
 */

/* The properties of one header. All texts are borrowed. */
struct framing {
    const char *wrong;     /* why it is malformed; NULL: no error so far */
    const char *at;        /* where the next line must begin; NULL: the parser checks that itself */
    bool old;              /* HTTP/1.0 */
    const char *host;      /* the requested host; NULL: not given */
    size_t host_size;      /* bytes of it */
    bool absolute;         /* the host is in the target, not in a Host field */
    unsigned hosts, ends;  /* fields that name the host, and that determine the end */
    unsigned seen;         /* fields that identify the client, a bit each */
    bool chunked, unknown; /* Transfer-Encoding is chunked, or another one */
    uint64_t length;       /* Content-Length */
};

/* Whether libmicrohttpd of this version (such as 0.9.75) can refuse malformed headers itself. The version is that of
 * the library that runs, not of the header that was compiled, because an upgrade replaces the library.
 */
bool framing_parser_is_strict (const char *version);

/* Refuse the request with 400; only the first reason counts. 'why' is static. */
void framing_spoil (struct framing *f, const char *why);

/* Check the target as sent, before it is decoded in place. */
void framing_target (struct framing *f, const char *target, size_t size);

/* Check the other parts of the request line. 'target_size': as above. With 'in_place' the texts must be at their
 * original places: each 0 byte at an end was a blank, a colon or a CRLF. The check of positions finds what a parser
 * skips: a lone LF, a folded line, text behind a NUL.
 */
void framing_line (struct framing *f, const char *method, const char *target, size_t target_size, const char *version,
                   bool in_place);

/* Check each field, in the order of the header. */
void framing_field (struct framing *f, const char *name, size_t name_size, const char *value, size_t value_size);

/* Call this after the last field. 'end': the byte behind the header (never read; only with 'in_place'). Returns 0 if
 * the request can be served: its connection must end with the answer if 'chunked' is set. Otherwise returns its status
 * (400, 413, 501), with 'errp' filled: its connection must end, too.
 */
unsigned framing_end (struct framing *f, const char *end, idt_error_t *errp);

/* --- the media type that a client prefers (RFC 9110, 12.5.1) ---------------------------------------- */

#define ACCEPT_TYPES 4 /* largest number of offered types */

/* The best range that matches one offered type. */
struct accept_weight {
    int specific; /* specificity of the best range that matches; -1: no range does */
    int q;        /* 0 to 1000 */
};

struct accept {
    const char *const *types; /* borrowed; the default comes first */
    size_t n;
    int fields; /* Accept fields that were read */
    struct accept_weight weights[ACCEPT_TYPES];
};

/* Offer 'n' types, such as "text/plain; version=0.0.4". */
void accept_init (struct accept *a, const char *const *types, size_t n);

/* Read one Accept field.  A range that breaks the grammar is ignored. */
void accept_read (struct accept *a, const char *value);

/* The index of the type with the greatest weight; among equal weights the one with the more specific range, then the
 * one that is offered first. If the client accepts no offered type, the default is returned, because an error would not
 * help the client.
 */
size_t accept_choose (const struct accept *a);

#endif /* HTTP_SERVER_HEADER_H */
