/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job.c - idtree job list, show, ack, stats, watch: the jobs of rank 0
 *
 * list requests jobs in pages, and prints each page when it arrives.  So any number of jobs needs the memory of one
 * page.
 *
 * For watch, rank 0 sends a limited number of jobs in advance, and sends more after these are acknowledged.  A job is
 * acknowledged after it was printed and the output was flushed, never before.
 */
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/base/out.h"
#include "cmd/id/show.h"
#include "cmd/id/text.h"
#include "cmd/job/job.h"
#include "libutil/minmax.h"

#define USER_ENTRY_MAX 4096 /* largest entry of a user; if it is longer, the user's number is shown */
#define USER_MAX 64         /* bytes of a user's name */
#define USERS 16
#define PAGE 1000 /* most jobs of a page, and of an answer */
#define USER_WIDTH 12
#define ID_GAP 2
#define LABEL_WIDTH 14
#define STATS_WIDTH 24

/* A cached name of a user, or the user's number as text; empty: the entry is unused. */
struct jobs_user {
    uid_t userid;
    char name[USER_MAX];
};

/* The options of a command, and the state of its output. */
struct jobs {
    struct cmd *cmd;
    const char *form_name;
    int form;          /* number of the form of printed ids */
    const char *after; /* an id; NULL: not given */
    uint64_t count;    /* 0: not given */
    bool ack;
    bool no_jobspec;

    void (*print) (struct jobs *j, const json_t *job); /* prints a job as text; its id has the wanted form */
    uint64_t printed;                                  /* number of printed jobs */
    char last[SCHEME_TEXT_MAX];                        /* id of the last printed job, as rank 0 sent it */
    int id_width;                                      /* width of the first printed id */
    struct jobs_user users[USERS];                     /* a cache, because finding a name may take long */
};

#define AT(member) offsetof (struct jobs, member)
#define AFTER_OPTION                                                                              \
    {                                                                                             \
        'a', "after", "ID", "only jobs with ids above ID, in any form", cmd_take_text, AT (after) \
    }

static const struct scheme *fluid (void)
{
    return scheme_find ("fluid");
}

int jobs_form (const struct cmd *cmd, const char *name)
{
    return name ? idtext_form (cmd, fluid (), name) : fluid ()->usual;
}

/* Parse the options. */
static struct jobs begin_jobs (struct cmd *cmd)
{
    struct jobs j = { .cmd = cmd };

    cmd_options (cmd, &j);
    j.form = jobs_form (cmd, j.form_name);
    return j;
}

/* Convert the id 's' of any form to F58 in 'buf'.  Ends the program if 's' is not an id.  Returns 'buf'. */
static const char *read_id (const struct cmd *cmd, const char *s, char buf[SCHEME_TEXT_MAX])
{
    char quoted[CMD_QUOTE_MAX];
    struct ident id;

    if (fluid ()->read (s, strlen (s), &id) < 0)
        cmd_usage (cmd, "'%s' %s", cmd_quote (s, strlen (s), quoted),
                   errno == ERANGE ? "does not fit in 64 bits" : "is not an id");
    fluid ()->write (&id, fluid ()->usual, buf);
    return buf;
}

const char *jobs_write_id (const struct cmd *cmd, int form, const char *s, char buf[SCHEME_TEXT_MAX])
{
    struct ident id;

    if (!s || fluid ()->read (s, strlen (s), &id) < 0)
        cmd_die (cmd, "malformed answer of the broker: it has no id");
    fluid ()->write (&id, form, buf);
    return buf;
}

void jobs_check_service (const struct cmd *cmd, const idt_future_t *f, const char *what)
{
    ask_check_flux (cmd, f, what);
    if (f && idt_future_errnum (f) == ENOSYS)
        cmd_die (
            cmd,
            "%s: the module job-ingest is not loaded: start brokers with -o "
            "broker.modules=fluid,flake,compressor,job-ingest, or use idtree module load job-ingest, on rank 0 and "
            "on each rank where jobs are submitted",
            what);
}

/* Send a request to the service "ingest" of rank 0, and return the answer, a new reference; 'request' is stolen.  If
 * the answer is an error, end the program with "WHAT: why".
 */
