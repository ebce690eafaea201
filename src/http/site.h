/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* site.h - all paths that idtree-http serves */
#ifndef HTTP_SITE_H
#define HTTP_SITE_H

#include "http/server/server.h"

struct site_conf {
    struct server_conf server;
    uint32_t rate; /* ids a second; 0: no limit */
    bool show_log; /* whether readers of events get the lines of the instance's log */
};

struct site;

/* 'h' and 'conf' are borrowed until the site is destroyed. Returns NULL with errno set and 'errp' filled. */
struct site *site_create (idt_t *h, const struct site_conf *conf, idt_error_t *errp);
void site_destroy (struct site *s);

#endif /* HTTP_SITE_H */
