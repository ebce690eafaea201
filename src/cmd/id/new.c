/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* new.c - idtree id new: get ids from the instance, or make them
 *
 * A large number of ids is requested in pieces.  A few of them are in flight at any time, and the ids are printed in
 * the order of the requests.  The ids of a connection strictly increase only if each request is sent after the answer
 * to the one before it.  So the ids of pieces that are in flight together may interleave in time, but are never equal.
 * --follow gets its ids in increasing order, so it requests one piece at a time.
 *
 * --follow serves a coprocess.  A line of stdin is the number of ids to make; an empty line is 1.  Lines that arrive
 * together are served together, and all ids are written before the program waits again, so that the requester can read
 * them.  The program never makes more ids than were requested.  The reader of stdout may close it while no request
 * arrives, so the program polls stdout as well as stdin.  SIGPIPE would also end the program, but not with status 0.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <idtree/generate.h>

#include "cmd/base/ask.h"
#include "cmd/base/out.h"
#include "cmd/id/text.h"
#include "cmd/id/way.h"
#include "libfluid/block.h"
#include "libutil/clock.h"
#include "libutil/duration.h"

#define WINDOW 4 /* pieces in flight */
#define COUNT_MAX UINT64_C (1000000000000)
#define OUTPUT_BUFFER (256 * 1024) /* bytes */
#define FORMS_MAX 8
#define NAMED_MAX (UINT32_C (1) << 28) /* fingerprints of names, including legacy names, are at most this */
#define FOLLOW_CHUNK (64 * 1024)       /* bytes of a read: the size of a pipe's buffer */

struct id_maker {
    struct cmd *cmd;
    /* options */
    const struct scheme *scheme;
    uint64_t count; /* 0: not given */
    bool follow;
    uint32_t rank; /* IDT_NODEID_ANY: not given */
    bool local;
    bool generator;
    bool trace;
    const char *spans; /* a file; NULL: not given, which is also so for 'meta' ... 'kind' */
    const char *form_name[FORMS_MAX];
    int form[FORMS_MAX]; /* numbers of the scheme's forms */
    int nforms;
    const char *meta, *partition, *node, *fingerprint, *drift, *kind;

    /* ids that the instance makes */
    bool fluid;
    fluid_t *fluids; /* buffer for a piece */
    unsigned window; /* largest number of pieces in flight */

    /* ids that this program makes; 'make' is NULL if the instance makes them */
    int (*make) (struct id_maker *m, struct ident *id);
    struct flax_gen *flax;
    struct sno_gen *sno;
    uint8_t sno_meta;
    struct uid_gen *uid;
    enum uid_kind uid_kind;
    struct uid_codec codec;
};

/* --- ids that this program makes ------------------------------------------------------------- */

/* Ids are unique within a generator.  A generator makes no ids in the time step in which it begins.  So programs that
 * run one after the other do not make the same ids, unless the clock is set back.
 */

static uint32_t number (const struct id_maker *m, const char *what, const char *s, uint32_t otherwise, uint32_t max)
{
    return s ? cmd_number (m->cmd, what, s, 0, max) : otherwise;
}

/* 64 random bits.  They make ids of different processes differ, also on different hosts. */
static uint64_t random_bits (const struct id_maker *m)
{
    uint64_t bits;

    while (getrandom (&bits, sizeof (bits), 0) != sizeof (bits))
        if (errno != EINTR)
            cmd_die (m->cmd, "cannot draw random bits: %s", strerror (errno));
    return bits;
}

static int make_flax (struct id_maker *m, struct ident *id)
{
    id->size = FLAX_SIZE;
    return flax_gen_make (m->flax, &id->flax);
}

static int open_flax (struct id_maker *m)
{
    m->make = make_flax;
    return (m->flax = flax_gen_create (&(struct flax_gen_config){ .mode = FLAX_INCREASING })) ? 0 : -1;
}

static int make_sno (struct id_maker *m, struct ident *id)
{
    id->size = SNO_SIZE;
    return sno_gen_make (m->sno, m->sno_meta, -1, &id->sno);
}

