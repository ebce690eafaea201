/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* extension.c - the extension is loaded: its settings, and how it tells errors */
#include "extension.h"

#include <errno.h>
#include <time.h>

#include "access/xact.h"
#include "common/string.h"
#include "datatype/timestamp.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "utils/datetime.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#include "instant.h"

PG_MODULE_MAGIC;

void _PG_init (void);

#if PG_VERSION_NUM < 160000
#define guc_malloc(level, size) malloc (size)
#endif

struct settings settings = { .moved = true };

/* PostgreSQL shows names in the encoding of each database without converting them, so all but a hidden one are ASCII.
 * The hidden one is what people type in a database in UTF-8; SHOW prints the first name of a value.
 */
static const struct config_enum_entry forms[] = {
    { "dec", FLUID_DEC, false },
    { "hex", FLUID_HEX, false },
    { "dothex", FLUID_DOTHEX, false },
    { "f58", FLUID_F58, false },
    { "f58-utf8", FLUID_F58_UTF8, false },
    { "words", FLUID_WORDS, false },
    { "emoji", FLUID_EMOJI, false },
    { "\xc6\x92"
      "58",
      FLUID_F58_UTF8, true },
    { NULL, 0, false },
};

/* --- settings -------------------------------------------------------------------------------- */

const char *settings_uri (void)
{
    return settings.uri && *settings.uri ? settings.uri : NULL;
}

const char *settings_place (void)
{
    return settings_uri () ? settings.uri : "the default of idtree.uri";
}

static void note_move (const char *newval, void *extra)
{
    settings.moved = true;
}

/* Read a date as it stands in postgresql.conf, where an error may not be thrown. */
static bool read_date (const char *text, TimestampTz *at)
{
    char work[MAXDATELEN + MAXDATEFIELDS], *field[MAXDATEFIELDS];
    int type[MAXDATEFIELDS], n, kind, zone;
    struct pg_tm tm;
    fsec_t fraction;

    if (ParseDateTime (text, work, sizeof (work), field, type, MAXDATEFIELDS, &n) != 0)
        return false;
#if PG_VERSION_NUM >= 160000
    DateTimeErrorExtra why;
    if (DecodeDateTime (field, type, n, &kind, &tm, &fraction, &zone, &why) != 0)
        return false;
#else
    if (DecodeDateTime (field, type, n, &kind, &tm, &fraction, &zone) != 0)
        return false;
#endif
    return kind == DTK_DATE && tm2timestamp (&tm, fraction, &zone, at) == 0;
}

static bool check_epoch (char **newval, void **extra, GucSource source)
{
    TimestampTz at;
    int64 *epoch_ms;

    if (!*newval || !**newval)
        return true;
    if (!read_date (*newval, &at) || at % 1000 != 0) {
        GUC_check_errdetail ("An epoch is a date, to the millisecond, as 2026-01-01T00:00:00Z.");
        return false;
    }
    if (!(epoch_ms = guc_malloc (LOG, sizeof (*epoch_ms))))
        return false;
    *epoch_ms = instant_to_unix_ms (at);
    *extra = epoch_ms;
    return true;
}

static void assign_epoch (const char *newval, void *extra)
{
    if (extra)
        settings.epoch_ms = *(int64 *)extra;
}

static void define_settings (void)
{
    DefineCustomStringVariable (
        "idtree.uri", "Where the broker is that gives ids.",
        "As local:///run/idtree/local.  Empty: IDTREE_URI in the server's environment, or that.", &settings.uri, "",
        PGC_SUSET, 0, NULL, note_move, NULL);
    /* Any text is taken, and what names no instance stops all queries.  Of one that is refused PostgreSQL warns when it
     * loads us, and goes on without it: ids of any instance would come.
     */
    DefineCustomStringVariable ("idtree.instance", "The UUID of the instance whose ids are taken.",
                                "Empty: any; each session takes those of one.", &settings.instance, "", PGC_SUSET, 0,
                                NULL, note_move, NULL);
    DefineCustomStringVariable ("idtree.epoch", "When the time of ids begins.", "Empty: the broker is asked once.",
                                &settings.epoch, "", PGC_USERSET, 0, check_epoch, assign_epoch, NULL);
    DefineCustomEnumVariable ("idtree.format", "How ids are written.", NULL, &settings.form, FLUID_F58, forms,
                              PGC_USERSET, 0, NULL, NULL, NULL);
    DefineCustomIntVariable ("idtree.timeout", "How long a query waits for a broker.", NULL, &settings.timeout_ms,
                             10000, 1, 3600000, PGC_USERSET, GUC_UNIT_MS, NULL, NULL, NULL);
    MarkGUCPrefixReserved ("idtree");
    settings.defined = true;
}

