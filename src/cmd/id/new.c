/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* new.c - idtree id new: get ids from the instance, or make them
 *
 * A large number of ids is requested in pieces, of which a few are in flight at any time, and printed in the order of
 * the requests.  The ids of a connection strictly increase only from one answer to the next request, so the pieces of a
 * window may interleave in time, but never repeat.  --follow gets its ids in order, and so one piece at a time.
 *
 * --follow serves a coprocess.  A line of stdin is the number of ids to make; an empty line is 1.  Lines that arrive
 * together are served together, and all ids are written before the program waits again, so that the requester can read
 * them.  No more ids are made than were requested.  The reader of stdout may close it while no request arrives, so
 * stdout is polled as well as stdin.  SIGPIPE would end the program, too, but not with status 0.
 */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <jansson.h>

#include <idtree/generate.h>

#include "cmd/base/ask.h"
#include "cmd/base/cmd.h"
#include "cmd/base/input.h"
#include "cmd/base/out.h"
#include "cmd/id/scheme.h"
#include "cmd/id/text.h"
#include "cmd/id/way.h"
#include "libutil/clock.h"
#include "libutil/duration.h"

#define WINDOW 4 /* pieces in flight */
#define COUNT_MAX UINT64_C (1000000000000)
#define OUTPUT_BUFFER (256 * 1024) /* bytes */
#define FORMS_MAX 8
#define NAMED_MAX (UINT32_C (1) << 28) /* fingerprints of names are lower, also the legacy ones */
#define FOLLOW_CHUNK (64 * 1024)       /* bytes of a read: the size of a pipe's buffer */

struct new_options {
    struct cmd *cmd;
    const struct scheme *scheme;
    uint64_t count; /* 0: not given */
    bool follow;
    uint32_t rank; /* IDT_NODEID_ANY: not given */
    bool local;
    bool generator;
    bool trace;
    const char *spans; /* NULL: not given */
    const char *form_name[FORMS_MAX];
    int form[FORMS_MAX]; /* numbers of the scheme's forms */
    int nforms;
    /* NULL: not given */
    const char *meta;
    const char *partition;
    const char *node;
    const char *fingerprint;
    const char *drift;
    const char *kind;
};

/* --- ids that this program makes ------------------------------------------------------------- */

/* Makes ids of flax, sno or uid in this process: unique within a generator.  It makes no ids in the time step in which
 * it began, so that successive programs do not make the same ids unless the clock is set back.
 */
struct new_maker {
    int (*make) (struct new_maker *m, struct ident *id);
    struct flax_gen *flax;
    struct sno_gen *sno;
    uint8_t meta;
    struct uid_gen *uid;
    enum uid_kind kind;
    struct uid_codec codec;
};

static uint32_t number (const struct new_options *o, const char *what, const char *s, uint32_t otherwise, uint32_t max)
{
    return s ? cmd_number (o->cmd, what, s, 0, max) : otherwise;
}

/* 64 random bits, which tell processes apart on any hosts. */
static uint64_t random_bits (const struct new_options *o)
{
    uint64_t bits;

    while (getrandom (&bits, sizeof (bits), 0) != sizeof (bits))
        if (errno != EINTR)
            cmd_die (o->cmd, "cannot draw random bits: %s", strerror (errno));
    return bits;
}

static int make_flax (struct new_maker *m, struct ident *id)
{
    id->size = FLAX_SIZE;
    return flax_gen_make (m->flax, &id->flax);
}

static int open_flax (struct new_maker *m, const struct new_options *o)
{
    m->make = make_flax;
    return (m->flax = flax_gen_create (&(struct flax_gen_config){ .mode = FLAX_INCREASING })) ? 0 : -1;
}

static int make_sno (struct new_maker *m, struct ident *id)
{
    id->size = SNO_SIZE;
    return sno_gen_make (m->sno, m->meta, -1, &id->sno);
}

static int open_sno (struct new_maker *m, const struct new_options *o)
{
    struct sno_snapshot start = { 0 };
    uint64_t unit;

    m->make = make_sno;
    m->meta = number (o, "meta", o->meta, 0, SNO_META_MAX);
    if (sno_unit_at ((int64_t)clock_ns (CLOCK_REALTIME), &unit) < 0)
        return -1;
    /* The default partition is random: two makers at the same time have the same one with a probability of 1 in 65,536.
     */
    start.partition = number (o, "partition", o->partition, (uint32_t)random_bits (o) & SNO_PARTITION_MAX,
                              SNO_PARTITION_MAX);
    if (sno_snapshot_raise (&start, unit + 1) < 0)
        return -1;
    return (m->sno = sno_gen_create (&(struct sno_gen_config){ .start = start })) ? 0 : -1;
}

static int make_uid (struct new_maker *m, struct ident *id)
{
    struct uid uid;
    int size;

    if (uid_gen_make (m->uid, m->kind, -1, &uid) < 0
        || (size = uid_to_bytes (&uid, &m->codec, id->bytes, sizeof (id->bytes))) < 0)
        return -1;
    id->size = size;
    return 0;
}

/* Whether a fingerprint belongs neither to a name nor to the number of a rank (uid_fingerprint (), uid_node_numbered
 * ()).
 */
static bool is_free (uint32_t fingerprint)
{
    uint32_t first = uid_node_numbered (0).fingerprint;

    return fingerprint > NAMED_MAX && (fingerprint < first || fingerprint > first + UID_NUMBER_MAX);
}

/* Draw a random fingerprint.  A process id and a host name would not do: they are the same in many containers. */
static uint32_t draw_fingerprint (const struct new_options *o)
{
    uint32_t fingerprint;

    do
        fingerprint = (uint32_t)random_bits (o);
    while (!is_free (fingerprint));
    return fingerprint;
}

