/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* listen.h - the socket that is listened at, and the token that is to be shown there */
#ifndef HTTP_SERVER_LISTEN_H
#define HTTP_SERVER_LISTEN_H

#include <stdbool.h>

#include <idtree/error.h>

/* Listen at ADDRESS:PORT, [ADDRESS]:PORT (numbers; port 0: any) or unix:PATH, which is the owner's alone and replaces a
 * socket that nobody serves.  '*loopback': by TCP, for this host alone; '*others': other hosts reach it.  Returns the
 * descriptor, or -1 with errno set (EINVAL: 'where' is none of these) and 'errp' filled.
 */
int listen_at (const char *where, bool *loopback, bool *others, idt_error_t *errp);

/* The same for a socket that systemd listens at; -1 with errno ENOENT: there is none. */
int listen_inherited (bool *loopback, bool *others, idt_error_t *errp);

/* Where it is, for people and scripts: http://127.0.0.1:8061 */
#define LISTEN_TEXT 160
const char *listen_text (int fd, bool tls, char buf[LISTEN_TEXT]);

#define LISTEN_MIN_TOKEN 16 /* characters */
#define LISTEN_MAX_TOKEN 1022

/* The first line of a file that no other user may read: a token of LISTEN_MIN_TOKEN to LISTEN_MAX_TOKEN characters, to
 * be freed.  NULL with errno set and 'errp' filled.
 */
char *listen_token (const char *path, idt_error_t *errp);

#endif /* HTTP_SERVER_LISTEN_H */
