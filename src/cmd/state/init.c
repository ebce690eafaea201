/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* init.c - idtree init: make the state of a new instance.  No other program makes it. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <idtree/fluid.h>
#include <jansson.h>

#include "broker/base/uuid_key.h"
#include "cmd/base/ask.h"
#include "cmd/base/cmd.h"
#include "cmd/base/out.h"
#include "cmd/state/look.h"
#include "cmd/state/move.h"
#include "cmd/state/store.h"
#include "libsqlite/state.h"
#include "libstate/statefile.h"
#include "libutil/duration.h"
#include "libutil/private_dir.h"

#define DEFAULT_NAME "idtree"

struct init {
    const char *dir;
    const char *store;
    const char *from;
    const char *name;
    const char *epoch;
    const char *uuid;
    bool allow_network;
};

/* --- the folder ------------------------------------------------------------------------------- */

static void check_empty (const struct cmd *cmd, const char *path)
{
    struct dirent *entry;
    DIR *dir = opendir (path);

    if (!dir)
        cmd_die (cmd, "%s: %s", path, strerror (errno));
    while ((errno = 0, entry = readdir (dir)))
        if (strstr (entry->d_name, ".sqlite"))
            cmd_die (cmd,
                     "%s/%s: there is state already: move it away to make a new instance, or continue it with --uuid",
                     path, entry->d_name);
    if (errno != 0)
        cmd_die (cmd, "%s: %s", path, strerror (errno));
    closedir (dir);
}

/* With --uuid, the state that is left in the folder stays in use.  So end the program if a part of it belongs to
 * another instance.
 */
static void check_left (const struct cmd *cmd, const struct statefile *s, const char *path)
{
    struct look l = { .dir = path };
    char epoch[DATE_SIZE];
    idt_error_t error;

    if (state_check (path, s, STATE_HORIZON_STORE, &error) < 0)
        cmd_die (cmd, "%s", error.text);
    look_at_horizon (&l);
    if (l.in_use)
        cmd_die (cmd, "%s/" STATE_HORIZON_STORE " is %s", path, l.why);
    if (l.has_fluid && l.epoch_ms != s->epoch_ms)
        cmd_die (cmd, "%s/" STATE_HORIZON_STORE " counts from --epoch %s", path, format_date (l.epoch_ms, epoch));
}

static void make_folder (const struct cmd *cmd, const struct init *o, const struct statefile *s)
{
    struct statefile found;
    idt_error_t error;

    if (mkdir (o->dir, 0700) < 0 && errno != EEXIST)
        cmd_die (cmd, "cannot make %s: %s", o->dir, strerror (errno));
    if (private_dir_check ("statedir", o->dir, PRIVATE_DIR_STICKY, &error) < 0
        || (!o->allow_network && state_check_local (o->dir, &error) < 0))
        cmd_die (cmd, "%s", error.text);
    if (state_read (o->dir, &found, &error) == 0)
        cmd_die (cmd, "%s/instance: there is state already; idtree state show prints its instance", o->dir);
    if (errno != ENOENT)
        cmd_die (cmd, "%s", error.text);
    if (o->uuid)
        check_left (cmd, s, o->dir);
    else
        check_empty (cmd, o->dir);
}

/* --- the instance ----------------------------------------------------------------------------- */

static int64_t now_ms (void)
{
    return (int64_t)time (NULL) * 1000;
}

/* Take the UUID of an instance whose state was elsewhere.  That instance has made ids.  So list its store of the
 * horizon, which is missing here: the next start then needs a date above all of its ids.
 */
static void take_uuid (const struct cmd *cmd, const struct init *o, struct statefile *s)
{
    if (!state_uuid_is_good (o->uuid))
        cmd_usage (cmd, "--uuid '%s': a UUID in lower case is needed, as idtree state show and the log print it",
                   o->uuid);
    if (!o->epoch)
        cmd_usage (cmd, "--uuid: the instance has an epoch already, give it with --epoch");
    snprintf (s->uuid, sizeof (s->uuid), "%s", o->uuid);
    state_list_store (s, STATE_HORIZON_STORE, false);
}

