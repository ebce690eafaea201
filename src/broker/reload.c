/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reload.c - configuration files that are read again while brokers run */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <syslog.h>

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

/* --- taking over --------------------------------------------------------------------------------- */

struct taking {
    struct broker *broker;
    struct reload_report *report;
};

/* Returns whether it has changed. */
static bool take (struct broker *b, const char *name, const char *value, int flags)
{
    idt_error_t err = { "" };

    if (strcmp (name, "cluster.hosts") == 0 || strcmp (name, "cluster.address") == 0) /* boot has taken them over */
        return attr_update (b->attrs, name, value, NULL) == 0;
    if (strcmp (name, "cluster.quorum") == 0) {
        if (attr_set (b->attrs, "broker.quorum", value, &err) == 0 && attr_update (b->attrs, name, value, &err) == 0)
            return true;
    }
    else if (!(flags & ATTR_SETTABLE))
        return false;
    else if (attr_set (b->attrs, name, value, &err) == 0)
        return true;
    log_printf (b->log, LOG_ERR, "broker", "%s=%s is refused: %s", name, value, err.text);
    return false;
}

static void take_over (const char *name, const char *value, void *arg)
{
    struct taking *t = arg;
    int flags = 0;
    const char *old = attr_get (t->broker->attrs, name, &flags);
    bool changed;

    if (old && strcmp (old, value) == 0)
        return;
    changed = take (t->broker, name, value, flags);
    json_array_append_new (changed ? t->report->changed : t->report->later, json_string (name));
    log_printf (t->broker->log, LOG_NOTICE, "broker", changed ? "%s is %s now" : "%s=%s waits for a restart", name,
                value);
}

void broker_reload (struct broker *b, struct attrs *fresh, struct reload_report *report)
{
    struct taking t = { .broker = b, .report = report };
    const struct bizcard *ancestors = boot_ancestors (b->boot, b->rank, NULL);

    attr_foreach (fresh, take_over, &t);
    if (b->rank > 0 && ancestors)
        attr_update (b->attrs, "tbon.parent-endpoint", ancestors->endpoint, NULL);
}
