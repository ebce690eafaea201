/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* show.c - idtree job show, ack, stats: show a job, acknowledge jobs, show the state of rank 0's store of jobs */
#include <stdio.h>
#include <string.h>

#include "cmd/base/cmd.h"
#include "cmd/base/out.h"
#include "cmd/id/epoch.h"
#include "cmd/job/job.h"
#include "libutil/duration.h"

#define LABEL_WIDTH 14
#define STATS_WIDTH 24

/* --- show ------------------------------------------------------------------------------------- */

/* Add all forms of the id, with their names as keys. */
static void add_forms (json_t *o, const struct ident *id)
{
    const struct scheme *scheme = scheme_find ("fluid");
    char buf[SCHEME_TEXT_MAX];

    for (int form = 0; scheme->forms[form]; form++) {
        scheme->write (id, form, buf);
        json_object_set_new (o, scheme->forms[form], json_string (buf));
    }
}

/* Add the date of the id, if the instance's epoch is known. */
static void add_date (json_t *o, const struct ident *id, struct cmd *cmd)
{
    struct id_epoch epoch;
    char date[DATE_SIZE];

    epoch_find (&epoch, cmd, NULL);
    if (epoch.ms >= 0)
        json_object_set_new (o, "date",
                             json_string (format_date (epoch.ms + fluid_split (ident_fluid (id)).timestamp_ms, date)));
    epoch_fini (&epoch);
}

static void print_job (const json_t *o)
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
    struct jobs j = jobs_begin (cmd);
    char id[SCHEME_TEXT_MAX];
    struct ident ident;

    jobs_read_id (cmd, cmd->argv[0], id);
    json_t *job = jobs_ask_new (&j, "get", json_pack ("{s:s}", "id", id), id), *o = json_object ();
    scheme_find ("fluid")->read (id, strlen (id), &ident);
    json_object_set_new (o, "id", json_string (id));
    add_forms (o, &ident);
    add_date (o, &ident, cmd);
    json_object_set_new (o, "user", json_string (jobs_user (&j, job)));
    json_object_update_missing (o, job);
    if (cmd->json)
        ask_print (cmd, o);
    else
        print_job (o);
    json_decref (job);
    json_decref (o);
    return CMD_OK;
}

/* --- ack -------------------------------------------------------------------------------------- */

static int run_ack (struct cmd *cmd)
{
    struct jobs j = jobs_begin (cmd);
    char id[SCHEME_TEXT_MAX];

    jobs_read_id (cmd, cmd->argv[0], id);
    json_decref (jobs_ask_new (&j, "ack", json_pack ("{s:s}", "id", id), id));
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
    struct jobs j = jobs_begin (cmd);
    json_t *stats = jobs_ask_new (&j, "stats", json_object (), "jobs");

    if (cmd->json)
        ask_print (cmd, stats);
    else
        print_stats (stats);
    json_decref (stats);
    return CMD_OK;
}

/* --- the commands ----------------------------------------------------------------------------- */

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
