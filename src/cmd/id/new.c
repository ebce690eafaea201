/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* new.c - idtree id new: get ids from the instance, or make them
 *
 * A large number of ids is requested in pieces, of which a few are in flight at any time, and printed in the order of
 * the requests.  The ids of a connection strictly increase only from one answer to the next request, so the pieces of a
 * window may interleave in time, but never repeat.  --follow gets its ids in order, and so one piece at a time.
 */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <idtree/generate.h>

#include "cmd/base/ask.h"
#include "cmd/base/cmd.h"
#include "cmd/id/follow.h"
#include "cmd/id/new.h"
#include "cmd/id/text.h"
#include "cmd/id/way.h"

#define WINDOW 4 /* pieces in flight */
#define COUNT_MAX UINT64_C (1000000000000)
#define OUTPUT_BUFFER (256 * 1024) /* bytes */

struct id_request {
    idt_future_t *f;
    uint32_t n;
};

struct new
{
    struct new_options o;
    bool fluid;
    fluid_t *fluids;         /* buffer for a piece */
    unsigned window;         /* largest number of pieces in flight */
    struct new_maker *maker; /* NULL: the instance makes them */
};

/* --- output ----------------------------------------------------------------------------------- */

static uint32_t generator_of (const struct ident *id)
{
    return fluid_split (ident_fluid (id)).generator;
}

static void print_text (const struct new_options *o, const struct ident *id)
{
    char buf[SCHEME_TEXT_MAX];

    for (int i = 0; i < o->nforms; i++) {
        if (i > 0)
            putchar_unlocked ('\t');
        fwrite_unlocked (buf, 1, o->scheme->write (id, o->form[i], buf), stdout);
    }
    if (o->generator)
        printf ("\t%" PRIu32, generator_of (id));
    putchar_unlocked ('\n');
}

/* The text of an id needs no escaping. */
static void print_json (const struct new_options *o, const struct ident *id)
{
    const struct scheme *scheme = o->scheme;
    char buf[SCHEME_TEXT_MAX];

    putchar_unlocked ('{');
    for (int i = 0; i < o->nforms; i++) {
        scheme->write (id, o->form[i], buf);
        printf ("%s\"%s\":\"%s\"", i > 0 ? "," : "", scheme->forms[o->form[i]], buf);
    }
    if (o->generator)
        printf (",\"generator\":%" PRIu32, generator_of (id));
    fputs_unlocked ("}\n", stdout);
}

static void print (const struct new_options *o, const struct ident *id)
{
    (o->cmd->json ? print_json : print_text) (o, id);
}

/* --- requests --------------------------------------------------------------------------------- */

/* The request of idt_fluid_generate_async (), but to a given rank: u32 count, u64 after. */
static idt_future_t *ask_rank (idt_t *h, uint32_t n, uint32_t rank)
{
    uint8_t request[12] = { 0 };
    uint32_t count = htobe32 (n);

    memcpy (request, &count, sizeof (count));
    return idt_rpc_raw (h, "fluid.block", request, sizeof (request), rank, 0);
}

static idt_future_t *ask_fluids (struct new *new, uint32_t n)
{
    ask_note (new->o.cmd, "fluid.generate", new->o.rank);
    return new->o.rank == IDT_NODEID_ANY ? idt_fluid_generate_async (new->o.cmd->h, n)
                                         : ask_rank (new->o.cmd->h, n, new->o.rank);
}

static idt_future_t *ask_others (struct new *new, uint32_t n)
{
    const struct new_options *o = &new->o;
    char topic[32];
    json_t *request = json_pack ("{s:I}", "count", (json_int_t)n);

    if (!request)
        cmd_die (new->o.cmd, "out of memory");
    if (o->meta)
        json_object_set_new (request, "meta", json_integer (cmd_number (new->o.cmd, "meta", o->meta, 0, 255)));
    if (o->drift)
        json_object_set_new (request, "drift", json_integer (idtext_drift (new->o.cmd, o->drift)));
    snprintf (topic, sizeof (topic), "%s.generate", o->scheme->name);
    return ask_send (new->o.cmd, topic, o->rank, request);
}

/* Send the request for one more piece of the 'left' ids that were not requested yet. */
static struct id_request ask (struct new *new, uint64_t left)
{
    struct id_request p = { .n = left < IDT_FLUID_MAX_COUNT ? left : IDT_FLUID_MAX_COUNT };

    p.f = (new->fluid ? ask_fluids : ask_others) (new, p.n);
    return p;
}

static void take_fluids (struct new *new, struct id_request *p, const char *what)
{
    if (idt_fluid_generate_get (p->f, p->n, new->fluids) < 0)
        cmd_die (new->o.cmd, "%s: %s", what, strerror (errno));
    for (uint32_t i = 0; i < p->n; i++) {
        struct ident id = ident_of_fluid (new->fluids[i]);

        print (&new->o, &id);
    }
}