/* Find the name that a rank's memory file in 'dir' has for the instance 'uuid'.  Returns whether it was found. */
static bool recall_name (const char *dir, const char *uuid, char name[STATE_NAME_SIZE])
{
    DIR *d = opendir (dir);
    struct dirent *entry;
    bool found = false;

    while (d && !found && (entry = readdir (d))) {
        struct statefile memory;
        uint32_t rank;

        if (sscanf (entry->d_name, "memory-%" SCNu32, &rank) == 1 && state_recall (dir, rank, &memory, NULL) == 0
            && strcmp (memory.uuid, uuid) == 0) {
            memcpy (name, memory.name, STATE_NAME_SIZE);
            found = true;
        }
    }
    if (d)
        closedir (d);
    return found;
}

/* Choose the name of the instance.  With --uuid it is the name in a rank's memory file, because stores have only the
 * UUID. Returns true if it is the default name only because, with --uuid, neither --name nor a file says the name.
 */
static bool choose_name (const struct cmd *cmd, const struct init *o, char name[STATE_NAME_SIZE])
{
    if (o->name && !state_name_is_good (o->name))
        cmd_usage (cmd, "--name '%s': a name has 1 to %d letters, digits, and '.', '_', '-'", o->name,
                   STATE_NAME_SIZE - 1);
    if (!o->name && o->uuid && o->dir && recall_name (o->dir, o->uuid, name))
        return false;
    snprintf (name, STATE_NAME_SIZE, "%s", o->name ? o->name : DEFAULT_NAME);
    return !o->name && o->uuid;
}

/* Write the date after the last possible id of the instance. */
static const char *format_end (int64_t epoch_ms, char buf[DATE_SIZE])
{
    return format_date (epoch_ms + (int64_t)FLUID_TIMESTAMP_MAX + 1, buf);
}

/* Check an epoch: a broker does not start if the epoch is in the future of its clock, and makes no ids after the 34.8
 * years that follow the epoch.
 */
static void check_epoch (const struct cmd *cmd, const struct init *o, int64_t epoch_ms)
{
    char now[DATE_SIZE], end[DATE_SIZE];

    if (epoch_ms > now_ms ())
        cmd_usage (cmd, "--epoch '%s' is in the future (the clock says %s): give the date of today or an earlier one",
                   o->epoch, format_date (now_ms (), now));
    if (epoch_ms + (int64_t)FLUID_TIMESTAMP_MAX < now_ms ())
        cmd_usage (cmd, "--epoch '%s': its ids lasted until %s, 34.8 years: give a later date", o->epoch,
                   format_end (epoch_ms, end));
}

static void describe (const struct cmd *cmd, const struct init *o, struct statefile *s)
{
    if (o->epoch && parse_date (o->epoch, &s->epoch_ms) < 0)
        cmd_usage (cmd, "--epoch '%s': a date such as 2026-01-01T00:00:00Z is needed", o->epoch);
    if (o->epoch)
        check_epoch (cmd, o, s->epoch_ms);
    if (o->uuid)
        take_uuid (cmd, o, s);
    else if (uuid_make (s->uuid) < 0)
        cmd_die (cmd, "no random bits: %s", strerror (errno));
}

static void make_tables (const struct cmd *cmd, const struct init *o, const struct statefile *s)
{
    struct pgstate state = {
        .has_epoch = s->has_epoch, .epoch_ms = s->epoch_ms, .created_ms = s->created_ms, .lost_horizon = o->uuid != NULL
    };

    memcpy (state.uuid, s->uuid, sizeof (state.uuid));
    memcpy (state.name, s->name, sizeof (state.name));
    store_make (cmd, o->store, &state);
}

