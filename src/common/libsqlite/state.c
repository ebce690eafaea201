/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* state.c - check that a folder has all stores of its instance, and no store of another one */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libsqlite/database.h"
#include "libsqlite/peek.h"
#include "libsqlite/state.h"
#include "libutil/errprintf.h"

#define SUFFIX ".sqlite"

static bool is_store (const char *name)
{
    size_t len = strlen (name);

    return len > strlen (SUFFIX) && strcmp (name + len - strlen (SUFFIX), SUFFIX) == 0;
}

/* Call 'cb' for each store until a call returns -1. */
static int each_store (const char *dir, int (*cb) (const char *dir, const char *name, void *arg, idt_error_t *errp),
                       void *arg, idt_error_t *errp)
{
    DIR *d = opendir (dir);
    struct dirent *entry;
    int rc = 0;

    if (!d)
        return errprintf (errp, "statedir %s: %s", dir, strerror (errno));
    while (rc == 0 && (errno = 0, entry = readdir (d)))
        if (is_store (entry->d_name))
            rc = cb (dir, entry->d_name, arg, errp);
    if (rc == 0 && errno != 0)
        rc = errprintf (errp, "statedir %s: %s", dir, strerror (errno));
    int saved = errno;
    closedir (d);
    errno = saved;
    return rc;
}

/* --- check -------------------------------------------------------------------------------------------- */

int state_missing (const char *dir, const char *name, const char *uuid, idt_error_t *errp)
{
    return errsetf (errp, STATE_REFUSED, "%s/%s: is missing: put it back, or %s; it belongs to the instance %s", dir,
                    name,
                    strcmp (name, STATE_HORIZON_STORE) == 0
                        ? "start once with --recover-horizon=DATE-or-ID, above all ids made"
                        : "give up what was in it by idtree state forget",
                    uuid);
}

static int check_listed (const char *dir, const struct statefile *s, const struct state_store *store,
                         const char *excused, idt_error_t *errp)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/%s", dir, store->name);
    if (access (path, F_OK) == 0 || errno != ENOENT || (excused && strcmp (store->name, excused) == 0))
        return 0;
    return state_missing (dir, store->name, s->uuid, errp);
}

static int check_found (const char *dir, const char *name, void *arg, idt_error_t *errp)
{
    const struct statefile *s = arg;
    const struct state_store *store = state_find_store (s, name);
    char path[PATH_MAX], uuid[STATE_UUID_SIZE];

    snprintf (path, sizeof (path), "%s/%s", dir, name);
    bool ours = database_mark (path, uuid);
    if (strcmp (uuid, s->uuid) == 0 || (!uuid[0] && (!ours || (store && store->unmarked) || peek_is_torn (path))))
        return 0; /* the open of this store reports other problems */
    return errsetf (
        errp, STATE_REFUSED,
        "%s: of %s%s, but the folder is of the instance %s (%s): put back what belongs to it, and this aside", path,
        uuid[0] ? "the instance " : "no instance", uuid, s->uuid, s->name);
}

int state_check (const char *dir, const struct statefile *s, const char *excused, idt_error_t *errp)
{
    for (unsigned i = 0; i < s->nstores; i++)
        if (check_listed (dir, s, &s->stores[i], excused, errp) < 0)
            return -1;
    return each_store (dir, check_found, (void *)s, errp);
}

/* --- what an earlier version left --------------------------------------------------------------------- */

static int adopt_one (const char *dir, const char *name, void *arg, idt_error_t *errp)
{
    char path[PATH_MAX], uuid[STATE_UUID_SIZE];
    struct statefile *fresh = arg;

    snprintf (path, sizeof (path), "%s/%s", dir, name);
    if (!database_mark (path, uuid) && strcmp (name, STATE_HORIZON_STORE) != 0)
        return 0; /* the open of this store reports what is wrong */
    if (uuid[0])
        return errsetf (
            errp, STATE_REFUSED,
            "%s: of the instance %s, whose file 'instance' is gone: put the one of a backup beside it, or one that idtree init "
            "--uuid makes",
            path, uuid);
    if (state_list_store (fresh, name, true) < 0)
        return errprintf (errp, "%s: %s", path, strerror (errno));
    return 0;
}

int state_survey (const char *dir, struct statefile *fresh, idt_error_t *errp)
{
    if (each_store (dir, adopt_one, fresh, errp) < 0)
        return -1;
    if (fresh->nstores == 0)
        return 0;
    if (!state_find_store (fresh, STATE_HORIZON_STORE))
        return errsetf (errp, STATE_REFUSED,
                        "%s/%s is there, but " STATE_HORIZON_STORE
                        " is not: part of the state is missing; put it back, or the rest aside",
                        dir, fresh->stores[0].name);
    return 1;
}

int state_adopt (const char *dir, struct statefile *fresh, idt_error_t *errp)
{
    int rc = state_survey (dir, fresh, errp);

    return rc > 0 && state_create (dir, fresh, errp) < 0 ? -1 : rc;
}
