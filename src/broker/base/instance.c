/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* instance.c - the instance that a broker belongs to */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>

#include "broker/base/instance.h"
#include "broker/base/uuid_key.h"
#include "libpg/pgstate.h"
#include "libsqlite/state.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"
#include "libutil/private_dir.h"

#define NAME "idtree" /* name of an instance that was given no name */

/* The statedir; NULL: the attribute is not set. */
static const char *statedir_of (struct attrs *attrs)
{
    const char *dir = attr_get (attrs, "statedir", NULL);

    return dir && *dir ? dir : NULL;
}

static void take (struct instance *in, const char *uuid, const char *name)
{
    snprintf (in->uuid, sizeof (in->uuid), "%s", uuid);
    snprintf (in->name, sizeof (in->name), "%s", name);
}

static int define (const struct instance *in, struct attrs *attrs, idt_error_t *errp)
{
    if (attr_define (attrs, "instance.uuid", in->uuid, ATTR_IMMUTABLE, errp) < 0)
        return -1;
    return attr_define (attrs, "instance.name", in->name, ATTR_IMMUTABLE, errp);
}

/* Take the epoch of the state. If fluid.epoch was set, it must be the same. */
static int set_epoch (struct attrs *attrs, const struct statefile *s, idt_error_t *errp)
{
    const char *asked = attr_get (attrs, "fluid.epoch", NULL);
    char epoch[DATE_SIZE];
    int64_t asked_ms;

    if (!s->has_epoch)
        return 0;
    format_date (s->epoch_ms, epoch);
    if (asked && (parse_date (asked, &asked_ms) < 0 || asked_ms != s->epoch_ms))
        return errsetf (errp, EINVAL,
                        "fluid.epoch=%s, but this instance's epoch is %s, and must remain: leave the option out", asked,
                        epoch);
    return asked ? 0 : attr_update (attrs, "fluid.epoch", epoch, errp);
}

/* --- the folder -------------------------------------------------------------------------------------- */

/* Read the state. If the folder has no state, but has stores of an earlier version, which wrote no state file, make a
 * state for these stores. Returns 1; 0 if the folder holds neither (then '*s' is a new state, not stored yet); or -1
 * with errno set and 'errp' filled.
 */
static int read_or_adopt (const char *dir, struct statefile *s, struct log *log, idt_error_t *errp)
{
    int rc;

    if (state_read (dir, s, errp) == 0)
        return 1;
    if (errno != ENOENT)
        return -1;
    *s = (struct statefile){ .name = NAME, .created_ms = (int64_t)time (NULL) * 1000 };
    if (uuid_make (s->uuid) < 0)
        return errprintf (errp, "cannot read random bytes: %s", strerror (errno));
    if ((rc = state_adopt (dir, s, errp)) > 0)
        log_printf (log, LOG_NOTICE, "broker", "%s: the stores of an earlier version now belong to the instance %s",
                    dir, s->uuid);
    return rc;
}

/* Without a statedir: use the state that an earlier life left in the rundir, or make one. */
static int find_own (const char *dir, struct statefile *s, struct log *log, idt_error_t *errp)
{
    int rc = read_or_adopt (dir, s, log, errp);

    return rc == 0 ? state_create (dir, s, errp) : rc;
}

static int check_folder (const char *dir, struct attrs *attrs, idt_error_t *errp)
{
    bool allow_network;

    if (attr_switch (attrs, "statedir.allow-network", "false", &allow_network, errp) < 0)
        return -1;
    if (private_dir_check ("statedir", dir, PRIVATE_DIR_STICKY, errp) < 0)
        return errset (STATE_REFUSED);
    return allow_network ? 0 : state_check_local (dir, errp);
}

static int find_kept (const char *dir, struct attrs *attrs, struct statefile *s, struct log *log, idt_error_t *errp)
{
    const char *excused = attr_get (attrs, "fluid.recover-horizon", NULL) ? STATE_HORIZON_STORE : NULL;
    int rc = check_folder (dir, attrs, errp) < 0 ? -1 : read_or_adopt (dir, s, log, errp);

    if (rc == 0)
        return errsetf (errp, STATE_REFUSED,
                        "statedir %s holds no state: if this instance has a state, put it there (if it is lost see "
                        "idtree-operations(7)); for a new instance make it once with idtree init --statedir",
                        dir);
    return rc < 0 ? -1 : state_check (dir, s, excused, errp);
}

