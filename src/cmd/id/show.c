/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* show.c - idtree id show, range: the fields of an id, and its possible makers; the keys between which the ids of a
 * range of time are sorted
 *
 * A text that can be an id of several schemes is shown as an id of each of them, with "perhaps".  If the instance does
 * not answer, ids are shown without a date, which is not an error.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/base/ask.h"
#include "cmd/base/out.h"
#include "cmd/doc/doc.h"
#include "cmd/id/show.h"
#include "cmd/id/text.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"

#define EPOCH_TIMEOUT_MS 5000
#define LABEL_WIDTH 14

/* --- the epoch of an instance, and the errors of its clocks */

struct id_epoch {
    int64_t ms;      /* since 1970; -1: unknown */
    idt_error_t why; /* why the epoch is unknown */
    idt_t *h;        /* connection of 'cmd' to the instance; NULL: not connected */
    /* A generator belongs to the rank whose number is the generator modulo 'ranks' (fluid.lanes).  0: each rank has one
     * generator, with its own number, or the number of ranks is unknown.
     */
    uint32_t ranks;
    double ahead_ms; /* difference between rank 0's time and its wall clock */
    /* Largest difference between a rank's time and the time of rank 0.  The index is the rank.  0: not requested yet,
     * -1: unknown.
     */
    double skew_ms[FLUID_GENERATOR_MAX + 1];
    /* The ranks that hold a part of a rank's numbers, as a set ("": none now).  NULL: the rank grants no parts, or this
     * is unknown.
     */
    char *holders[FLUID_GENERATOR_MAX + 1];
};

static void ask_epoch (idt_t *h, const char *uri, struct id_epoch *epoch)
{
    idt_future_t *f = idt_rpc (h, "fluid.info", "{}", IDT_NODEID_ANY, 0);
    json_int_t ranks = 0;
    const char *s;

    if (!f || idt_future_wait (f, EPOCH_TIMEOUT_MS) < 0)
        errprintf (&epoch->why, "%s does not answer", uri);
    else if (idt_rpc_get_unpack (f, "{s:s s?I}", "epoch", &s, "ranks", &ranks) < 0)
        errprintf (&epoch->why, "%s does not know it: %s", uri, idt_future_error (f));
    else if (parse_date (s, &epoch->ms) < 0)
        errprintf (&epoch->why, "%s says '%s', which is not a date", uri, s);
    if (ranks > 0 && ranks <= FLUID_GENERATOR_MAX)
        epoch->ranks = (uint32_t)ranks;
    idt_future_destroy (f);
}

/* Return a rank's answer to fluid.info, a new reference; NULL: the rank does not answer. */
static json_t *ask_rank_new (idt_t *h, uint32_t rank)
{
    idt_future_t *f = idt_rpc (h, "fluid.info", "{}", rank, 0);
    json_t *o = NULL;

    if (f && idt_future_wait (f, EPOCH_TIMEOUT_MS) == 0 && idt_rpc_get_unpack (f, "o", &o) == 0)
        json_incref (o);
    idt_future_destroy (f);
    return o;
}

static int get_number (const json_t *o, const char *key, double *value)
{
    const json_t *n = json_object_get (o, key);

    if (!json_is_number (n))
        return -1;
    *value = json_number_value (n);
    return 0;
}

static void find_in_instance (struct id_epoch *epoch, struct cmd *cmd)
{
    if (ask_try_connect (cmd, &epoch->why)) {
        ask_epoch (cmd->h, idt_get_uri (cmd->h), epoch);
        json_t *o = ask_rank_new (cmd->h, 0);
        if (get_number (o, "ahead_ms", &epoch->ahead_ms) == 0)
            epoch->h = cmd->h;
        json_decref (o);
    }
}

/* Take the epoch from 's', the argument of --epoch.  If 's' is NULL, connect 'cmd', and take the epoch of the instance
 * if it can be reached.  Ends the program if 's' is not a date.
 */
static void epoch_find (struct id_epoch *epoch, struct cmd *cmd, const char *s)
{
    memset (epoch, 0, sizeof (*epoch));
    epoch->ms = -1;
    if (s && parse_date (s, &epoch->ms) < 0)
        cmd_usage (cmd, "epoch '%s' is not a date such as " DATE_EXAMPLE, s);
    if (!s)
        find_in_instance (epoch, cmd);
}