static int open_sno (struct id_maker *m)
{
    struct sno_snapshot start = { 0 };
    uint64_t unit;

    m->make = make_sno;
    m->sno_meta = number (m, "meta", m->meta, 0, SNO_META_MAX);
    if (sno_unit_at ((int64_t)clock_ns (CLOCK_REALTIME), &unit) < 0)
        return -1;
    /* The default partition is random.  Two programs that make ids at the same time have the same partition with a
     * probability of 1 in 65,536.
     */
    start.partition = number (m, "partition", m->partition, (uint32_t)random_bits (m) & SNO_PARTITION_MAX,
                              SNO_PARTITION_MAX);
    if (sno_snapshot_raise (&start, unit + 1) < 0)
        return -1;
    return (m->sno = sno_gen_create (&(struct sno_gen_config){ .start = start })) ? 0 : -1;
}

static int make_uid (struct id_maker *m, struct ident *id)
{
    struct uid uid;
    int size;

    if (uid_gen_make (m->uid, m->uid_kind, -1, &uid) < 0
        || (size = uid_to_bytes (&uid, &m->codec, id->bytes, sizeof (id->bytes))) < 0)
        return -1;
    id->size = size;
    return 0;
}

/* Whether a fingerprint belongs neither to a possible name (uid_fingerprint ()), nor to the number of a rank
 * (uid_node_numbered ()).
 */
static bool is_free (uint32_t fingerprint)
{
    uint32_t first = uid_node_numbered (0).fingerprint;

    return fingerprint > NAMED_MAX && (fingerprint < first || fingerprint > first + UID_NUMBER_MAX);
}

/* Return a random fingerprint.  It is not made from the process id and the host name, because these are the same in
 * many containers.
 */
static uint32_t draw_fingerprint (const struct id_maker *m)
{
    uint32_t fingerprint;

    do
        fingerprint = (uint32_t)random_bits (m);
    while (!is_free (fingerprint));
    return fingerprint;
}

static struct uid_node find_node (const struct id_maker *m)
{
    if (m->node && m->fingerprint)
        cmd_usage (m->cmd, "--node and --fingerprint exclude each other");
    if (m->fingerprint)
        return (struct uid_node){ .fingerprint = number (m, "fingerprint", m->fingerprint, 0, UINT32_MAX) };
    if (m->node)
        return uid_node_named (m->node);
    return (struct uid_node){ .fingerprint = draw_fingerprint (m) };
}

static int open_uid (struct id_maker *m)
{
    const struct uid_gen_config config = { .node = find_node (m),
                                           .after_us = (int64_t)clock_ns (CLOCK_REALTIME) / 1000 };

    m->make = make_uid;
    m->uid_kind = idtext_kind (m->cmd, m->kind);
    m->codec.drift = idtext_drift (m->cmd, m->drift);
    return (m->uid = uid_gen_create (&config)) ? 0 : -1;
}

static void die (const struct id_maker *m)
{
    if (errno == EOVERFLOW)
        cmd_die (m->cmd, "the dates of %s go from %s to %s: set the clock", m->scheme->name, m->scheme->from,
                 m->scheme->until);
    cmd_die (m->cmd, "cannot make ids: %s", strerror (errno));
}

/* Begin to make ids of the scheme.  Ends the program if an option is invalid, or the clock's date is outside of the
 * scheme's range.
 */
static void open_maker (struct id_maker *m)
{
    static const struct {
        const char *scheme;
        int (*open) (struct id_maker *m);
    } kinds[] = { { "flax", open_flax }, { "sno", open_sno }, { "uid", open_uid } };

    for (size_t i = 0; i < sizeof (kinds) / sizeof (kinds[0]); i++)
        if (!strcmp (kinds[i].scheme, m->scheme->name) && kinds[i].open (m) < 0)
            die (m);
}

/* --- ids of the instance --------------------------------------------------------------------- */

