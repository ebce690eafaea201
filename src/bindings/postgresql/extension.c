/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* extension.c - load the extension: its settings, dates, clock, and error messages */
#include "extension.h"

#include <errno.h>
#include <time.h>

#include "access/xact.h"
#include "common/string.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "utils/datetime.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"

PG_MODULE_MAGIC;

void _PG_init (void);

#if PG_VERSION_NUM < 160000
#define guc_malloc(level, size) malloc (size)
#endif

#define SESSION_INSTANCE "idtree.session_instance"

struct pg_settings settings = { .moved = true };

/* PostgreSQL shows these names in the encoding of each database without converting them. So all names are ASCII, except
 * a hidden one for users of databases in UTF-8. SHOW prints the first name of a value.
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

/* --- dates --------------------------------------------------------------------------------- */

static bool skip (const char **p, char c)
{
    bool is = **p == c;

    *p += is;
    return is;
}

/* Read a number of at least 1 digit and at most 'n' digits, whose value is at most 'most'. */
static bool read_number (const char **p, int n, int most, int *value)
{
    *value = 0;
    for (; n > 0; n--, ++*p) {
        if (**p < '0' || **p > '9')
            return false;
        *value = *value * 10 + (**p - '0');
    }
    return *value <= most;
}

static bool read_day (const char **p, int64 *days)
{
    int year, month, day;

    if (!read_number (p, 4, 9999, &year) || !skip (p, '-') || !read_number (p, 2, 12, &month) || !skip (p, '-')
        || !read_number (p, 2, 31, &day))
        return false;
    if (month < 1 || day < 1 || day > day_tab[isleap (year)][month - 1])
        return false;
    *days = date2j (year, month, day) - UNIX_EPOCH_JDATE;
    return true;
}

static bool read_time (const char **p, int64 *ms)
{
    int hour, minute, second = 0, fraction = 0, digit;

    if (!read_number (p, 2, 23, &hour) || !skip (p, ':') || !read_number (p, 2, 59, &minute))
        return false;
    if (skip (p, ':') && !read_number (p, 2, 59, &second))
        return false;
    if (skip (p, '.'))
        for (int unit = 100; **p >= '0' && **p <= '9'; unit /= 10) {
            if (!read_number (p, 1, unit > 0 ? 9 : 0, &digit)) /* dates with microseconds are refused */
                return false;
            fraction += digit * unit;
        }
    *ms = ((hour * 60 + minute) * 60 + second) * 1000LL + fraction;
    return true;
}

static bool read_zone (const char **p, int64 *ms)
{
    int hour, minute = 0;
    bool west = **p == '-';

    *ms = 0;
    if (!**p || skip (p, 'Z'))
        return true;
    if ((!skip (p, '+') && !skip (p, '-')) || !read_number (p, 2, 15, &hour))
        return false;
    (void)skip (p, ':');
    if (**p && !read_number (p, 2, 59, &minute))
        return false;
    *ms = (hour * 60 + minute) * (west ? -60000LL : 60000LL);
    return true;
}

bool date_read (const char *text, int64 *unix_ms)
{
    int64 days, time_ms = 0, zone_ms;

    if (!read_day (&text, &days))
        return false;
    if ((skip (&text, 'T') || skip (&text, ' ')) && !read_time (&text, &time_ms))
        return false;
    if (!read_zone (&text, &zone_ms) || *text)
        return false;
    *unix_ms = days * SECS_PER_DAY * 1000 + time_ms - zone_ms;
    return true;
}

/* --- settings -------------------------------------------------------------------------------- */

const char *settings_uri (void)
{
    return settings.uri && *settings.uri ? settings.uri : NULL;
}

void settings_tell_workers (const char *uuid)
{
    const char *text = *uuid ? uuid : "-";

    if (!IsInParallelMode () && strcmp (settings.session_instance, text) != 0)
        SetConfigOption (SESSION_INSTANCE, text, PGC_SUSET, PGC_S_OVERRIDE);
}

const char *settings_leader (void)
{
    const char *text = settings.session_instance;

    return !*text ? NULL : strcmp (text, "-") == 0 ? "" : text;
}

const char *settings_place (void)
{
    return settings_uri () ? settings.uri : "the default of idtree.uri";
}

static void note_move (const char *newval, void *extra)
{
    settings.moved = true;
}

static bool check_epoch (char **newval, void **extra, GucSource source)
{
    int64 unix_ms, *epoch_ms;

    if (!*newval || !**newval)
        return true;
    if (!date_read (*newval, &unix_ms)) {
        GUC_check_errdetail ("An epoch is a date, to the millisecond, as 2026-01-01T00:00:00Z.");
        return false;
    }
    if (!(epoch_ms = guc_malloc (LOG, sizeof (*epoch_ms))))
        return false;
    *epoch_ms = unix_ms;
    *extra = epoch_ms;
    return true;
}

static void assign_epoch (const char *newval, void *extra)
{
    if (extra)
        settings.epoch_ms = *(int64 *)extra;
}

static bool check_session (char **newval, void **extra, GucSource source)
{
    GUC_check_errdetail ("The session sets it by itself.");
    return source == PGC_S_DEFAULT || source == PGC_S_OVERRIDE;
}

/* Whether the value was set when this session began: by postgresql.conf, ALTER DATABASE, ALTER ROLE or PGOPTIONS. */
static bool is_given (const char *name)
{
    struct config_generic *g = NULL;
#if PG_VERSION_NUM >= 160000
    g = find_option (name, false, true, 0);
#else
    for (int i = 0; i < GetNumConfigOptions () && !g; i++)
        if (pg_strcasecmp (get_guc_variables ()[i]->name, name) == 0)
            g = get_guc_variables ()[i];
#endif
    return g && g->reset_source > PGC_S_DEFAULT;
}