static json_t *ask_jobs_new (const struct jobs *j, const char *method, json_t *request, const char *what)
{
    char topic[64];

    snprintf (topic, sizeof (topic), "ingest.%s", method);
    idt_future_t *f = ask_ready (j->cmd, ask_send (j->cmd, topic, 0, request), what);
    jobs_check_service (j->cmd, f, j->cmd->argc == 1 ? j->cmd->argv[0] : what); /* the id as the user gave it */
    return ask_take_new (j->cmd, f, what);
}

static void look_up (struct jobs_user *u, uid_t userid)
{
    struct passwd entry, *user;
    char buf[USER_ENTRY_MAX];

    u->userid = userid;
    if (getpwuid_r (userid, &entry, buf, sizeof (buf), &user) == 0 && user)
        snprintf (u->name, sizeof (u->name), "%s", user->pw_name);
    else
        snprintf (u->name, sizeof (u->name), "%" PRIu32, (uint32_t)userid);
}

/* Return the name of the job's user, or the user's number as text.  Borrowed until the next call. */
static const char *user_of (struct jobs *j, const json_t *job)
{
    uid_t userid = (uid_t)json_integer_value (json_object_get (job, "userid"));
    struct jobs_user *u = &j->users[userid % USERS];

    if (!*u->name || u->userid != userid)
        look_up (u, userid);
    return u->name;
}

/* Print a job, and keep its id as rank 0 sent it: the next page begins behind this id, or jobs up to it are
 * acknowledged.
 */
static void print_job (struct jobs *j, json_t *job)
{
    const char *received = json_string_value (json_object_get (job, "id"));
    char id[SCHEME_TEXT_MAX];

    snprintf (j->last, sizeof (j->last), "%s", received ? received : "");
    jobs_write_id (j->cmd, j->form, received, id);
    json_object_set_new (job, "id", json_string (id));
    if (j->cmd->json)
        ask_print (j->cmd, job);
    else
        j->print (j, job);
    j->printed++;
}

/* --- list ------------------------------------------------------------------------------------ */

static void print_row (const struct jobs *j, const char *id, const char *user, const char *urgency, const char *key)
{
    out_print ("%-*s %-*s %7s  %s\n", j->id_width, id, USER_WIDTH, user, urgency, key);
}

/* The number of characters of a text in UTF-8. */
static int width_of (const char *s)
{
    return (int)strlen (s) - out_pad (s, 0);
}

/* Escape a key for the terminal, because a user may choose any text as a key. */
static const char *printable (const char *key, char buf[CMD_QUOTE_MAX])
{
    for (const unsigned char *p = (const unsigned char *)key; *p; p++)
        if (*p < ' ' || *p == 0x7f)
            return cmd_quote (key, strlen (key), buf);
    return key;
}

static void print_list_row (struct jobs *j, const json_t *job)
{
    char text[32], quoted[CMD_QUOTE_MAX];
    const char *id, *key = "-";
    json_int_t urgency;

    if (json_unpack ((json_t *)job, "{s:s s:I s?s}", "id", &id, "urgency", &urgency, "key", &key) < 0)
        cmd_die (j->cmd, "malformed answer of the broker");
    if (j->printed == 0) {
        j->id_width = width_of (id) + ID_GAP;
        print_row (j, "ID", "USER", "URGENCY", "KEY");
    }
    snprintf (text, sizeof (text), "%" JSON_INTEGER_FORMAT, urgency);
    print_row (j, id, user_of (j, job), text, printable (key, quoted));
}

/* Print a page of at most 'count' jobs.  Returns whether there are more jobs. */
static bool print_page (struct jobs *j, uint64_t count)
{
    json_t *request = json_pack ("{s:I}", "count", (json_int_t)count), *answer, *job;
    size_t i;

    if (*j->last)
        json_object_set_new (request, "after", json_string (j->last));
    answer = ask_jobs_new (j, "list", request, "jobs");
    json_array_foreach (json_object_get (answer, "jobs"), i, job)
        print_job (j, job);
    bool more = i > 0 && json_is_true (json_object_get (answer, "more"));
    json_decref (answer);
    return more;
}

