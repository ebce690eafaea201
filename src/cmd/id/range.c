/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* range.c - idtree id range: between which keys the ids of a time lie */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd/base/commands.h"
#include "cmd/id/date.h"
#include "cmd/id/epoch.h"
#include "cmd/id/text.h"

enum { OPT_FROM = CMD_LONG, OPT_TO, OPT_DRIFT, OPT_KIND, OPT_JSON };

struct range_options {
    struct cmd *cmd;
    const struct scheme *scheme;
    struct scheme_key key;
    const char *from, *to; /* dates */
    const char *epoch;
    const char *form;
    bool json;
};

static int64_t date_of (const struct cmd *cmd, const char *option, const char *s)
{
    char quoted[CMD_QUOTE_MAX];
    int64_t ms;

    if (!s)
        cmd_usage (cmd, "it needs --%s DATE", option);
    if (date_parse (s, &ms) < 0)
        cmd_usage (cmd, "--%s '%s' is no date such as 2026-11-21 or 2026-11-21T10:11:12.345Z", option,
                   cmd_quote (s, strlen (s), quoted));
    return ms;
}

static void find_epoch (struct range_options *o)
{
    struct epoch *epoch = epoch_new (o->cmd, o->epoch);

    if (epoch->ms < 0)
        cmd_die (o->cmd, "the epoch of the fluids is unknown: %s", epoch->why);
    o->key.epoch_ms = epoch->ms;
    epoch_free (epoch);
}

static void print (const struct range_options *o, const struct ident *lower, const struct ident *upper)
{
    int form = o->form ? idtext_form_of (o->cmd, o->scheme, o->form) : o->scheme->usual;
    char a[SCHEME_TEXT_MAX], b[SCHEME_TEXT_MAX];

    o->scheme->write (lower, form, a);
    o->scheme->write (upper, form, b);
    printf (o->json ? "{\"lower\":\"%s\",\"upper\":\"%s\"}\n" : "%s\n%s\n", a, b);
}

static void find (struct range_options *o)
{
    int64_t from_ms = date_of (o->cmd, "from", o->from), to_ms = date_of (o->cmd, "to", o->to);
    struct ident lower, upper;

    if (o->scheme == scheme_find ("fluid"))
        find_epoch (o);
    if (from_ms > to_ms)
        cmd_usage (o->cmd, "--from is later than --to");
    if (o->scheme->range (&o->key, from_ms, to_ms, &lower, &upper) < 0)
        cmd_die (o->cmd, "the dates of %s go from %s to %s", o->scheme->name, o->scheme->from, o->scheme->until);
    print (o, &lower, &upper);
}

static void take_option (struct range_options *o, int key, const char *arg)
{
    switch (key) {
    case 's':
        o->scheme = idtext_scheme (o->cmd, arg);
        break;
    case OPT_FROM:
        o->from = arg;
        break;
    case OPT_TO:
        o->to = arg;
        break;
    case 'f':
        o->form = arg;
        break;
    case 'e':
        o->epoch = arg;
        break;
    case OPT_DRIFT:
        o->key.drift = idtext_drift (o->cmd, arg);
        break;
    case OPT_KIND:
        o->key.kind = idtext_kind (o->cmd, arg);
        break;
    case OPT_JSON:
        o->json = true;
        break;
    }
}

static int run (struct cmd *cmd)
{
    struct range_options o = { .cmd = cmd,
                               .scheme = scheme_find ("fluid"),
                               .key = { .drift = UID_DRIFT_DEFAULT, .kind = UID_GLOBAL } };
    const char *arg;
    int key;

    while ((key = cmd_option (cmd, &arg)) != -1)
        take_option (&o, key, arg);
    find (&o);
    return cmd_flush (cmd);
}

static const struct cmd_option options[] = {
    { OPT_FROM, "from", "DATE", "begin, as 2026-11-21 or 2026-11-21T10:11:12.345Z" },
    { OPT_TO, "to", "DATE", "end, not included" },
    { 's', "scheme", "SCHEME", "fluid, flax, sno or uid (default fluid)" },
    { 'f', "form", "FORM", "of the keys: as --to of idtree id convert" },
    { 'e', "epoch", "DATE", "fluid: when timestamps begin (default: as the instance says)" },
    { OPT_DRIFT, "drift", "N", "uid: drift bits, 5 to 10 (default 8)" },
    { OPT_KIND, "kind", "KIND", "uid: local or global (default global)" },
    { OPT_JSON, "json", NULL, "one object" },
    CMD_OPTIONS_END,
};

const struct command id_range_command = {
    .name = "id range",
    .flags = CMD_CONNECTS,
    .summary = "Print the keys between which the ids of a time lie",
    .details = "Two lines: the lower key, which is included, and the upper key, which is not.  Global uids\n"
               "are sorted by windows of time, so that others of the first and the last window lie there too.",
    .example = "idtree id range --scheme sno --from 2026-11-01 --to 2026-12-01",
    .options = options,
    .run = run,
};
