/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* boot_test.c - a reload changes all bizcards or none. The boot method of the test has a list of hosts that changes,
 * and fails when the test requests it.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/boot/method.h"
#include "libutil/errprintf.h"
#include "test/tap.h"

#define SIZE 7
#define NEVER 1000

struct fake {
    uint32_t rank;
    int version, before; /* number of the list, at the end of each host name; 'before': of the list before a reload */
    int left;            /* number of bizcards that are returned before one fails */
    int settled;
};

static struct fake fake;

static void *create (const struct boot_conf *conf, struct boot_self *self, idt_error_t *errp)
{
    fake = (struct fake){ .rank = *conf->own_rank, .left = NEVER };
    *self = (struct boot_self){ .size = SIZE, .processes = SIZE, .tasks = SIZE, .process = fake.rank, .host = "own" };
    return &fake;
}

static void destroy (void *m)
{
}

static int get (void *m, uint32_t rank, struct bizcard *card, idt_error_t *errp)
{
    char public_key[BOOT_KEY_TEXT], secret_key[BOOT_KEY_TEXT], host[32], endpoint[64];
    const uint8_t secret[ZAP_KEY_SIZE] = { 1 };

    if (fake.left-- == 0)
        return errsetf (errp, ENOMEM, "injected failure");
    snprintf (host, sizeof (host), "n%u-%d", rank, fake.version);
    snprintf (endpoint, sizeof (endpoint), "tcp://%s:1", host);
    boot_derive_keys (secret, rank, public_key, secret_key, NULL);
    return card_fill (card, rank, endpoint, host, public_key, "", SIZE);
}

static int reload (void *m, struct attrs *attrs, idt_error_t *errp)
{
    fake.before = fake.version++;
    return 0;
}

static void settle (void *m, bool keep)
{
    fake.version = keep ? fake.version : fake.before;
    fake.settled++;
}

static const struct boot_method method = {
    .name = "fake", .create = create, .destroy = destroy, .earlier = get, .get = get, .reload = reload, .settle = settle
};

/* Write all that a broker gets about other ranks into 'text'. */
static void describe (struct boot *b, uint32_t rank, char text[1024])
{
    const struct bizcard *up = boot_ancestors (b, rank, NULL);
    struct bizcard *down = boot_children (b, rank, NULL);
    char *hosts = b->hosts ? hostlist_text (b->hosts) : NULL;
    int n = snprintf (text, 1024, "%s: %s", b->host, hosts ? hosts : "-");

    for (uint32_t i = 0; i < topo_level (b->topo, rank); i++)
        n += snprintf (text + n, 1024 - n, " up %s", up[i].endpoint);
    for (uint32_t i = 0; i < topo_child_count (b->topo, rank); i++)
        n += snprintf (text + n, 1024 - n, " down %s", down[i].endpoint);
    free (hosts);
    free (down);
}

static void test_reload (uint32_t rank)
{
    const struct boot_conf conf = { .method = &method, .topology = "kary:2", .own_rank = &rank };
    idt_error_t err = { "" };
    struct boot *b = boot_create (&conf, &err);
    char before[1024], now[1024];
    bool same = true;
    int failed = 0;

    if (!b || boot_exchange (b, &err) < 0)
        bail_out (err.text);
    describe (b, rank, before);
    for (fake.left = 0; boot_reload (b, NULL, &err) < 0; fake.left = failed) {
        fake.left = NEVER;
        describe (b, rank, now);
        same = same && strcmp (before, now) == 0 && fake.version == 0 && ++failed == fake.settled;
        if (!same)
            break;
    }
    ok (same && failed > 1, "rank %u: a reload that fails at any of its %d steps changes nothing", (int)rank, failed);
    fake.left = NEVER;
    describe (b, rank, now);
    ok (fake.version == 1 && strstr (now, "-1") && !strstr (now, "-0"), "a reload that succeeds makes all changes: %s",
        now);
    boot_destroy (b);
}

int main (void)
{
    test_reload (0);
    test_reload (1);
    test_reload (6);
    return done_testing ();
}