struct id_request {
    idt_future_t *f;
    uint32_t n;
};

/* --- output ----------------------------------------------------------------------------------- */

static uint32_t generator_of (const struct ident *id)
{
    return fluid_split (ident_fluid (id)).generator;
}

static void print_text (const struct id_maker *m, const struct ident *id)
{
    char buf[SCHEME_TEXT_MAX];

    for (int i = 0; i < m->nforms; i++) {
        if (i > 0)
            putchar_unlocked ('\t');
        fwrite_unlocked (buf, 1, m->scheme->write (id, m->form[i], buf), stdout);
    }
    if (m->generator)
        printf ("\t%" PRIu32, generator_of (id));
    putchar_unlocked ('\n');
}

/* Print the forms of an id as JSON; they need no escaping. */
static void print_json (const struct id_maker *m, const struct ident *id)
{
    const struct scheme *scheme = m->scheme;
    char buf[SCHEME_TEXT_MAX];

    putchar_unlocked ('{');
    for (int i = 0; i < m->nforms; i++) {
        scheme->write (id, m->form[i], buf);
        printf ("%s\"%s\":\"%s\"", i > 0 ? "," : "", scheme->forms[m->form[i]], buf);
    }
    if (m->generator)
        printf (",\"generator\":%" PRIu32, generator_of (id));
    fputs_unlocked ("}\n", stdout);
}

static void print (const struct id_maker *m, const struct ident *id)
{
    (m->cmd->json ? print_json : print_text) (m, id);
}

/* --- requests --------------------------------------------------------------------------------- */

/* Send the request of idt_fluid_generate_async () to a given rank. */
static idt_future_t *ask_rank (idt_t *h, uint32_t n, uint32_t rank)
{
    uint8_t request[BLOCK_REQUEST_SIZE];

    block_put_request (request, n, 0);
    return idt_rpc_raw (h, "fluid.block", request, sizeof (request), rank, 0);
}

static idt_future_t *ask_fluids (struct id_maker *m, uint32_t n)
{
    ask_note (m->cmd, "fluid.generate", m->rank);
    return m->rank == IDT_NODEID_ANY ? idt_fluid_generate_async (m->cmd->h, n) : ask_rank (m->cmd->h, n, m->rank);
}

static idt_future_t *ask_others (struct id_maker *m, uint32_t n)
{
    char topic[32];
    json_t *request = json_pack ("{s:I}", "count", (json_int_t)n);

    if (!request)
        cmd_die (m->cmd, "out of memory");
    if (m->meta)
        json_object_set_new (request, "meta", json_integer (cmd_number (m->cmd, "meta", m->meta, 0, 255)));
    if (m->drift)
        json_object_set_new (request, "drift", json_integer (idtext_drift (m->cmd, m->drift)));
    snprintf (topic, sizeof (topic), "%s.generate", m->scheme->name);
    return ask_send (m->cmd, topic, m->rank, request);
}

/* Request one more piece.  'left' is the number of ids that were not requested yet. */
static struct id_request ask (struct id_maker *m, uint64_t left)
{
    struct id_request p = { .n = left < IDT_FLUID_MAX_COUNT ? left : IDT_FLUID_MAX_COUNT };

    p.f = (m->fluid ? ask_fluids : ask_others) (m, p.n);
    return p;
}

static void take_fluids (struct id_maker *m, struct id_request *p, const char *what)
{
    if (idt_fluid_generate_get (p->f, p->n, m->fluids) < 0)
        cmd_die (m->cmd, "%s: %s", what, strerror (errno));
    for (uint32_t i = 0; i < p->n; i++) {
        struct ident id = ident_of_fluid (m->fluids[i]);

        print (m, &id);
    }
}