/* Return the rank that owns a generator.  If 'ranks' is unknown, that is the rank with the generator's number. */
static uint32_t epoch_rank (const struct id_epoch *epoch, uint32_t generator)
{
    return epoch->ranks > 0 ? generator % epoch->ranks : generator;
}

static void epoch_fini (struct id_epoch *epoch)
{
    for (size_t i = 0; i <= FLUID_GENERATOR_MAX; i++)
        free (epoch->holders[i]);
}

/* Request the errors and holders of a rank, at most once. */
static void know (struct id_epoch *epoch, uint32_t rank)
{
    assert (rank <= FLUID_GENERATOR_MAX);
    if (!epoch->h || epoch->skew_ms[rank] != 0)
        return;
    json_t *o = ask_rank_new (epoch->h, rank);
    const char *set = json_string_value (json_object_get (json_object_get (o, "granted"), "ranks"));

    if (get_number (o, "skew_bound_ms", &epoch->skew_ms[rank]) < 0)
        epoch->skew_ms[rank] = -1;
    if (json_is_true (json_object_get (o, "grants")))
        epoch->holders[rank] = strdup (set ? set : "");
    json_decref (o);
}

/* Return the ranks that may have made ids of 'generator' because they hold a part of it (fluid.share), as a set that
 * may be empty.  It is the set that the generator's owner reports now; ranks below these may hold parts of their parts.
 * Returns NULL if the owner grants no parts, or does not answer.  Borrowed from 'epoch'.
 */
static const char *epoch_holders (struct id_epoch *epoch, uint32_t generator)
{
    uint32_t rank = epoch_rank (epoch, generator);

    know (epoch, rank);
    return rank == generator ? epoch->holders[rank] : NULL; /* no parts of lanes are granted */
}

/* Return the largest error of the date of an id of 'generator', as the instance's clocks are now.  It is assumed that
 * rank 0's wall clock is right.  Returns -1 if the instance or the rank does not answer.
 */
static double epoch_error_ms (struct id_epoch *epoch, uint32_t generator)
{
    uint32_t rank = epoch_rank (epoch, generator);
    const double *skew_ms = &epoch->skew_ms[rank];

    if (!epoch->h)
        return -1;
    know (epoch, rank);
    return *skew_ms < 0 ? -1 : *skew_ms + fabs (epoch->ahead_ms);
}

void show_add_date (struct cmd *cmd, const struct ident *id, json_t *o)
{
    struct id_epoch epoch;
    char date[DATE_SIZE];

    epoch_find (&epoch, cmd, NULL);
    if (epoch.ms >= 0)
        json_object_set_new (o, "date",
                             json_string (format_date (epoch.ms + fluid_split (ident_fluid (id)).timestamp_ms, date)));
    epoch_fini (&epoch);
}

/* --- show ------------------------------------------------------------------------------------ */

struct show {
    struct cmd *cmd;
    struct idtext_reader reader;
    const char *epoch_option, *drift_option;
    int drift;
    struct id_epoch epoch;
    int count;
};

/* If the owner of the generator grants parts of it, add the ranks that may have made the id. */
static void add_maker (struct show *show, uint32_t generator, json_t *o)
{
    const char *ranks = epoch_holders (&show->epoch, generator);
    unsigned rank = (unsigned)epoch_rank (&show->epoch, generator);

    if (!ranks)
        return;
    if (show->cmd->json)
        json_object_set_new (o, "maker", json_pack ("{s:I s:s}", "rank", (json_int_t)rank, "holders", ranks));
    else if (*ranks)
        json_object_set_new (o, "made by",
                             json_sprintf ("rank %u, or one that holds a part of it: %s now, and ranks below", rank,
                                           ranks));
    else
        json_object_set_new (o, "made by",
                             json_sprintf ("rank %u, or one below that held a part of it: none now", rank));
}

/* Add the generator and the sequence.  If ranks have several generators, add the rank that owns this one, too. */
static void add_generator (struct show *show, struct fluid_fields fields, json_t *o)
{
    json_object_set_new (o, "generator", json_integer (fields.generator));
    if (show->epoch.ranks > 0)
        json_object_set_new (o, "rank", json_integer (epoch_rank (&show->epoch, fields.generator)));
    json_object_set_new (o, "sequence", json_integer (fields.sequence));
    add_maker (show, fields.generator, o);
}

