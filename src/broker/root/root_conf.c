/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* root_conf.c - the attributes root.* */
#include "config.h"

#include <errno.h>
#include <string.h>

#include <idtree/uid.h>

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

static int read_drift (struct root_conf *conf, struct attrs *attrs, idt_error_t *errp)
{
    const char *s = attr_get (attrs, "uid.drift", NULL);

    conf->uid_drift = UID_DRIFT_DEFAULT;
    if (!s || parse_number (s, UID_DRIFT_MIN, UID_DRIFT_MAX, &conf->uid_drift) == 0)
        return 0;
    return attr_fault (attrs, "uid.drift", errp, "must be a number from %d to %d", UID_DRIFT_MIN, UID_DRIFT_MAX);
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
    return conf->store ? read_drift (conf, attrs, errp) : 0;
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