static struct uid_node find_node (const struct new_options *o)
{
    if (o->node && o->fingerprint)
        cmd_usage (o->cmd, "--node and --fingerprint exclude each other");
    if (o->fingerprint)
        return (struct uid_node){ .fingerprint = number (o, "fingerprint", o->fingerprint, 0, UINT32_MAX) };
    if (o->node)
        return uid_node_named (o->node);
    return (struct uid_node){ .fingerprint = draw_fingerprint (o) };
}

static int open_uid (struct new_maker *m, const struct new_options *o)
{
    const struct uid_gen_config config = { .node = find_node (o),
                                           .after_us = (int64_t)clock_ns (CLOCK_REALTIME) / 1000 };

    m->make = make_uid;
    m->kind = idtext_kind (o->cmd, o->kind);
    m->codec.drift = idtext_drift (o->cmd, o->drift);
    return (m->uid = uid_gen_create (&config)) ? 0 : -1;
}

static void die (const struct new_options *o)
{
    if (errno == EOVERFLOW)
        cmd_die (o->cmd, "the dates of %s go from %s to %s: set the clock", o->scheme->name, o->scheme->from,
                 o->scheme->until);
    cmd_die (o->cmd, "cannot make ids: %s", strerror (errno));
}

/* Ends the program if an option is invalid, or the clock's date is outside of the scheme's range. */
static struct new_maker *new_maker_create (const struct new_options *o)
{
    static const struct {
        const char *scheme;
        int (*open) (struct new_maker *m, const struct new_options *o);
    } kinds[] = { { "flax", open_flax }, { "sno", open_sno }, { "uid", open_uid } };
    struct new_maker *m = calloc (1, sizeof (*m));

    if (!m)
        die (o);
    for (size_t i = 0; i < sizeof (kinds) / sizeof (kinds[0]); i++)
        if (!strcmp (kinds[i].scheme, o->scheme->name) && kinds[i].open (m, o) < 0)
            die (o);
    return m;
}

static void new_maker_destroy (struct new_maker *m)
{
    if (!m)
        return;
    flax_gen_destroy (m->flax);
    sno_gen_destroy (m->sno);
    uid_gen_destroy (m->uid);
    free (m);
}

/* Make an id.  Waits for the next time step if the current one is used up. */
static void new_make (struct new_maker *m, const struct new_options *o, struct ident *id)
{
    if (m->make (m, id) < 0)
        die (o);
}

/* --- ids of the instance --------------------------------------------------------------------- */

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
static void give (struct new *new, uint64_t count)
{
    (new->maker ? make : generate) (new, count);
}

/* --- follow ---------------------------------------------------------------------------------- */

struct follow {
    struct new *new;
    uint64_t wanted;
    uint64_t bad_line; /* 0: none */
    char bad[CMD_QUOTE_MAX];
};

static void take_follow_line (void *arg, uint64_t line, const char *s, size_t len)
{
    struct follow *f = arg;
    uint64_t n = 1;

    if (f->bad_line > 0)
        return;
    if (len == 0 || (strlen (s) == len && parse_number (s, 1, COUNT_MAX, &n) == 0)) {
        f->wanted += n;
        return;
    }
    f->bad_line = line;
    cmd_quote (s, len, f->bad);
}

static bool reader_is_gone (void)
{
    struct pollfd out = { .fd = STDOUT_FILENO };

    return poll (&out, 1, 0) == 1 && out.revents & (POLLERR | POLLHUP);
}

/* End without writing the buffer, as stdout has no reader. */
__attribute__ ((noreturn)) static void end_quietly (void)
{
    _exit (CMD_OK);
}

static void write_out (const struct cmd *cmd)
{
    idt_error_t why;

    if (out_flush (stdout, &why) == 0)
        return;
    if (reader_is_gone ())
        end_quietly ();
    cmd_die (cmd, "cannot write: %s", why.text);
}

static void serve (struct follow *f)
{
    const struct cmd *cmd = f->new->o.cmd;

    if (f->wanted > 0)
        give (f->new, f->wanted);
    f->wanted = 0;
    write_out (cmd);
    if (f->bad_line > 0)
        cmd_die (cmd, "line %" PRIu64 ": '%s': a number from 1 to %" PRIu64 " is needed, or nothing for 1", f->bad_line,
                 f->bad, COUNT_MAX);
}

/* Returns the number of bytes, 0 at the end. */
static size_t read_some (const struct cmd *cmd, char *data)
{
    struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .fd = STDOUT_FILENO } };
    ssize_t n;

    do {
        if (poll (fds, 2, -1) >= 0 && fds[1].revents & (POLLERR | POLLHUP))
            end_quietly ();
        n = read (STDIN_FILENO, data, FOLLOW_CHUNK);
    } while (n < 0 && (errno == EINTR || errno == EAGAIN));
    if (n < 0)
        cmd_die (cmd, "cannot read stdin: %s", strerror (errno));
    return n;
}

/* Serve the lines of stdin until it ends or stdout has no reader any longer: the latter ends the program immediately
 * with CMD_OK.  At a line that is not a number it ends the program with a message, after it has served all lines
 * before.
 */
static void follow (struct new *new)
{
    struct follow f = { .new = new };
    struct lines lines = { .take = take_follow_line, .arg = &f };
    char data[FOLLOW_CHUNK];
    size_t n;

    signal (SIGPIPE, SIG_IGN);
    while ((n = read_some (new->o.cmd, data)) > 0) {
        lines_add (&lines, data, n);
        serve (&f);
    }
    lines_end (&lines);
    serve (&f);
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

    if (o->nforms == FORMS_MAX)
        cmd_usage (cmd, "more than %d forms", FORMS_MAX);
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
        follow (&new);
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
