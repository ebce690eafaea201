/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* submit.c - idtree job submit: submit a jobspec one or many times, and print the ids
 *
 * A window (window.h) decides which submission is sent when.  An id is printed when its job is durable, and the ids of
 * all earlier submissions were printed.  Until then the answer to submission number N is kept in slots[N % room].
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <idtree/reactor.h>

#include "cmd/base/input.h"
#include "cmd/base/out.h"
#include "cmd/job/job.h"
#include "cmd/job/window.h"
#include "libjob/sign.h"
#include "libutil/clock.h"
#include "libutil/minmax.h"

#define SPEC_MAX ((size_t)16 << 20) /* bytes of a jobspec */
#define IN_FLIGHT_MAX 1024
#define IN_FLIGHT_BYTES ((size_t)32 << 20) /* half of what a connection buffers */
#define URGENCY_DEFAULT 16
#define URGENCY_MAX 31
#define KEY_MAX 64 /* bytes */
#define COUNT_MAX UINT64_C (1000000000)
#define WARNINGS_MAX 10       /* most failures that get their own message */
#define PROGRESS_FROM 1000    /* jobs: progress is shown for this many and more */
#define PROGRESS_EVERY_MS 100 /* ms between two updates of the progress, at least */

struct submit;

struct slot {
    struct submit *s;
    uint64_t number;
    char id[SCHEME_TEXT_MAX];
    bool same;
    int errnum;
    idt_error_t why;
};

struct submit {
    struct cmd *cmd;
    /* options */
    uint64_t count; /* 0: not given */
    uint64_t urgency;
    const char *key, *form_name;
    bool quiet;
    int form;

    json_t *request; /* the request without its key */
    uint64_t total;
    uint32_t room;
    struct job_window *window;
    struct slot *slots;
    idt_watcher_t *timer;
    unsigned warnings;
    char last_warning[sizeof (((idt_error_t *)0)->text)];
    bool progress;
    uint64_t progress_ms;
};

static uint64_t now_ms (void)
{
    return clock_ms (CLOCK_MONOTONIC);
}

/* --- output ----------------------------------------------------------------------------------- */

static void show_progress (struct submit *s)
{
    uint64_t now = now_ms ();

    if (!s->progress || now - s->progress_ms < PROGRESS_EVERY_MS)
        return;
    s->progress_ms = now;
    out_error ("\ridtree job submit: %" PRIu64 "/%" PRIu64 " jobs are stored", window_stored (s->window), s->total);
}

static void clear_progress (const struct submit *s)
{
    if (s->progress)
        out_error ("\r\033[K");
}

/* Write the key of a submission into 'buf'.  With --count the key gets the submission's number, so that keys differ. */
static const char *key_of (const struct submit *s, uint64_t number, char buf[KEY_MAX + 1])
{
    if (s->count == 0)
        snprintf (buf, KEY_MAX + 1, "%s", s->key);
    else
        snprintf (buf, KEY_MAX + 1, "%s-%" PRIu64, s->key, number + 1);
    return buf;
}

static void print_json (const struct submit *s, const struct slot *slot)
{
    json_t *o = json_pack ("{s:s}", "id", slot->id);
    char key[KEY_MAX + 1];

    if (s->key)
        json_object_set_new (o, "key", json_string (key_of (s, slot->number, key)));
    if (slot->same)
        json_object_set_new (o, "same", json_true ());
    ask_print_new (s->cmd, o);
}

static void print_id (const struct submit *s, const struct slot *slot)
{
    if (s->quiet)
        return;
    if (s->cmd->json)
        print_json (s, slot);
    else
        out_print ("%s\n", slot->id);
}

/* Whether the job may have been stored although the request failed with this error. */
static bool is_unknown (int errnum)
{
    static const int unknown[] = { ETIMEDOUT, EHOSTUNREACH, ECONNRESET, EPIPE, ENOSYS };

    for (size_t i = 0; i < sizeof (unknown) / sizeof (unknown[0]); i++)
        if (errnum == unknown[i])
            return true;
    return false;
}