static void take_others (struct id_maker *m, struct id_request *p, const char *what)
{
    json_t *ids;

    if (idt_rpc_get_unpack (p->f, "{s:o}", "ids", &ids) < 0)
        cmd_die (m->cmd, "%s: %s", what, strerror (errno));
    if (json_array_size (ids) != p->n)
        cmd_die (m->cmd, "%s: %zu ids arrived instead of %" PRIu32, what, json_array_size (ids), p->n);
    for (uint32_t i = 0; i < p->n; i++) {
        json_t *text = json_array_get (ids, i);
        struct ident id;

        if (!json_is_string (text) || m->scheme->read (json_string_value (text), json_string_length (text), &id) < 0)
            cmd_die (m->cmd, "%s: the answer contains a value that is not an id of %s", what, m->scheme->name);
        print (m, &id);
    }
}

static void take (struct id_maker *m, struct id_request *p)
{
    char what[64] = "the broker gave no ids";

    if (m->rank != IDT_NODEID_ANY)
        snprintf (what, sizeof (what), "rank %" PRIu32 " gave no ids", m->rank);
    ask_wait (m->cmd, p->f, what);
    (m->fluid ? take_fluids : take_others) (m, p, what);
    idt_future_destroy (p->f);
}

static void generate (struct id_maker *m, uint64_t count)
{
    struct id_request pieces[WINDOW];
    uint64_t asked = 0, taken = 0;
    unsigned head = 0, tail = 0;

    while (taken < count && !ferror (stdout)) {
        for (; asked < count && head - tail < m->window; head++) {
            pieces[head % WINDOW] = ask (m, count - asked);
            asked += pieces[head % WINDOW].n;
        }
        struct id_request *p = &pieces[tail++ % WINDOW];
        take (m, p);
        taken += p->n;
    }
    while (tail != head)
        idt_future_destroy (pieces[tail++ % WINDOW].f);
}

static void make (struct id_maker *m, uint64_t count)
{
    struct ident id;

    for (uint64_t i = 0; i < count && !ferror_unlocked (stdout); i++) {
        if (m->make (m, &id) < 0) /* if the current time step is used up, this waits for the next one */
            die (m);
        print (m, &id);
    }
}

/* Print 'count' new ids, or fewer if they cannot be written. */
static void give (struct id_maker *m, uint64_t count)
{
    (m->make ? make : generate) (m, count);
}

/* --- follow ---------------------------------------------------------------------------------- */

struct follow {
    struct id_maker *m;
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

/* End the program without writing the buffer, because nothing reads stdout. */
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
    const struct cmd *cmd = f->m->cmd;

    if (f->wanted > 0)
        give (f->m, f->wanted);
    f->wanted = 0;
    write_out (cmd);
    if (f->bad_line > 0)
        cmd_die (cmd, "line %" PRIu64 ": '%s': a number from 1 to %" PRIu64 " is needed, or nothing for 1", f->bad_line,
                 f->bad, COUNT_MAX);
}

/* Read some bytes of stdin.  Returns their number; 0 at the end. */
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

/* Serve the lines of stdin until stdin ends.  If stdout has no reader any longer, the program ends immediately with
 * CMD_OK.  If a line is not a number, all lines before it are served, then the program ends with a message.
 */