/* Where the state is, for people and for programs. */
static void print (const struct cmd *cmd, const struct init *o, const struct statefile *s)
{
    char epoch[DATE_SIZE], end[DATE_SIZE];
    const char *place = o->store ? o->store : o->dir;

    format_date (s->epoch_ms, epoch);
    format_end (s->epoch_ms, end);
    if (!cmd->json) {
        out_print ("%s: the instance %s (%s), epoch %s: its ids last until %.10s\n", place, s->uuid, s->name, epoch,
                   end);
        return;
    }
    json_t *all = json_pack ("{s:s s:s s:s s:s s:s}", o->store ? "store" : "statedir", place, "uuid", s->uuid, "name",
                             s->name, "epoch", epoch, "ids_until", end);
    ask_print (cmd, all);
    json_decref (all);
}

static void check_options (const struct cmd *cmd, const struct init *o)
{
    if (o->store && o->dir)
        cmd_usage (cmd, "--store and --statedir exclude each other");
    if (o->from && (!o->store || o->name || o->epoch || o->uuid))
        cmd_usage (cmd, "--from needs --store, and excludes --name, --epoch and --uuid: the folder has them");
    if (o->store && o->allow_network)
        cmd_usage (cmd, "--store and --allow-network exclude each other");
    if (!o->store && (!o->dir || !*o->dir))
        cmd_usage (cmd, "--statedir DIR is missing (or --store URI)");
}

static int run (struct cmd *cmd)
{
    struct statefile s = { .has_epoch = true, .epoch_ms = now_ms (), .created_ms = now_ms () };
    struct init o = { 0 };
    idt_error_t error;

    cmd_options (cmd, &o);
    check_options (cmd, &o);
    if (o.from) {
        move_state (cmd, o.store, o.from, &s);
        print (cmd, &o, &s);
        return CMD_OK;
    }
    bool renamed = choose_name (cmd, &o, s.name);
    describe (cmd, &o, &s);
    if (o.store)
        make_tables (cmd, &o, &s);
    else {
        make_folder (cmd, &o, &s);
        if (state_create (o.dir, &s, &error) < 0)
            cmd_die (cmd, "%s", error.text);
    }
    print (cmd, &o, &s);
    if (renamed && !o.store)
        cmd_warn (cmd,
                  "the name %s is new, as nothing in %s has the old one: to use another one remove %s/instance, and "
                  "add --name",
                  s.name, o.dir, o.dir);
    return CMD_OK;
}

#define AT(member) offsetof (struct init, member)

static const struct cmd_option options[] = {
    { 0, "statedir", "DIR", "the folder; it is made if it does not exist", cmd_take_text, AT (dir) },
    { 0, "store", "URI", "make it in PostgreSQL instead, as root.store says", cmd_take_text, AT (store) },
    { 0, "from", "DIR", "with --store: move the state of a folder, which no broker uses afterwards", cmd_take_text,
      AT (from) },
    { 0, "name", "N", "name for people (default: as a rank remembers, or " DEFAULT_NAME ")", cmd_take_text, AT (name) },
    { 0, "epoch", "DATE", "time from which its ids count (default: now)", cmd_take_text, AT (epoch) },
    { 0, "uuid", "UUID", "of an instance whose state was lost, at least in part: not a new one", cmd_take_text,
      AT (uuid) },
    { 0, "allow-network", NULL, "allow NFS or similar: the user ensures that only this host uses it", cmd_take_flag,
      AT (allow_network) },
    CMD_OPTIONS_END,
};

const struct command init_command = {
    .name = "init",
    .summary = "Make the state of a new instance, on the host of its rank 0 or in PostgreSQL",
    .details = "A broker does not start if its statedir has no state, only a part of it, or another "
               "instance's.\nWith --uuid existing stores stay; without " STATE_HORIZON_STORE
               " the next start needs --recover-horizon.",
    .example = "idtree init --statedir /var/lib/idtree --name cluster --epoch 2026-01-01T00:00:00Z",
    .json = "one object",
    .options = options,
    .run = run,
};