/* Print a failure, unless the last failure had the same message. */
static void warn_failed (struct submit *s, const struct slot *slot)
{
    const char *unknown = !is_unknown (slot->errnum) ? ""
                          : s->key                   ? " (it may be stored; with the same --key it is not stored twice)"
                                                     : " (it may be stored; with a --key it could be submitted again)";
    char which[32] = "";

    if (!strcmp (slot->why.text, s->last_warning) || s->warnings == WARNINGS_MAX)
        return;
    s->warnings++;
    memcpy (s->last_warning, slot->why.text, sizeof (s->last_warning));
    clear_progress (s);
    if (s->total > 1)
        snprintf (which, sizeof (which), "job %" PRIu64 ": ", slot->number + 1);
    cmd_warn (s->cmd, "%s%s%s", which, slot->why.text, unknown);
}

static void print_all_known (struct submit *s)
{
    enum window_fate fate;
    uint64_t number;

    while (window_take (s->window, &number, &fate)) {
        const struct slot *slot = &s->slots[number % s->room];

        if (fate == WINDOW_STORED)
            print_id (s, slot);
        else
            warn_failed (s, slot);
    }
    show_progress (s);
}

/* --- requests --------------------------------------------------------------------------------- */

static void answer_cb (idt_future_t *f, void *arg);

static idt_future_t *ask (struct submit *s, struct slot *slot)
{
    char key[KEY_MAX + 1];

    if (s->key && json_object_set_new (s->request, "key", json_string (key_of (s, slot->number, key))) < 0)
        cmd_die (s->cmd, "the key is not UTF-8");
    return ask_send (s->cmd, "job-ingest.submit", IDT_NODEID_ANY, json_incref (s->request));
}

static void fail (struct slot *slot, int errnum, const char *why)
{
    slot->errnum = errnum;
    snprintf (slot->why.text, sizeof (slot->why.text), "%s", why);
}

static void send_one (struct submit *s, uint64_t number)
{
    struct slot *slot = &s->slots[number % s->room];

    *slot = (struct slot){ .s = s, .number = number };
    idt_future_t *f = ask (s, slot);
    if (f && idt_future_then (f, s->cmd->timeout_ms, answer_cb, slot) == 0)
        return;
    fail (slot, errno, strerror (errno));
    idt_future_destroy (f);
    window_answered (s->window, now_ms (), number, WINDOW_FAILED);
}

/* Send and print all that is possible now.  Then end the reactor, or wait for an answer or for the end of a pause. */
static void go_on (struct submit *s)
{
    uint64_t number, now, due;

    do {
        print_all_known (s);
        now = now_ms ();
        while (window_next (s->window, now, &number))
            send_one (s, number);
        due = window_due (s->window);
    } while (due <= now);
    print_all_known (s);
    if (window_ended (s->window))
        idt_reactor_stop (idt_get_reactor (s->cmd->h));
    else if (due != UINT64_MAX) {
        idt_timer_watcher_reset (s->timer, (double)(due - now), 0);
        idt_watcher_start (s->timer);
    }
}

static enum window_fate take_answer (struct slot *slot, idt_future_t *f)
{
    const char *id = NULL;
    int same = 0;

    if (idt_future_errnum (f)) {
        fail (slot, idt_future_errnum (f), idt_future_error (f));
        return slot->errnum == EAGAIN ? WINDOW_FULL : WINDOW_FAILED;
    }
    if (idt_rpc_get_unpack (f, "{s:s s?b}", "fluid", &id, "same", &same) < 0)
        cmd_die (slot->s->cmd, "malformed answer of the broker");
    jobs_write_id (slot->s->cmd, slot->s->form, id, slot->id);
    slot->same = same;
    return WINDOW_STORED;
}

static void answer_cb (idt_future_t *f, void *arg)
{
    struct slot *slot = arg;
    struct submit *s = slot->s;

    if (window_stored (s->window) == 0)
        jobs_check_service (s->cmd, f, "cannot submit");
    window_answered (s->window, now_ms (), slot->number, take_answer (slot, f));
    idt_future_destroy (f);
    go_on (s);
}

static void pause_cb (idt_watcher_t *w, int revents, void *arg)
{
    go_on (arg);
}

/* --- the command ------------------------------------------------------------------------------ */