static void take_others (struct new *new, struct id_request *p, const char *what)
{
    json_t *ids;

    if (idt_rpc_get_unpack (p->f, "{s:o}", "ids", &ids) < 0)
        cmd_die (new->o.cmd, "%s: %s", what, strerror (errno));
    if (json_array_size (ids) != p->n)
        cmd_die (new->o.cmd, "%s: %zu ids arrived instead of %" PRIu32, what, json_array_size (ids), p->n);
    for (uint32_t i = 0; i < p->n; i++) {
        json_t *text = json_array_get (ids, i);
        struct ident id;

        if (!json_is_string (text)
            || new->o.scheme->read (json_string_value (text), json_string_length (text), &id) < 0)
            cmd_die (new->o.cmd, "%s: the answer contains a value that is not an id of %s", what, new->o.scheme->name);
        print (&new->o, &id);
    }
}

static void take (struct new *new, struct id_request *p)
{
    char what[64] = "the broker gave no ids";

    if (new->o.rank != IDT_NODEID_ANY)
        snprintf (what, sizeof (what), "rank %" PRIu32 " gave no ids", new->o.rank);
    ask_wait (new->o.cmd, p->f, what);
    (new->fluid ? take_fluids : take_others) (new, p, what);
    idt_future_destroy (p->f);
}

static void generate (struct new *new, uint64_t count)
{
    struct id_request pieces[WINDOW];
    uint64_t asked = 0, taken = 0;
    unsigned head = 0, tail = 0;

    while (taken < count && !ferror (stdout)) {
        for (; asked < count && head - tail < new->window; head++) {
            pieces[head % WINDOW] = ask (new, count - asked);
            asked += pieces[head % WINDOW].n;
        }
        struct id_request *p = &pieces[tail++ % WINDOW];
        take (new, p);
        taken += p->n;
    }
    while (tail != head)
        idt_future_destroy (pieces[tail++ % WINDOW].f);
}

static void make (struct new *new, uint64_t count)
{
    struct ident id;

    for (uint64_t i = 0; i < count && !ferror_unlocked (stdout); i++) {
        new_make (new->maker, &new->o, &id);
        print (&new->o, &id);
    }
}

/* Print 'count' new ids, or fewer if they cannot be written. */
static void give (void *arg, uint64_t count)
{
    struct new *new = arg;

    (new->maker ? make : generate) (new, count);
}

/* --- options ---------------------------------------------------------------------------------- */

static void take_count (struct cmd *cmd, const char *arg, void *to)
{
    *(uint64_t *)to = cmd_number (cmd, "count", arg, 1, COUNT_MAX);
}

/* 'to' is the struct new_options, as there may be several forms. */
static void take_form (struct cmd *cmd, const char *arg, void *to)
{
    struct new_options *o = to;

    if (o->nforms == NEW_FORMS_MAX)
        cmd_usage (cmd, "more than %d forms", NEW_FORMS_MAX);
    o->form_name[o->nforms++] = arg;
}

static void check_fits (const struct new_options *o, bool given, const char *option, const char *scheme, bool here_only)
{
    if (given && strcmp (o->scheme->name, scheme))
        cmd_usage (o->cmd, "--%s needs --scheme %s", option, scheme);
    if (given && here_only && !o->local)
        cmd_usage (o->cmd, "--%s needs --local: in an instance each rank has its own", option);
}

static void check_options (struct new_options *o)
{
    check_fits (o, o->generator, "generator", "fluid", false);
    check_fits (o, o->meta, "meta", "sno", false);
    check_fits (o, o->partition, "partition", "sno", true);
    check_fits (o, o->node, "node", "uid", true);
    check_fits (o, o->fingerprint, "fingerprint", "uid", true);
    check_fits (o, o->kind, "kind", "uid", true);
    check_fits (o, o->drift, "drift", "uid", false);
    if (o->follow && o->count > 0)
        cmd_usage (o->cmd, "--follow and a count exclude each other: each line of stdin is a count");
    if ((o->trace || o->spans) && (o->follow || o->local || strcmp (o->scheme->name, "fluid") != 0))
        cmd_usage (o->cmd, "--trace needs one request for ids of scheme fluid: leave out --follow, --local, --scheme");
    if ((o->trace || o->spans) && o->count > IDT_FLUID_MAX_COUNT)
        cmd_usage (o->cmd, "--trace needs one request, which is for %d ids at most", IDT_FLUID_MAX_COUNT);
    if (o->local && o->rank != IDT_NODEID_ANY)
        cmd_usage (o->cmd, "--local and --rank exclude each other");
    if (o->local && !strcmp (o->scheme->name, "fluid"))
        cmd_usage (o->cmd, "a fluid is unique only under a lease of time, which a broker holds: leave out --local, "
                           "or choose another --scheme");
    for (int i = 0; i < o->nforms; i++)
        o->form[i] = idtext_form (o->cmd, o->scheme, o->form_name[i]);
    if (o->nforms == 0)
        o->form[o->nforms++] = o->scheme->usual;
}