static void follow (struct id_maker *m)
{
    struct follow f = { .m = m };
    struct lines lines = { .take = take_follow_line, .arg = &f };
    char data[FOLLOW_CHUNK];
    size_t n;

    signal (SIGPIPE, SIG_IGN);
    while ((n = read_some (m->cmd, data)) > 0) {
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

/* Add a form.  'to' is the struct id_maker, because the option may be repeated. */
static void take_form (struct cmd *cmd, const char *arg, void *to)
{
    struct id_maker *m = to;

    if (m->nforms == FORMS_MAX)
        cmd_usage (cmd, "more than %d forms", FORMS_MAX);
    m->form_name[m->nforms++] = arg;
}

static void check_fits (const struct id_maker *m, bool given, const char *option, const char *scheme, bool here_only)
{
    if (given && strcmp (m->scheme->name, scheme))
        cmd_usage (m->cmd, "--%s needs --scheme %s", option, scheme);
    if (given && here_only && !m->local)
        cmd_usage (m->cmd, "--%s needs --local: in an instance each rank has its own", option);
}

static void check_options (struct id_maker *m)
{
    check_fits (m, m->generator, "generator", "fluid", false);
    check_fits (m, m->meta, "meta", "sno", false);
    check_fits (m, m->partition, "partition", "sno", true);
    check_fits (m, m->node, "node", "uid", true);
    check_fits (m, m->fingerprint, "fingerprint", "uid", true);
    check_fits (m, m->kind, "kind", "uid", true);
    check_fits (m, m->drift, "drift", "uid", false);
    if (m->follow && m->count > 0)
        cmd_usage (m->cmd, "--follow and a count exclude each other: each line of stdin is a count");
    if ((m->trace || m->spans) && (m->follow || m->local || strcmp (m->scheme->name, "fluid") != 0))
        cmd_usage (m->cmd, "--trace needs one request for ids of scheme fluid: leave out --follow, --local, --scheme");
    if ((m->trace || m->spans) && m->count > IDT_FLUID_MAX_COUNT)
        cmd_usage (m->cmd, "--trace needs one request, which is for %d ids at most", IDT_FLUID_MAX_COUNT);
    if (m->local && m->rank != IDT_NODEID_ANY)
        cmd_usage (m->cmd, "--local and --rank exclude each other");
    if (m->local && !strcmp (m->scheme->name, "fluid"))
        cmd_usage (m->cmd, "a fluid is unique only under a lease of time, which a broker holds: leave out --local, "
                           "or choose another --scheme");
    for (int i = 0; i < m->nforms; i++)
        m->form[i] = idtext_form (m->cmd, m->scheme, m->form_name[i]);
    if (m->nforms == 0)
        m->form[m->nforms++] = m->scheme->usual;
}

/* Connect to the instance, or prepare the generator of this program. */
static void begin (struct id_maker *m)
{
    m->window = m->follow ? 1 : WINDOW;
    if (m->local) {
        open_maker (m);
        return;
    }
    if (!(m->fluids = calloc (IDT_FLUID_MAX_COUNT, sizeof (m->fluids[0]))))
        cmd_die (m->cmd, "out of memory");
    ask_connect_for (m->cmd, m->rank);
}

/* Request 'count' ids, and print the path of the request. */
static void trace (struct id_maker *m, uint32_t count)
{
    struct way *way = way_ask (m->cmd, m->rank, count, m->fluids);

    for (uint32_t i = 0; i < count; i++) {
        struct ident id = ident_of_fluid (m->fluids[i]);

        print (m, &id);
    }
    if (m->trace)
        way_print (m->cmd, way);
    if (m->spans)
        way_write_spans (m->cmd, way, m->spans);
    way_destroy (way);
}

/* The count may also be an operand, as in idtree id new 3. */
static void take_operand (struct id_maker *m)
{
    if (m->cmd->argc == 0)
        return;
    if (m->count > 0)
        cmd_usage (m->cmd, "--count and N are both a number of ids: leave one out");
    take_count (m->cmd, m->cmd->argv[0], &m->count);
}

static int run (struct cmd *cmd)
{
    struct id_maker m = { .cmd = cmd, .rank = IDT_NODEID_ANY, .scheme = scheme_find ("fluid") };

    cmd_options (cmd, &m);
    take_operand (&m);
    check_options (&m);
    m.fluid = !strcmp (m.scheme->name, "fluid");
    setvbuf (stdout, NULL, _IOFBF, OUTPUT_BUFFER);
    begin (&m);
    if (m.follow)
        follow (&m);
    else if (m.trace || m.spans)
        trace (&m, m.count > 0 ? (uint32_t)m.count : 1);
    else
        give (&m, m.count > 0 ? m.count : 1);
    flax_gen_destroy (m.flax);
    sno_gen_destroy (m.sno);
    uid_gen_destroy (m.uid);
    free (m.fluids);
    return CMD_OK;
}

#define AT(member) offsetof (struct id_maker, member)

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