static void submit_all (struct submit *s)
{
    /* Connect only to a broker of idtree: a broker of Flux would take the jobs and answer with ids that idtree did not
     * make.
     */
    idt_reactor_t *r = idt_get_reactor (ask_connect_own (s->cmd));

    uint64_t patience_ms = s->cmd->timeout_ms < 0 ? UINT64_MAX : (uint64_t)s->cmd->timeout_ms;

    s->window = window_create (s->total, s->room, patience_ms);
    s->slots = calloc (s->room, sizeof (s->slots[0]));
    s->timer = idt_timer_watcher_create (r, 0, 0, pause_cb, s);
    if (!s->window || !s->slots || !s->timer)
        cmd_die (s->cmd, "out of memory");
    go_on (s);
    if (!window_ended (s->window) && idt_reactor_run (r, IDT_REACTOR_DEFAULT) < 0 && !window_ended (s->window))
        cmd_die (s->cmd, "connection lost: %s", strerror (errno));
    idt_watcher_destroy (s->timer);
    clear_progress (s);
}

/* Print a summary.  Returns the exit status. */
static int sum_up (const struct submit *s)
{
    uint64_t stored = window_stored (s->window), failed = window_failed (s->window);

    if (stored == s->total)
        return CMD_OK;
    if (s->total > 1)
        cmd_warn (s->cmd, "%" PRIu64 " of %" PRIu64 " jobs are stored; %" PRIu64 " failed%s", stored, s->total, failed,
                  stored + failed < s->total ? ", and no others were submitted after that" : "");
    return CMD_FAILED;
}

/* Return the index of "--" in the arguments, or 0 if they have none.  Must be called before getopt_long () reorders the
 * arguments.
 */
static int find_dashes (const struct cmd *cmd)
{
    for (int i = 1; i < cmd->argc; i++)
        if (!strcmp (cmd->argv[i], "--"))
            return i;
    return 0;
}

/* Whether the operands are a command: they were behind "--", which was argv[dashes]. */
static bool is_command (const struct cmd *cmd, char **argv, int dashes)
{
    if (dashes == 0 || strcmp (cmd->argv[-1], "--"))
        return false;
    if (cmd->argv != argv + dashes + 1)
        cmd_usage (cmd, "a FILE and a command exclude each other");
    if (cmd->argc == 0)
        cmd_usage (cmd, "there is no command after --");
    return true;
}

static void check_file (const struct cmd *cmd)
{
    char quoted[CMD_QUOTE_MAX];

    if (cmd->argc > 1)
        cmd_usage (cmd, "'%s' is one argument too many: a command is written after --",
                   cmd_quote (cmd->argv[1], strlen (cmd->argv[1]), quoted));
    if (cmd->argc == 0 && isatty (STDIN_FILENO))
        cmd_usage (cmd, "missing argument: FILE, or -- and a command");
}

static void check_key (const struct submit *s)
{
    char longest[32] = "";

    if (s->count > 0)
        snprintf (longest, sizeof (longest), "-%" PRIu64, s->count);
    size_t n = s->key ? strlen (s->key) : 1;
    if (n == 0 || n + strlen (longest) > KEY_MAX)
        cmd_usage (s->cmd, "a key has 1 to %d bytes%s", KEY_MAX, s->count > 0 ? ", with the number of the job" : "");
}

static json_t *words_new (const struct cmd *cmd)
{
    json_t *words = json_array ();

    for (int i = 0; i < cmd->argc; i++) {
        char quoted[CMD_QUOTE_MAX];

        if (json_array_append_new (words, json_string (cmd->argv[i])) < 0)
            cmd_die (cmd, "'%s' is not UTF-8, as a jobspec must be",
                     cmd_quote (cmd->argv[i], strlen (cmd->argv[i]), quoted));
    }
    return words;
}

/* Make a jobspec of version 1 (Flux RFC 14, 25) for a command: one slot of one core, in the current directory, without
 * a limit of time and without an environment.  Returns the text, for free ().  Ends the program if a word of the
 * command is not UTF-8.
 */
static char *spec_of_command (const struct cmd *cmd)
{
    char cwd[PATH_MAX];

    if (!getcwd (cwd, sizeof (cwd)))
        cmd_die (cmd, "the working directory: %s", strerror (errno));
    json_t *spec = json_pack ("{s:i s:[{s:s s:i s:s s:[{s:s s:i}]}] s:[{s:o s:s s:{s:i}}] s:{s:{s:i s:s}}}", //
                              "version", 1,                                                                  //
                              "resources", "type", "slot", "count", 1, "label", "task",                      //
                              "with", "type", "core", "count", 1,                                            //
                              "tasks", "command", words_new (cmd), "slot", "task",                           //
                              "count", "per_slot", 1,                                                        //
                              "attributes", "system", "duration", 0, "cwd", cwd);
    char *text = spec ? json_dumps (spec, JSON_COMPACT) : NULL;

    if (!text)
        cmd_die (cmd, "the working directory has a name that is not UTF-8, as a jobspec must be");
    json_decref (spec);
    return text;
}