/* Add the fields for people: with units, and with the reason if there is no date. */
static void add_fluid_words (struct show *show, const struct candidate *c, json_t *o)
{
    struct fluid_fields fields = fluid_split (ident_fluid (&c->id));
    double error_ms = epoch_error_ms (&show->epoch, fields.generator);
    char date[DATE_SIZE + 32];

    if (show->epoch.ms < 0)
        json_object_set_new (o, "date", json_sprintf ("unknown: %s", show->epoch.why.text));
    else {
        size_t len = strlen (format_date (show->epoch.ms + fields.timestamp_ms, date));

        if (error_ms >= 0)
            snprintf (date + len, sizeof (date) - len, " \u00b1 %.0f ms", ceil (error_ms));
        json_object_set_new (o, "date", json_string (date));
    }
    json_object_set_new (o, "timestamp", json_sprintf ("%" PRIu64 " ms after the epoch", fields.timestamp_ms));
    add_generator (show, fields, o);
}

static void add_fluid_fields (struct show *show, const struct candidate *c, json_t *o)
{
    struct fluid_fields fields = fluid_split (ident_fluid (&c->id));
    double error_ms = epoch_error_ms (&show->epoch, fields.generator);
    char date[DATE_SIZE];

    json_object_set_new (o, "timestamp_ms", json_sprintf ("%" PRIu64, fields.timestamp_ms));
    add_generator (show, fields, o);
    if (show->epoch.ms < 0)
        return;
    json_object_set_new (o, "date", json_string (format_date (show->epoch.ms + fields.timestamp_ms, date)));
    if (error_ms >= 0)
        json_object_set_new (o, "date_error_ms", json_real (error_ms));
}

static void add_fields (struct show *show, const struct candidate *c, json_t *o)
{
    json_t *fields = c->scheme->fields (&c->id, show->drift);
    char date[DATE_SIZE];

    json_object_set_new (o, "date", json_string (format_date (c->scheme->unix_ms (&c->id), date)));
    json_object_update (o, fields);
    json_decref (fields);
}

/* Return all fields of an id.  Numbers of JSON could hold timestamps, but not all ids, so ids are strings. */
static json_t *object_of (struct show *show, const struct candidate *c, bool certain)
{
    json_t *o = json_pack ("{s:s+}", "scheme", c->scheme->name, certain ? "" : ", perhaps");

    if (!o)
        cmd_die (show->cmd, "out of memory");
    idtext_add_forms (o, c->scheme, &c->id);
    (c->scheme->fields ? add_fields : show->cmd->json ? add_fluid_fields : add_fluid_words) (show, c, o);
    return o;
}

/* Print an object, and release it. */
static void print_new (struct show *show, json_t *o)
{
    if (show->cmd->json)
        ask_print (show->cmd, o);
    else {
        if (show->count++)
            out_print ("\n");
        out_print_members (o, "", LABEL_WIDTH, 0);
    }
    json_decref (o);
}

static void print_candidates (struct show *show, const struct candidate *candidate, int n)
{
    json_t *all = json_array ();

    for (int i = 0; i < n; i++) {
        if (show->cmd->json && n > 1)
            json_array_append_new (all, object_of (show, &candidate[i], true));
        else
            print_new (show, object_of (show, &candidate[i], n == 1));
    }
    if (json_array_size (all) > 0)
        print_new (show, json_pack ("{s:O}", "candidates", all));
    json_decref (all);
}

static void show_docid (struct show *show, uint64_t line, const char *s, const struct docid *id)
{
    idt_error_t error;
    json_t *o = docid_describe_new (show->cmd, id, &error);

    if (o)
        print_new (show, o);
    else {
        char what[sizeof (error.text) + 16];

        snprintf (what, sizeof (what), "is not known: %s", error.text);
        idtext_warn_of (&show->reader, line, s, strlen (s), what);
    }
}

static void show_cb (void *arg, uint64_t line, const char *s, size_t len)
{
    struct show *show = arg;
    struct candidate candidate[SCHEME_COUNT];
    struct docid docid;

    if (!show->reader.scheme && docid_parse (s, len, &docid) == 0) {
        show_docid (show, line, s, &docid);
        return;
    }
    int n = idtext_read (&show->reader, s, len, candidate);
    if (n == 0)
        idtext_warn (&show->reader, line, s, len, NULL, 0, errno);
    else
        print_candidates (show, candidate, n);
}