/* Define all settings. Only a superuser (or a role with GRANT SET ON PARAMETER) may choose the instance and the epoch
 * of ids, because unique keys, views and policies depend on both. Each user may set the form of ids, and how long
 * queries wait.
 */
static void define_all (void)
{
    DefineCustomStringVariable (
        "idtree.uri", "The address of the broker that makes ids.",
        "For example local:///run/idtree/local.  Empty: IDTREE_URI in the server's environment, or that.",
        &settings.uri, "", PGC_SUSET, 0, NULL, note_move, NULL);
    /* Any text is accepted, and a text that is not the UUID of an instance makes all queries fail. If the value were
     * refused, PostgreSQL would only warn when it loads the extension, and continue without the value. Then ids of any
     * instance would be accepted.
     */
    DefineCustomStringVariable ("idtree.instance", "The UUID of the instance whose ids are accepted.",
                                "Empty: any; each session accepts ids of one instance only.", &settings.instance, "",
                                PGC_SUSET, 0, NULL, note_move, NULL);
    DefineCustomStringVariable ("idtree.epoch", "The date at which the time of ids begins.",
                                "Empty: the broker is asked once.", &settings.epoch, "", PGC_SUSET, 0, check_epoch,
                                assign_epoch, NULL);
    DefineCustomEnumVariable ("idtree.format", "The form in which ids are written.", NULL, &settings.form, FLUID_F58,
                              forms, PGC_USERSET, 0, NULL, NULL, NULL);
    DefineCustomIntVariable ("idtree.timeout", "How long a query waits for a broker.", NULL, &settings.timeout_ms,
                             10000, 1, 3600000, PGC_USERSET, GUC_UNIT_MS, NULL, NULL, NULL);
    DefineCustomStringVariable (SESSION_INSTANCE, "The instance of this session's ids, for its parallel workers.", NULL,
                                &settings.session_instance, "", PGC_SUSET,
                                GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE, check_session, NULL, NULL);
    MarkGUCPrefixReserved ("idtree");
}

/* Define the settings, and find refused values. If a value was set before the setting is defined, PostgreSQL checks the
 * value when the setting is defined. If the user may not set it, PostgreSQL warns and uses the default. Then the
 * superuser's value is lost, too, because the user's value had replaced it.
 */
static void define_settings (void)
{
    static const char *const guarded[] = { "idtree.uri", "idtree.instance", "idtree.epoch" };
    bool given[lengthof (guarded)];

    for (size_t i = 0; i < lengthof (guarded); i++)
        given[i] = is_given (guarded[i]);
    define_all ();
    for (size_t i = 0; i < lengthof (guarded); i++)
        if (given[i] && !is_given (guarded[i]))
            settings.refused = guarded[i];
    settings.defined = true;
}

/* Define the settings, except while several processes work on a query. PostgreSQL allows no changes of settings then,
 * so values that were set before the extension was loaded would be lost.
 */
void _PG_init (void)
{
    if (!IsInParallelMode ())
        define_settings ();
}

void settings_need (void)
{
    if (settings.refused)
        ereport (
            ERROR,
            (errcode (ERRCODE_INSUFFICIENT_PRIVILEGE),
             errmsg (
                 "idtree: this session began with a value of %s that was refused, and does not know the server's own",
                 settings.refused),
             errhint ("Begin a session without it (PGOPTIONS, options of the connection), or have the right to set it: "
                      "GRANT SET ON PARAMETER.")));
    if (settings.defined)
        return;
    if (IsInParallelMode ())
        ereport (ERROR, (errcode (ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                         errmsg ("idtree: its settings can't be read if it is loaded during a parallel query"),
                         errhint ("Set session_preload_libraries = 'idtree'.")));
    define_settings ();
    settings_need ();
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
      "Start a broker on this host (idtree-operations(7)), or set its address in idtree.uri." },
    { ECONNREFUSED, ERRCODE_CONNECTION_FAILURE,
      "Start a broker on this host (idtree-operations(7)), or set its address in idtree.uri." },
    { EINVAL, ERRCODE_INVALID_PARAMETER_VALUE, "Set idtree.uri to an address such as local:///run/idtree/local." },
    { EPERM, ERRCODE_INSUFFICIENT_PRIVILEGE,
      "Give access to the user that runs PostgreSQL: access.allow-guest-user or access.group in "
      "/etc/idtree/idtree.conf." },
    { EACCES, ERRCODE_INSUFFICIENT_PRIVILEGE,
      "Give access to the user that runs PostgreSQL: access.allow-guest-user or access.group in "
      "/etc/idtree/idtree.conf." },
    { ETIMEDOUT, ERRCODE_CONNECTION_FAILURE,
      "Ask \"idtree health\" on this host; idtree.timeout says how long to wait." },
    { EAGAIN, ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
      "More ids were asked for than the broker gives: see fluid.lanes, fluid.attach and access.guest-rate in "
      "idtree-broker(1)." },
    { EHOSTUNREACH, ERRCODE_CONNECTION_FAILURE, "Ask \"idtree health\" on this host." },
    { ESTALE, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
      "Two instances may make the same ids: restore idtree.uri, or begin a new session to use the other instance." },
    { ENOLINK, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
      "Call fluid_next () or fluid_epoch () in this session before, or where the plan of the query shows it." },
    { EPROTO, ERRCODE_PROTOCOL_VIOLATION, "Is the broker of the same version as this extension?" },
    { ELIBACC, ERRCODE_CONFIG_FILE_ERROR,
      "Install libidtree, which is needed for brokers that share no memory with PostgreSQL." },
};

/* Convert the text of an error to the encoding of the database. The broker's texts are UTF-8, and names may be any
 * bytes.
 */
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
