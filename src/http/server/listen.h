/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* listen.h - open the listening socket, and read the token */
#ifndef HTTP_SERVER_LISTEN_H
#define HTTP_SERVER_LISTEN_H

#include <stdbool.h>

#include <idtree/error.h>

/* Listen at ADDRESS:PORT, [ADDRESS]:PORT (numeric; port 0: any free port) or unix:PATH, which only the owner may use
 * and which replaces a socket without a server. '*loopback': TCP, from this host only; '*others': other hosts can
 * connect. Returns the descriptor, or -1 with errno set (EINVAL: 'where' has another form) and 'errp' filled.
 */
int listen_at (const char *where, bool *loopback, bool *others, idt_error_t *errp);

/* Like listen_at () for a socket that systemd passes; -1 with errno ENOENT if it passes no socket. */
int listen_inherited (bool *loopback, bool *others, idt_error_t *errp);

/* The address for people and scripts: http://127.0.0.1:8061 */
#define LISTEN_TEXT 160
const char *listen_text (int fd, bool tls, char buf[LISTEN_TEXT]);

#define LISTEN_MIN_TOKEN 16 /* characters */
#define LISTEN_MAX_TOKEN 1022

/* Read the first line of a file that no other user may read: a token of LISTEN_MIN_TOKEN to LISTEN_MAX_TOKEN
 * characters. The caller frees it. NULL with errno set and 'errp' filled.
 */
char *listen_token (const char *path, idt_error_t *errp);

#endif /* HTTP_SERVER_LISTEN_H */