static int run_list (struct cmd *cmd)
{
    struct jobs j = begin_jobs (cmd);
    uint64_t count = j.count > 0 ? j.count : UINT64_MAX;

    j.print = print_list_row;
    if (j.after)
        read_id (cmd, j.after, j.last);
    while (print_page (&j, min_u64 (count - j.printed, PAGE)) && j.printed < count)
        ;
    return CMD_OK;
}

static const struct cmd_option list_options[] = {
    AFTER_OPTION,
    { 'n', "count", "N", "at most N (default: all)", cmd_take_count, AT (count) },
    JOBS_FORMAT_OPTIONS (AT (form_name)),
    CMD_OPTIONS_END,
};

const struct command job_list_command = {
    .name = "job list",
    .flags = CMD_CONNECTS,
    .summary = "List the jobs that are stored and not acknowledged, in order of their ids",
    .example = "idtree job list -n 20",
    .json = "one object a line",
    .options = list_options,
    .run = run_list,
};

/* --- show ------------------------------------------------------------------------------------- */

static void print_shown (const json_t *o)
{
    json_t *shown = json_copy ((json_t *)o), *spec = json_incref (json_object_get (o, "jobspec"));

    json_object_del (shown, "jobspec");
    out_print_members (shown, "", LABEL_WIDTH, 0);
    if (spec) {
        out_print ("jobspec\n");
        out_json (spec, JSON_INDENT (2));
        out_print ("\n");
    }
    json_decref (shown);
    json_decref (spec);
}

static int run_show (struct cmd *cmd)
{
    struct jobs j = begin_jobs (cmd);
    char id[SCHEME_TEXT_MAX];
    struct ident ident;

    read_id (cmd, cmd->argv[0], id);
    json_t *job = ask_jobs_new (&j, "get", json_pack ("{s:s}", "id", id), id), *o = json_object ();
    fluid ()->read (id, strlen (id), &ident);
    json_object_set_new (o, "id", json_string (id));
    idtext_add_forms (o, fluid (), &ident);
    show_add_date (cmd, &ident, o);
    json_object_set_new (o, "user", json_string (user_of (&j, job)));
    json_object_update_missing (o, job);
    if (cmd->json)
        ask_print (cmd, o);
    else
        print_shown (o);
    json_decref (job);
    json_decref (o);
    return CMD_OK;
}

/* --- ack -------------------------------------------------------------------------------------- */

static int run_ack (struct cmd *cmd)
{
    struct jobs j = begin_jobs (cmd);
    char id[SCHEME_TEXT_MAX];

    read_id (cmd, cmd->argv[0], id);
    json_decref (ask_jobs_new (&j, "ack", json_pack ("{s:s}", "id", id), id));
    return CMD_OK;
}

/* --- stats ------------------------------------------------------------------------------------ */

static void print_stats (json_t *stats)
{
    json_t *limits = json_incref (json_object_get (stats, "limits"));

    json_object_del (stats, "limits");
    out_print_members (stats, "", STATS_WIDTH, JSON_COMPACT);
    out_print_members (limits, "limit ", STATS_WIDTH, JSON_COMPACT);
    json_decref (limits);
}

static int run_stats (struct cmd *cmd)
{
    struct jobs j = begin_jobs (cmd);
    json_t *stats = ask_jobs_new (&j, "stats", json_object (), "jobs");

    if (cmd->json)
        ask_print (cmd, stats);
    else
        print_stats (stats);
    json_decref (stats);
    return CMD_OK;
}

const struct command job_show_command = {
    .name = "job show",
    .operands = "ID",
    .flags = CMD_CONNECTS,
    .summary = "Show a job: all forms of its id, its date, its user, its jobspec",
    .example = "idtree job show fuZZybuNNy",
    .json = "one object",
    .run = run_show,
};

const struct command job_ack_command = {
    .name = "job ack",
    .operands = "ID",
    .flags = CMD_CONNECTS | CMD_SILENT,
    .summary = "Acknowledge all jobs up to an id: they were consumed, and may be deleted",
    .example = "idtree job ack fuZZybuNNy",
    .run = run_ack,
};

