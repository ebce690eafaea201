/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* watch.c - idtree job watch: print jobs as they become visible, in order of their ids
 *
 * Rank 0 sends a few jobs in advance, and more after these are confirmed.  A job is confirmed, or acknowledged, after
 * it was printed and the output flushed, never before.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/base/cmd.h"
#include "cmd/base/out.h"
#include "cmd/job/job.h"

struct watch {
    struct jobs j;
    uint64_t printed, answers;
    char last[SCHEME_TEXT_MAX]; /* id of the last printed job, as received */
};

/* --- output ----------------------------------------------------------------------------------- */

/* Print a line: id, user, urgency, jobspec. */
static void print_text (struct watch *w, const json_t *job)
{
    json_t *spec = json_object_get (job, "jobspec");
    json_int_t urgency;
    const char *id;

    if (json_unpack ((json_t *)job, "{s:s s:I}", "id", &id, "urgency", &urgency) < 0)
        cmd_die (w->j.cmd, "malformed answer of the broker");
    out_print ("%s\t%s\t%" JSON_INTEGER_FORMAT, id, jobs_user (&w->j, job), urgency);
    if (spec) {
        out_print ("\t");
        out_json (spec, JSON_COMPACT);
    }
    out_print ("\n");
}

static void print_job (struct watch *w, json_t *job)
{
    const char *id = json_string_value (json_object_get (job, "id"));

    snprintf (w->last, sizeof (w->last), "%s", id ? id : "");
    jobs_set_id (&w->j, job);
    if (w->j.cmd->json)
        ask_print (w->j.cmd, job);
    else
        print_text (w, job);
    w->printed++;
}

/* --- jobs ------------------------------------------------------------------------------------- */

static bool is_done (const struct watch *w)
{
    return w->j.count > 0 && w->printed >= w->j.count;
}

/* Confirm all printed jobs to rank 0, after they have been written. */
static void confirm (struct watch *w, const json_t *answer)
{
    json_t *request = json_pack ("{s:s s:O}", "id", w->last, "watch", json_object_get (answer, "watch"));

    cmd_flush (w->j.cmd);
    if (!request)
        cmd_die (w->j.cmd, "malformed answer of the broker");
    if (!w->j.ack)
        json_object_set_new (request, "keep", json_true ());
    json_decref (jobs_ask_new (&w->j, "ack", request, w->last));
}

/* An answer without jobs means that all present jobs were sent. */
static void take (struct watch *w, const json_t *answer)
{
    json_t *jobs = json_object_get (answer, "jobs");
    size_t i;

    for (i = 0; i < json_array_size (jobs) && !is_done (w); i++)
        print_job (w, json_array_get (jobs, i));
    if (i > 0)
        confirm (w, answer);
}

static idt_future_t *begin (struct watch *w)
{
    json_t *request = json_pack ("{s:b}", "jobspec", !w->j.no_jobspec);
    char after[SCHEME_TEXT_MAX];

    if (w->j.after)
        json_object_set_new (request, "after", json_string (jobs_read_id (w->j.cmd, w->j.after, after)));
    return ask_stream (w->j.cmd, "ingest.watch", 0, request);
}

static int run (struct cmd *cmd)
{
    struct watch w = { .j = jobs_begin (cmd) };
    idt_future_t *f = begin (&w);
    json_t *answer;

    for (; !is_done (&w); idt_future_reset (f)) {
        jobs_check_service (cmd, w.answers++ == 0 ? ask_ready (cmd, f, "jobs") : ask_next (cmd, f, "jobs"), "jobs");
        ask_wait (cmd, f, "jobs");
        if (idt_rpc_get_unpack (f, "o", &answer) < 0)
            cmd_die (cmd, "malformed answer of the broker");
        take (&w, answer);
    }
    idt_future_destroy (f);
    return CMD_OK;
}

static const struct cmd_option options[] = {
    JOBS_AFTER_OPTION,
    { 'n', "count", "N", "end after N jobs (default: until interrupted)", cmd_take_count, JOBS_AT (count) },
    { 0, "ack", NULL, "acknowledge printed jobs: they may be deleted", cmd_take_flag, JOBS_AT (ack) },
    { 0, "no-jobspec", NULL, "without jobspecs", cmd_take_flag, JOBS_AT (no_jobspec) },
    JOBS_FORMAT_OPTIONS (JOBS_AT (form_name)),
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
    .options = options,
    .run = run,
};