static char *make_spec (const struct cmd *cmd, bool command, size_t *size)
{
    if (!command) {
        check_file (cmd);
        return input_read (cmd, input_path (cmd, 0), "a jobspec", SPEC_MAX, size);
    }
    char *spec = spec_of_command (cmd);
    *size = strlen (spec);
    return spec;
}

static void make_request (struct submit *s, bool command)
{
    size_t size;
    char *spec = make_spec (s->cmd, command, &size), *j = job_sign_wrap (spec, size, geteuid ());

    if (!j || !(s->request = json_pack ("{s:s s:I s:i}", "J", j, "urgency", (json_int_t)s->urgency, "flags", 0)))
        cmd_die (s->cmd, "out of memory");
    s->room = (uint32_t)max_u64 (1, min_u64 (min_u64 (IN_FLIGHT_MAX, s->total), IN_FLIGHT_BYTES / (strlen (j) + 1)));
    free (j);
    free (spec);
}

static int run (struct cmd *cmd)
{
    struct submit s = { .cmd = cmd, .urgency = URGENCY_DEFAULT };
    int dashes = find_dashes (cmd);
    char **argv = cmd->argv;

    cmd_options (cmd, &s);
    s.form = jobs_form (cmd, s.form_name);
    s.total = s.count > 0 ? s.count : 1;
    s.progress = s.total >= PROGRESS_FROM && isatty (STDERR_FILENO) && (s.quiet || !isatty (STDOUT_FILENO));
    check_key (&s);
    make_request (&s, is_command (cmd, argv, dashes));
    submit_all (&s);
    int status = sum_up (&s);
    window_destroy (s.window);
    free (s.slots);
    json_decref (s.request);
    return status;
}

/* --- options ---------------------------------------------------------------------------------- */

static void take_count (struct cmd *cmd, const char *arg, void *to)
{
    *(uint64_t *)to = cmd_number (cmd, "count", arg, 1, COUNT_MAX);
}

/* Take an urgency as a number, or as a name that Flux has for one. */
static void take_urgency (struct cmd *cmd, const char *arg, void *to)
{
    uint64_t *urgency = to;

    if (!strcmp (arg, "hold"))
        *urgency = 0;
    else if (!strcmp (arg, "default"))
        *urgency = URGENCY_DEFAULT;
    else if (!strcmp (arg, "expedite"))
        *urgency = URGENCY_MAX;
    else
        *urgency = cmd_number (cmd, "urgency", arg, 0, URGENCY_MAX);
}

#define AT(member) offsetof (struct submit, member)

static const struct cmd_option options[] = {
    { 'n', "count", "N", "submit it N times (default 1)", take_count, AT (count) },
    { CMD_LETTERS (0, 'u'), "urgency", "U", "0 to 31, hold, default or expedite (default 16)", take_urgency,
      AT (urgency) },
    { 'k', "key", "KEY", "submissions with the same key are one job; with -n KEY-1 ... KEY-N", cmd_take_text,
      AT (key) },
    JOBS_FORMAT_OPTIONS (AT (form_name)),
    { 'q', "quiet", NULL, "print no ids", cmd_take_flag, AT (quiet) },
    CMD_OPTIONS_END,
};

const struct command job_submit_command = {
    .name = "job submit",
    .operands = "[FILE|- | -- COMMAND [ARG]...]",
    .flags = CMD_CONNECTS,
    .summary = "Submit a job, and print its id when it is durable",
    .details =
        "FILE is a jobspec of version 1, as JSON; without FILE it is read from stdin.  For a COMMAND a\njobspec is "
        "made: a slot of one core, in this directory, without a limit of time, without an\nenvironment.",
    .example = "idtree job submit -n 10 --key nightly -- hostname",
    .json = "one object a line",
    .options = options,
    .run = run,
};
