/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* root_conf.c - the attributes root.* */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "broker/root/root_conf.h"
#include "libpg/pg.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"

#define SYNC "check"
#define TAKEOVER "3s"
#define TAKEOVER_MIN_MS 500
#define TAKEOVER_MAX_MS 60000

static int read_sync (struct root_conf *conf, struct attrs *attrs, idt_error_t *errp)
{
    const char *sync = attr_get (attrs, "root.store-sync", NULL);

    conf->trust = sync && strcmp (sync, "trust") == 0;
    if (!sync || conf->trust || strcmp (sync, SYNC) == 0)
        return 0;
    return attr_fault (attrs, "root.store-sync", errp,
                       "must be check (each write asks whether a second server gets it, too) or trust (the database "
                       "sees to that itself)");
}

static int read_takeover (struct root_conf *conf, struct attrs *attrs, idt_error_t *errp)
{
    const char *s = attr_get (attrs, "root.takeover", NULL);

    if (parse_duration (s ? s : TAKEOVER, TAKEOVER_MAX_MS, &conf->takeover_ms) == 0
        && conf->takeover_ms >= TAKEOVER_MIN_MS)
        return 0;
    return attr_fault (attrs, "root.takeover", errp, "must be a time from 500ms to 60s, such as 3s");
}

int root_conf_read (struct root_conf *conf, struct attrs *attrs, idt_error_t *errp)
{
    const char *store = attr_get (attrs, "root.store", NULL);

    *conf = (struct root_conf){ .store = store && *store ? store : NULL };
    if (attr_get (attrs, "root.term", NULL))
        return attr_fault (attrs, "root.term", errp, "the broker sets it itself: leave it out");
    if (read_sync (conf, attrs, errp) < 0 || read_takeover (conf, attrs, errp) < 0)
        return -1;
    if (!conf->store && attr_get (attrs, "cluster.root", NULL))
        return attr_fault (attrs, "cluster.root", errp,
                           "several hosts can be rank 0 only if its state is in PostgreSQL: set root.store, too");
    return 0;
}

int root_conf_check_rank0 (const struct root_conf *conf, struct attrs *attrs, idt_error_t *errp)
{
    const char *dir = attr_get (attrs, "statedir", NULL);
    idt_error_t why;

    if (!conf->store)
        return 0;
    if (pg_check (conf->store, &why) < 0)
        return attr_fault (attrs, "root.store", errp, "%s", why.text);
    if (!dir || !*dir)
        return 0;
    return attr_fault (attrs, "statedir", errp,
                       "the state of rank 0 is in root.store: leave statedir out for rank 0 (idtree-root.service sets "
                       "none)");
}

int root_conf_define (struct attrs *attrs, idt_error_t *errp)
{
    int flags;
    const char *term = attr_look (attrs, "root.term", &flags) ? NULL : "0"; /* candidate.c has set it */

    if (attr_define (attrs, "root.store", NULL, 0, errp) < 0
        || attr_define (attrs, "root.store-sync", SYNC, 0, errp) < 0
        || attr_define (attrs, "root.takeover", TAKEOVER, 0, errp) < 0
        || attr_define (attrs, "root.term", term, ATTR_IMMUTABLE, errp) < 0)
        return -1;
    return 0;
}

/* --- the hash ------------------------------------------------------------------------------------- */

static uint64_t add_text (uint64_t hash, const char *s)
{
    do
        hash = (hash ^ (unsigned char)*s) * UINT64_C (0x100000001b3); /* FNV-1a */
    while (*s++);
    return hash;
}

static void add_attribute (const char *name, const char *value, void *arg)
{
    static const char *const modules[] = { "fluid.", "flake.", "compressor.", "ingest.", "uid.", "broker.modules" };
    uint64_t *hash = arg;

    for (size_t i = 0; i < sizeof (modules) / sizeof (modules[0]); i++)
        if (strncmp (name, modules[i], strlen (modules[i])) == 0)
            *hash = add_text (add_text (*hash, name), value);
}

void root_conf_hash (struct attrs *attrs, char hash[ROOT_HASH_SIZE])
{
    uint64_t value = UINT64_C (0xcbf29ce484222325);

    attr_foreach (attrs, add_attribute, &value);
    snprintf (hash, ROOT_HASH_SIZE, "%016" PRIx64, value);
}