/* --- PostgreSQL --------------------------------------------------------------------------------------- */

#define STORE_MS 5000

static int find_in_store (const char *store, struct statefile *s, idt_error_t *errp)
{
    const struct pg_config config = { .conninfo = store, .application = "idtree root", .timeout_ms = STORE_MS };
    struct pg *pg = pg_open (&config, errp);
    struct pgstate state;

    if (!pg || pgstate_read (pg, &state, errp) < 0) {
        pg_close (pg);
        return -1;
    }
    pg_close (pg);
    *s = (struct statefile){ .has_epoch = state.has_epoch, .epoch_ms = state.epoch_ms, .created_ms = state.created_ms };
    snprintf (s->uuid, sizeof (s->uuid), "%s", state.uuid);
    snprintf (s->name, sizeof (s->name), "%s", state.name);
    return 0;
}

int instance_find (struct instance *in, struct attrs *attrs, const char *rundir, struct log *log, idt_error_t *errp)
{
    const char *dir = statedir_of (attrs), *store = attr_get (attrs, "root.store", NULL);
    struct statefile s;

    if (store && *store) {
        if (find_in_store (store, &s, errp) < 0)
            return -1;
        take (in, s.uuid, s.name);
        return define (in, attrs, errp) < 0 ? -1 : set_epoch (attrs, &s, errp);
    }
    if ((dir ? find_kept (dir, attrs, &s, log, errp) : find_own (rundir, &s, log, errp)) < 0)
        return -1;
    in->own_dir = dir ? NULL : rundir;
    take (in, s.uuid, s.name);
    return define (in, attrs, errp) < 0 ? -1 : set_epoch (attrs, &s, errp);
}

void instance_leave (const struct instance *in)
{
    struct statefile s;

    if (in->own_dir && state_read (in->own_dir, &s, NULL) == 0 && s.nstores == 0)
        state_remove (in->own_dir);
}

/* --- memory ------------------------------------------------------------------------------------------ */

void instance_recall (struct instance *in, struct attrs *attrs, uint32_t rank, struct log *log)
{
    const char *dir = statedir_of (attrs);
    char epoch[DATE_SIZE], below[DATE_SIZE];
    struct statefile s;
    idt_error_t why;

    if (!dir)
        return;
    if (state_recall (dir, rank, &s, &why) < 0) {
        if (errno == STATE_REFUSED) /* a power cut may have damaged the record; it is not needed */
            log_printf (log, LOG_WARNING, "broker", "%s", why.text);
        return;
    }
    take (in, s.uuid, s.name);
    in->recalled = true;
    log_printf (log, LOG_NOTICE, "broker", "%s/memory-%u: instance %s (%s), epoch %s, all ids below %s", dir, rank,
                s.uuid, s.name, format_date (s.epoch_ms, epoch), format_date (s.below_ms, below));
}

void instance_forget (const struct instance *in, struct attrs *attrs, uint32_t rank)
{
    const char *dir = statedir_of (attrs);

    if (dir && !in->recalled)
        state_unremember (dir, rank);
}

/* --- the parent -------------------------------------------------------------------------------------- */

json_t *instance_put_new (const struct instance *in, json_t *o)
{
    if (o && in && in->uuid[0])
        json_object_set_new (o, "instance",
                             json_pack ("{s:s s:s s:b}", "uuid", in->uuid, "name", in->name, "lived", in->told));
    return o;
}

int instance_learn (struct instance *in, struct attrs *attrs, const char *uuid, const char *name, idt_error_t *errp)
{
    if (!state_uuid_is_good (uuid) || !state_name_is_good (name))
        return errsetf (errp, EPROTO, "the parent sent a malformed identity of its instance");
    if (in->told && strcmp (in->uuid, uuid) == 0)
        return 0;
    if (in->uuid[0] && strcmp (in->uuid, uuid) != 0)
        return errsetf (errp, STATE_REFUSED, "the parent belongs to the instance %s (%s), but this rank to %s (%s)",
                        uuid, name, in->uuid, in->name);
    take (in, uuid, name);
    in->told = true;
    return define (in, attrs, errp);
}