/* While several processes work on a query PostgreSQL sets nothing: what was said of our settings before we were loaded
 * would be lost if they were defined then.
 */
void _PG_init (void)
{
    if (!IsInParallelMode ())
        define_settings ();
}

void settings_need (void)
{
    if (settings.defined)
        return;
    if (IsInParallelMode ())
        ereport (ERROR,
                 (errcode (ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg ("idtree: its settings can't be read when it is loaded in the midst of a parallel query"),
                  errhint ("Set session_preload_libraries = 'idtree'.")));
    define_settings ();
}

enum fluid_form settings_form (void)
{
    if (likely (settings.defined))
        return (enum fluid_form)settings.form;
    if (!IsInParallelMode ()) {
        define_settings ();
        return (enum fluid_form)settings.form;
    }
    const char *name = GetConfigOption ("idtree.format", true, false);
    enum fluid_form form;
    return name && form_find (name, &form) ? form : FLUID_F58;
}

bool form_find (const char *name, enum fluid_form *form)
{
    for (const struct config_enum_entry *e = forms; e->name; e++)
        if (pg_strcasecmp (name, e->name) == 0) {
            *form = (enum fluid_form)e->val;
            return true;
        }
    return false;
}

/* --- clock, errors ---------------------------------------------------------------------------- */

int64 now_ms (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_MONOTONIC_COARSE, &ts);
    return (int64)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void pause_ms (long ms)
{
    (void)WaitLatch (MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ms, PG_WAIT_EXTENSION);
    ResetLatch (MyLatch);
    CHECK_FOR_INTERRUPTS ();
}

static const struct complaint {
    int errnum;
    int sqlstate;
    const char *hint;
} complaints[] = {
    { ENOENT, ERRCODE_CONNECTION_FAILURE,
      "Start a broker on this host (idtree-operations(7)), or say where it is in idtree.uri." },
    { ECONNREFUSED, ERRCODE_CONNECTION_FAILURE,
      "Start a broker on this host (idtree-operations(7)), or say where it is in idtree.uri." },
    { EINVAL, ERRCODE_INVALID_PARAMETER_VALUE, "Set idtree.uri to local:///run/idtree/local or its like." },
    { EPERM, ERRCODE_INSUFFICIENT_PRIVILEGE,
      "Let the user that PostgreSQL runs as in: access.allow-guest-user or access.group in /etc/idtree/idtree.conf." },
    { EACCES, ERRCODE_INSUFFICIENT_PRIVILEGE,
      "Let the user that PostgreSQL runs as in: access.allow-guest-user or access.group in /etc/idtree/idtree.conf." },
    { ETIMEDOUT, ERRCODE_CONNECTION_FAILURE,
      "Ask \"idtree health\" on this host; idtree.timeout says how long to wait." },
    { EAGAIN, ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
      "More ids were asked for than the broker gives: see fluid.lanes, fluid.attach and access.guest-rate in "
      "idtree-broker(1)." },
    { EHOSTUNREACH, ERRCODE_CONNECTION_FAILURE, "Ask \"idtree health\" on this host." },
    { ESTALE, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
      "Ids of two instances may be the same: set idtree.uri back, or begin a new session if the other one is meant." },
    { ELIBACC, ERRCODE_CONFIG_FILE_ERROR,
      "Install libidtree, which asks brokers that share no memory with PostgreSQL." },
};

/* An error must be text in the encoding of the database.  Sentences of a broker, and names, are UTF-8 or any bytes. */
static const char *in_encoding (const char *text)
{
    int encoding = GetDatabaseEncoding (), len = (int)strlen (text);
    bool good = pg_verify_mbstr (encoding, text, len, true);

    if (encoding != PG_UTF8 && encoding != PG_SQL_ASCII && pg_verify_mbstr (PG_UTF8, text, len, true))
        good = pg_is_ascii (text);
    if (good)
        return text;
    char *copy = pstrdup (text);
    for (char *c = copy; *c; c++)
        if (IS_HIGHBIT_SET (*c))
            *c = '?';
    return copy;
}

void complain (int errnum, const char *sentence)
{
    const struct complaint *c = NULL;

    for (size_t i = 0; i < lengthof (complaints) && !c; i++)
        if (complaints[i].errnum == errnum)
            c = &complaints[i];
    ereport (ERROR,
             (errcode (c ? c->sqlstate : ERRCODE_CONNECTION_FAILURE), errmsg ("idtree: %s", in_encoding (sentence)),
              errhint ("%s", c ? c->hint : "Ask \"idtree health\" on this host.")));
}