static int run (struct cmd *cmd)
{
    struct show show = { .cmd = cmd, .reader = { .cmd = cmd, .warnings_max = UINT64_MAX } };

    cmd_options (cmd, &show);
    show.drift = idtext_drift (cmd, show.drift_option);
    epoch_find (&show.epoch, cmd, show.epoch_option);
    idtext_each (&show.reader, show_cb, &show);
    epoch_fini (&show.epoch);
    return idtext_end (&show.reader);
}

#define AT(member) offsetof (struct show, member)

static const struct cmd_option options[] = {
    { 'e', "epoch", "DATE", "fluid: epoch, as 2026-11-21 or 2026-11-21T10:11:12.345Z", cmd_take_text,
      AT (epoch_option) },
    { CMD_LETTERS (0, 's'), "scheme", "SCHEME", "fluid, flax, sno or uid (default: all that fit)", idtext_take_scheme,
      AT (reader.scheme) },
    { 0, "drift", "N", "uid: drift bits of the ids, 5 to 10 (default 8)", cmd_take_text, AT (drift_option) },
    CMD_OPTIONS_END,
};

const struct command id_show_command = {
    .name = "id show",
    .operands = "ID...|-",
    .flags = CMD_CONNECTS,
    .summary = "Show the fields of ids of any form; - reads them from stdin, one a line",
    .details = "A text that can be of several schemes is shown as an id of each.  The date of a fluid "
               "needs\n--epoch, or an instance that answers with its epoch; then it is shown with its largest "
               "error,\nby the instance's clocks now.  DOCUMENT:ID and DOCUMENT:UUID are ids of a document of the "
               "id\ncompressor that is open on the broker's rank.  The generator of a fluid is its rank; if "
               "ranks\nhave several (fluid.lanes) the instance is asked for the owner.  If the owner grants "
               "parts\nof its generator (fluid.share), a rank that holds one may have made the id.",
    .example = "idtree id show --epoch 2026-11-21 fuZZybuNNy",
    .json = "one object a line",
    .options = options,
    .run = run,
};

/* --- range ----------------------------------------------------------------------------------- */

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

/* Limit a date to the dates that ids of the instance can have.  If the date is changed, print a warning. */
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

static void print_keys (const struct range_options *o, const struct ident *lower, const struct ident *upper)
{
    int form = o->form ? idtext_form (o->cmd, o->scheme, o->form) : o->scheme->usual;
    char a[SCHEME_TEXT_MAX], b[SCHEME_TEXT_MAX];

    o->scheme->write (lower, form, a);
    o->scheme->write (upper, form, b);
    out_print (o->cmd->json ? "{\"lower\":\"%s\",\"upper\":\"%s\"}\n" : "%s\n%s\n", a, b);
}

static void find_keys (const struct range_options *o)
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
    print_keys (o, &lower, &upper);
}

static int run_range (struct cmd *cmd)
{
    struct range_options o = { .cmd = cmd, .scheme = scheme_find ("fluid") };

    cmd_options (cmd, &o);
    find_keys (&o);
    return CMD_OK;
}

#define RANGE_AT(member) offsetof (struct range_options, member)

static const struct cmd_option range_options[] = {
    { 0, "from", "DATE", "begin, as " DATE_EXAMPLE, cmd_take_text, RANGE_AT (from) },
    { 0, "to", "DATE", "end, not included", cmd_take_text, RANGE_AT (to) },
    { CMD_LETTERS (0, 's'), "scheme", "SCHEME", "fluid, flax, sno or uid (default fluid)", idtext_take_scheme,
      RANGE_AT (scheme) },
    { 'F', "format", "FORM", "of the keys: as of idtree id convert", cmd_take_text, RANGE_AT (form) },
    { 'e', "epoch", "DATE", "fluid: epoch of the timestamps (default: from the instance)", cmd_take_text,
      RANGE_AT (epoch) },
    { 0, "drift", "N", "uid: drift bits, 5 to 10 (default 8)", cmd_take_text, RANGE_AT (drift) },
    { 0, "kind", "KIND", "uid: local or global (default global)", cmd_take_text, RANGE_AT (kind) },
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
    .options = range_options,
    .run = run_range,
};