/* Connect to the instance, or make the local maker. */
static void begin (struct new *new)
{
    new->window = new->o.follow ? 1 : WINDOW;
    if (new->o.local) {
        new->maker = new_maker_create (&new->o);
        return;
    }
    if (!(new->fluids = calloc (IDT_FLUID_MAX_COUNT, sizeof (new->fluids[0]))))
        cmd_die (new->o.cmd, "out of memory");
    ask_connect_for (new->o.cmd, new->o.rank);
}

/* Send one request, and print its trace. */
static void trace (struct new *new, uint32_t count)
{
    struct way *way = way_ask (new->o.cmd, new->o.rank, count, new->fluids);

    for (uint32_t i = 0; i < count; i++) {
        struct ident id = ident_of_fluid (new->fluids[i]);

        print (&new->o, &id);
    }
    if (new->o.trace)
        way_print (new->o.cmd, way);
    if (new->o.spans)
        way_write_spans (new->o.cmd, way, new->o.spans);
    way_destroy (way);
}

/* Take the count as an operand, as in idtree id new 3. */
static void take_operand (struct new_options *o)
{
    if (o->cmd->argc == 0)
        return;
    if (o->count > 0)
        cmd_usage (o->cmd, "--count and N are both a number of ids: leave one out");
    take_count (o->cmd, o->cmd->argv[0], &o->count);
}

static int run (struct cmd *cmd)
{
    struct new new = { .o = { .cmd = cmd, .rank = IDT_NODEID_ANY, .scheme = scheme_find ("fluid") } };

    cmd_options (cmd, &new.o);
    take_operand (&new.o);
    check_options (&new.o);
    new.fluid = !strcmp (new.o.scheme->name, "fluid");
    setvbuf (stdout, NULL, _IOFBF, OUTPUT_BUFFER);
    begin (&new);
    if (new.o.follow)
        follow (cmd, COUNT_MAX, give, &new);
    else if (new.o.trace || new.o.spans)
        trace (&new, new.o.count > 0 ? (uint32_t) new.o.count : 1);
    else
        give (&new, new.o.count > 0 ? new.o.count : 1);
    new_maker_destroy (new.maker);
    free (new.fluids);
    return CMD_OK;
}

#define AT(member) offsetof (struct new_options, member)

static const struct cmd_option options[] = {
    { 'n', "count", "N", "how many (default 1)", take_count, AT (count) },
    { 'f', "follow", NULL, "serve each line of stdin immediately: a number of ids (empty: 1)", cmd_take_flag,
      AT (follow) },
    { 'r', "rank", "R", "from rank R (default: the broker of the URI)", cmd_take_rank, AT (rank) },
    { CMD_LETTERS (0, 's'), "scheme", "SCHEME", "fluid, flax, sno or uid (default fluid)", idtext_take_scheme,
      AT (scheme) },
    { 0, "local", NULL, "without an instance; not for fluid", cmd_take_flag, AT (local) },
    { 'F', "format", "FORM", "as of idtree id convert; repeated: one more column", take_form, 0 },
    { 't', "to", "FORM", NULL, take_form, 0 },
    { 'g', "generator", NULL, "fluid: a column with the generator that made the id", cmd_take_flag, AT (generator) },
    { 0, "trace", NULL, "fluid: print the path of the request, and its waits, to stderr", cmd_take_flag, AT (trace) },
    { 0, "spans", "FILE", "fluid: append this path to FILE as OpenTelemetry spans, a line of JSON", cmd_take_text,
      AT (spans) },
    { 0, "meta", "N", "sno: the meta byte, 0 to 255 (default 0)", cmd_take_text, AT (meta) },
    { 0, "partition", "N", "sno, --local: 0 to 65535 (default: random)", cmd_take_text, AT (partition) },
    { 0, "node", "NAME", "uid, --local: the node's name (default: a random fingerprint)", cmd_take_text, AT (node) },
    { 0, "fingerprint", "N", "uid, --local: the node's 32 bits instead of a name", cmd_take_text, AT (fingerprint) },
    { 0, "kind", "KIND", "uid, --local: local or global (default global)", cmd_take_text, AT (kind) },
    { 0, "drift", "N", "uid: drift bits, 5 to 10 (default 8)", cmd_take_text, AT (drift) },
    CMD_OPTIONS_END,
};

const struct command id_new_command = {
    .name = "id new",
    .operands = "[N]",
    .flags = CMD_CONNECTS,
    .summary = "Get new ids from the instance, one a line (default: in F58)",
    .example = "idtree id new -n 3 -F f58 -F words",
    .json = "one object a line",
    .options = options,
    .run = run,
};
