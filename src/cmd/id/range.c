/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* range.c - idtree id range: the keys between which the ids of a range of time are sorted */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd/base/cmd.h"
#include "cmd/base/out.h"
#include "cmd/id/epoch.h"
#include "cmd/id/text.h"
#include "libutil/duration.h"

struct range_options {
    struct cmd *cmd;
    const struct scheme *scheme;
    const char *from, *to; /* dates */
    const char *epoch;
    const char *form;
    const char *drift, *kind;
};

static int64_t date_of (const struct cmd *cmd, const char *option, const char *s)
{
    char quoted[CMD_QUOTE_MAX];
    int64_t ms;

    if (!s)
        cmd_usage (cmd, "--%s DATE is missing", option);
    if (parse_date (s, &ms) < 0)
        cmd_usage (cmd, "--%s '%s' is not a date such as " DATE_EXAMPLE, option, cmd_quote (s, strlen (s), quoted));
    return ms;
}

static int64_t find_epoch (const struct range_options *o)
{
    struct id_epoch epoch;

    epoch_find (&epoch, o->cmd, o->epoch);
    if (epoch.ms < 0)
        cmd_die (o->cmd, "the epoch of the fluids is unknown: %s", epoch.why.text);
    return epoch.ms;
}

/* Limit a date to the life of the instance, with a warning. */
static int64_t clamp (const struct range_options *o, const char *option, int64_t ms, int64_t epoch_ms)
{
    const int64_t end_ms = epoch_ms + (int64_t)FLUID_TIMESTAMP_MAX;
    char begin[DATE_SIZE], end[DATE_SIZE];

    if (ms >= epoch_ms && ms <= end_ms)
        return ms;
    cmd_warn (o->cmd, "--%s is %s: cut off there; ids are made from the epoch, %s, until %s", option,
              ms < epoch_ms ? "before the epoch" : "after the last id", format_date (epoch_ms, begin),
              format_date (end_ms, end));
    return ms < epoch_ms ? epoch_ms : end_ms;
}

static void print (const struct range_options *o, const struct ident *lower, const struct ident *upper)
{
    int form = o->form ? idtext_form (o->cmd, o->scheme, o->form) : o->scheme->usual;
    char a[SCHEME_TEXT_MAX], b[SCHEME_TEXT_MAX];

    o->scheme->write (lower, form, a);
    o->scheme->write (upper, form, b);
    out_print (o->cmd->json ? "{\"lower\":\"%s\",\"upper\":\"%s\"}\n" : "%s\n%s\n", a, b);
}

static void find (const struct range_options *o)
{
    struct scheme_key key = { .drift = idtext_drift (o->cmd, o->drift), .kind = idtext_kind (o->cmd, o->kind) };
    int64_t from_ms = date_of (o->cmd, "from", o->from), to_ms = date_of (o->cmd, "to", o->to);
    struct ident lower, upper;

    if (from_ms > to_ms)
        cmd_usage (o->cmd, "--from is later than --to");
    if (o->scheme == scheme_find ("fluid")) {
        key.epoch_ms = find_epoch (o);
        from_ms = clamp (o, "from", from_ms, key.epoch_ms);
        to_ms = clamp (o, "to", to_ms, key.epoch_ms);
    }
    if (o->scheme->range (&key, from_ms, to_ms, &lower, &upper) < 0)
        cmd_die (o->cmd, "the dates of %s go from %s to %s", o->scheme->name, o->scheme->from, o->scheme->until);
    print (o, &lower, &upper);
}

static int run (struct cmd *cmd)
{
    struct range_options o = { .cmd = cmd, .scheme = scheme_find ("fluid") };

    cmd_options (cmd, &o);
    find (&o);
    return CMD_OK;
}

#define AT(member) offsetof (struct range_options, member)

static const struct cmd_option options[] = {
    { 0, "from", "DATE", "begin, as " DATE_EXAMPLE, cmd_take_text, AT (from) },
    { 0, "to", "DATE", "end, not included", cmd_take_text, AT (to) },
    { CMD_LETTERS (0, 's'), "scheme", "SCHEME", "fluid, flax, sno or uid (default fluid)", idtext_take_scheme,
      AT (scheme) },
    { 'F', "format", "FORM", "of the keys: as of idtree id convert", cmd_take_text, AT (form) },
    { 'e', "epoch", "DATE", "fluid: epoch of the timestamps (default: from the instance)", cmd_take_text, AT (epoch) },
    { 0, "drift", "N", "uid: drift bits, 5 to 10 (default 8)", cmd_take_text, AT (drift) },
    { 0, "kind", "KIND", "uid: local or global (default global)", cmd_take_text, AT (kind) },
    CMD_OPTIONS_END,
};

const struct command id_range_command = {
    .name = "id range",
    .flags = CMD_CONNECTS,
    .summary = "Print the keys between which the ids of a range of time are sorted",
    .details =
        "Two lines: the lower key, which is included, and the upper key, which is not.  Global uids\nare sorted by "
        "windows of time, so other ids of the first and the last window are between the\nkeys, too.  Dates of fluids "
        "before the epoch, or after the 34.8 years that follow, are cut off\nthere.",
    .example = "idtree id range --scheme sno --from 2026-11-01 --to 2026-12-01",
    .json = "one object",
    .options = options,
    .run = run,
};
