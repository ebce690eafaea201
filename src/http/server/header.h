/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* header.h - read the header of a request: whether all parsers read it in the same way, and which media type the client
 * prefers; no I/O
 */
#ifndef HTTP_SERVER_HEADER_H
#define HTTP_SERVER_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/error.h>

#define FRAMING_MAX_BODY 4096 /* most bytes of a body that are read before its request is refused */
#define FRAMING_NO_BODY "a request has no body here: parameters belong into the URL, as in /v1/ids?n=3&to=dec"

/* --- framing (RFC 9112) ---------------------------------------------------------------------------
 *
 * A proxy in front of the server may find another end of a malformed request than this server does. Then the body that
 * one client sends becomes the next request to this server, in the name of another client. So a malformed request is
 * refused, and is the last of its connection. A request with a body is refused, too, and is the last of its connection,
 * so that the end of its body does not matter.
 */

/* The properties of one header. All texts are borrowed. */
struct framing {
    const char *wrong;     /* why it is malformed; NULL: no error so far */
    const char *at;        /* where the next line must begin; NULL: not to be checked */
    bool old;              /* HTTP/1.0 */
    const char *host;      /* the requested host; NULL: not given */
    size_t host_size;      /* bytes of 'host' */
    bool absolute;         /* the host is in the target, not in a Host field */
    unsigned hosts, ends;  /* number of fields that name the host, and that give the length */
    unsigned seen;         /* fields seen that identify the client: a bit for each */
    bool chunked, unknown; /* Transfer-Encoding is chunked; it is another one */
    uint64_t length;       /* Content-Length */
};

/* Whether the libmicrohttpd of 'version' (such as 0.9.75) can refuse malformed headers itself. 'version' is the version
 * of the library that runs, not of the header file that was compiled, because an upgrade replaces only the library.
 */
bool framing_parser_is_strict (const char *version);

/* The request will be refused with 400 because of 'why' (static). If this is called again, the first reason stays. */
void framing_spoil (struct framing *f, const char *why);

/* Check the target as the client sent it, before the parser decodes it in place. */
void framing_target (struct framing *f, const char *target, size_t size);

/* Check the other parts of the request line. 'target_size' is the size of the target as sent. With 'in_place' the texts
 * must be where the client's bytes were: each 0 byte at the end of a text was a blank, a colon or a CRLF. By their
 * places this function and framing_field () find what a parser skips: a lone LF, a folded line, text behind a NUL.
 */
void framing_line (struct framing *f, const char *method, const char *target, size_t target_size, const char *version,
                   bool in_place);

/* Check each field, in the order of the header. */
void framing_field (struct framing *f, const char *name, size_t name_size, const char *value, size_t value_size);

/* Call this after the last field. 'end' is the byte behind the header; it is only used with 'in_place', and never read.
 * Returns 0 if the request can be served; if 'chunked' is set, the connection must end with the answer. Otherwise
 * returns the status of the error (400, 413, 501), with 'errp' filled; the connection must end with this answer, too.
 */
unsigned framing_end (struct framing *f, const char *end, idt_error_t *errp);

/* --- the media type that a client prefers (RFC 9110, 12.5.1) ---------------------------------------- */

#define ACCEPT_TYPES 4 /* largest number of offered types */

/* The best range for one offered type. */
struct accept_weight {
    int specific; /* how specific the best matching range is; -1: none matches */
    int q;        /* weight of that range: 0 to 1000 */
};

struct accept {
    const char *const *types; /* borrowed; the default comes first */
    size_t n;
    int fields; /* number of Accept fields that were read */
    struct accept_weight weights[ACCEPT_TYPES];
};

/* Offer 'n' types, such as "text/plain; version=0.0.4". The first one is the default. */
void accept_init (struct accept *a, const char *const *types, size_t n);

/* Read one Accept field.  A range that breaks the grammar is ignored. */
void accept_read (struct accept *a, const char *value);

/* Return the index of the type with the greatest weight. Among types of equal weight, the type with the more specific
 * range is chosen; among those, the type that is offered first. If the client accepts no offered type, the default is
 * chosen, because an error would not help the client.
 */
size_t accept_choose (const struct accept *a);

#endif /* HTTP_SERVER_HEADER_H */
