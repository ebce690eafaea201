/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reload.c - configuration files that are read again while brokers run */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <syslog.h>

#include "broker/boot/cluster.h"
#include "broker/conffile.h"
#include "broker/private.h"
#include "broker/reload.h"
#include "libutil/errprintf.h"

/* --- reading ------------------------------------------------------------------------------------- */

struct giving {
    struct attrs *given;
    struct attrs *fresh;
    int rc;
    idt_error_t *errp;
};

static void give_again (const char *name, const char *value, void *arg)
{
    struct giving *g = arg;

    if (g->rc == 0 && !attr_origin (g->given, name))
        g->rc = attr_give (g->fresh, name, value, g->errp);
}

struct attrs *reload_read (const struct reload_conf *conf, idt_error_t *errp)
{
    struct giving g = { .given = conf->given, .errp = errp };

    if (conf->nfiles == 0) {
        errsetf (errp, ENOENT, "the broker was started without --config: there is no file to read again");
        return NULL;
    }
    if (!(g.fresh = attrs_create ())) {
        errsetf (errp, ENOMEM, "out of memory");
        return NULL;
    }
    for (size_t i = 0; g.rc == 0 && i < conf->nfiles; i++)
        g.rc = conffile_load (g.fresh, conf->files[i], errp);
    if (g.rc == 0)
        attr_foreach (conf->given, give_again, &g);
    if (g.rc == 0)
        return g.fresh;
    attrs_destroy (g.fresh);
    return NULL;
}

/* --- checking ------------------------------------------------------------------------------------ */

struct checking {
    struct broker *broker;
    struct attrs *fresh;
    bool other_modules;
    int rc;
    idt_error_t *errp;
};

/* Other modules, loaded at the restart, may define other attributes. */
static bool has_other_modules (struct broker *b, struct attrs *fresh)
{
    const char *then = attr_get (fresh, "broker.modules", NULL), *now = attr_get (b->attrs, "broker.modules", NULL);

    return then && (!now || strcmp (then, now) != 0);
}

static void check_one (const char *name, const char *value, void *arg)
{
    struct checking *c = arg;
    const char *origin = attr_origin (c->fresh, name);
    int flags = 0;
    idt_error_t why;

    if (c->rc == 0 && !c->other_modules && broker_check_known (c->broker, name, origin, c->errp) < 0)
        c->rc = -1;
    attr_look (c->broker->attrs, name, &flags);
    if (c->rc == 0 && (flags & ATTR_SETTABLE) && attr_check (c->broker->attrs, name, value, &why) < 0)
        c->rc = errsetf (c->errp, EINVAL, "%s%s%s", origin ? origin : "", origin ? ": " : "", why.text);
}

int broker_check_reload (struct broker *b, struct attrs *fresh, idt_error_t *errp)
{
    struct checking c = { .broker = b,
                          .fresh = fresh,
                          .other_modules = has_other_modules (b, fresh),
                          .rc = quorum_check (fresh, b->size, errp),
                          .errp = errp };

    attr_foreach (fresh, check_one, &c);
    return c.rc;
}

/* --- taking over --------------------------------------------------------------------------------- */

struct taking {
    struct broker *broker;
    struct attrs *fresh;
    struct reload_report *report;
};

/* boot_reload () has already taken over the addresses of other hosts. */
static bool is_boots (const char *name)
{
    return strcmp (name, "cluster.hosts") == 0 || strcmp (name, "cluster.address") == 0;
}

/* Returns whether the attribute has changed. */
static bool take (struct broker *b, const char *name, const char *value, int flags)
{
    idt_error_t err = { "" };

    if (is_boots (name))
        return attr_update (b->attrs, name, value, NULL) == 0;
    if (strcmp (name, "cluster.quorum") == 0) {
        if (attr_set (b->attrs, "broker.quorum", value, &err) == 0 && attr_update (b->attrs, name, value, &err) == 0)
            return true;
    }
    else if (!(flags & ATTR_SETTABLE))
        return false;
    else if (attr_set (b->attrs, name, value, &err) == 0)
        return true;
    log_printf (b->log, LOG_ERR, "broker", "%s", err.text); /* out of memory */
    return false;
}

static void tell (struct taking *t, const char *name, bool changed)
{
    json_array_append_new (changed ? t->report->changed : t->report->later, json_string (name));
}

static void take_over (const char *name, const char *value, void *arg)
{
    struct taking *t = arg;
    struct broker *b = t->broker;
    int flags = 0;
    const char *old = attr_look (b->attrs, name, &flags);
    bool changed;

    if (old && strcmp (old, value) == 0)
        return;
    if ((changed = take (b, name, value, flags)))
        attr_set_origin (b->attrs, name, attr_origin (t->fresh, name), NULL);
    tell (t, name, changed);
    log_printf (b->log, LOG_NOTICE, "broker", changed ? "%s is now %s" : "%s=%s waits for a restart", name, value);
}

/* An attribute that came from a file, and is no longer in any, returns to its default. */
static void take_back (const char *name, const char *value, void *arg)
{
    struct taking *t = arg;
    struct broker *b = t->broker;
    const char *fallback = is_boots (name) ? CLUSTER_ADDRESS : attr_fallback (b->attrs, name);
    int flags = 0;
    bool changed;

    if (!attr_origin (b->attrs, name) || attr_get (t->fresh, name, NULL) || (fallback && strcmp (value, fallback) == 0))
        return;
    attr_get (b->attrs, name, &flags);
    if ((changed = fallback && take (b, name, fallback, flags)))
        attr_set_origin (b->attrs, name, NULL, NULL);
    tell (t, name, changed);
    log_printf (b->log, LOG_NOTICE, "broker", "%s is no longer in any file: %s%s", name,
                changed ? "it has its default again: " : "this takes effect at the next restart",
                changed ? fallback : "");
}

void broker_reload (struct broker *b, struct attrs *fresh, struct reload_report *report)
{
    struct taking t = { .broker = b, .fresh = fresh, .report = report };
    const struct bizcard *ancestors = boot_ancestors (b->boot, b->rank, NULL);

    attr_foreach (fresh, take_over, &t);
    attr_foreach (b->attrs, take_back, &t);
    if (b->rank > 0 && ancestors)
        attr_update (b->attrs, "tbon.parent-endpoint", ancestors->endpoint, NULL);
    overlay_connect (b->overlay); /* a refused broker may be in a long pause */
}