const struct command job_stats_command = {
    .name = "job stats",
    .flags = CMD_CONNECTS,
    .summary = "Show the number of stored jobs, their consumers, and the limits",
    .details = "idtree module stats job-ingest shows the counters of one rank.",
    .example = "idtree job stats",
    .json = "one object",
    .run = run_stats,
};

/* --- watch ----------------------------------------------------------------------------------- */

/* Print a line: id, user, urgency, jobspec. */
static void print_watch_line (struct jobs *j, const json_t *job)
{
    json_t *spec = json_object_get (job, "jobspec");
    json_int_t urgency;
    const char *id;

    if (json_unpack ((json_t *)job, "{s:s s:I}", "id", &id, "urgency", &urgency) < 0)
        cmd_die (j->cmd, "malformed answer of the broker");
    out_print ("%s\t%s\t%" JSON_INTEGER_FORMAT, id, user_of (j, job), urgency);
    if (spec) {
        out_print ("\t");
        out_json (spec, JSON_COMPACT);
    }
    out_print ("\n");
}

static bool is_done (const struct jobs *j)
{
    return j->count > 0 && j->printed >= j->count;
}

/* Acknowledge all printed jobs to rank 0, after flushing the output. */
static void confirm (struct jobs *j, const json_t *answer)
{
    json_t *request = json_pack ("{s:s s:O}", "id", j->last, "watch", json_object_get (answer, "watch"));

    cmd_flush (j->cmd);
    if (!request)
        cmd_die (j->cmd, "malformed answer of the broker");
    if (!j->ack)
        json_object_set_new (request, "keep", json_true ());
    json_decref (ask_jobs_new (j, "ack", request, j->last));
}

/* Take an answer of rank 0.  An answer without jobs means that rank 0 has sent all jobs that it has now. */
static void take (struct jobs *j, const json_t *answer)
{
    json_t *jobs = json_object_get (answer, "jobs");
    size_t i;

    for (i = 0; i < json_array_size (jobs) && !is_done (j); i++)
        print_job (j, json_array_get (jobs, i));
    if (i > 0)
        confirm (j, answer);
}

static idt_future_t *begin (struct jobs *j)
{
    json_t *request = json_pack ("{s:b}", "jobspec", !j->no_jobspec);
    char after[SCHEME_TEXT_MAX];

    if (j->after)
        json_object_set_new (request, "after", json_string (read_id (j->cmd, j->after, after)));
    return ask_stream (j->cmd, "ingest.watch", 0, request);
}

static int run_watch (struct cmd *cmd)
{
    struct jobs j = begin_jobs (cmd);
    idt_future_t *f = begin (&j);
    bool first = true;
    json_t *answer;

    j.print = print_watch_line;
    for (; !is_done (&j); idt_future_reset (f)) {
        jobs_check_service (cmd, first ? ask_ready (cmd, f, "jobs") : ask_next (cmd, f, "jobs"), "jobs");
        first = false;
        ask_wait (cmd, f, "jobs");
        if (idt_rpc_get_unpack (f, "o", &answer) < 0)
            cmd_die (cmd, "malformed answer of the broker");
        take (&j, answer);
    }
    idt_future_destroy (f);
    return CMD_OK;
}

static const struct cmd_option watch_options[] = {
    AFTER_OPTION,
    { 'n', "count", "N", "end after N jobs (default: until interrupted)", cmd_take_count, AT (count) },
    { 0, "ack", NULL, "acknowledge printed jobs: they may be deleted", cmd_take_flag, AT (ack) },
    { 0, "no-jobspec", NULL, "without jobspecs", cmd_take_flag, AT (no_jobspec) },
    JOBS_FORMAT_OPTIONS (AT (form_name)),
    CMD_OPTIONS_END,
};

const struct command job_watch_command = {
    .name = "job watch",
    .flags = CMD_CONNECTS,
    .summary = "Print jobs as they become visible, in order of their ids, first all present ones",
    .details = "A line has the id, the user, the urgency and the jobspec, separated by tabs.  Without --after "
               "it\nbegins after the last acknowledged job.",
    .example = "idtree job watch --ack",
    .json = "one object a line",
    .options = watch_options,
    .run = run_watch,
};
