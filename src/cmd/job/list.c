/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* list.c - idtree job list: the jobs of rank 0, in order of their ids
 *
 * They are requested in pages, and each page is printed when it arrives, so any number of jobs needs the memory of one
 * page.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/base/cmd.h"
#include "cmd/base/out.h"
#include "cmd/job/job.h"
#include "libutil/minmax.h"

#define PAGE 1000 /* jobs; the most that an answer may have */
#define USER_WIDTH 12
#define ID_GAP 2

struct list {
    struct jobs j;
    uint64_t printed;
    int id_width; /* width of the first id */
    char last[SCHEME_TEXT_MAX];
};

/* --- output ----------------------------------------------------------------------------------- */

static void print_row (const struct list *l, const char *id, const char *user, const char *urgency, const char *key)
{
    out_print ("%-*s %-*s %7s  %s\n", l->id_width, id, USER_WIDTH, user, urgency, key);
}

/* The number of characters of a text in UTF-8. */
static int width_of (const char *s)
{
    return (int)strlen (s) - out_pad (s, 0);
}

/* A key may be any text that its user chose. */
static const char *printable (const char *key, char buf[CMD_QUOTE_MAX])
{
    for (const unsigned char *p = (const unsigned char *)key; *p; p++)
        if (*p < ' ' || *p == 0x7f)
            return cmd_quote (key, strlen (key), buf);
    return key;
}

static void print_text (struct list *l, const json_t *job)
{
    char text[32], quoted[CMD_QUOTE_MAX];
    const char *id, *key = "-";
    json_int_t urgency;

    if (json_unpack ((json_t *)job, "{s:s s:I s?s}", "id", &id, "urgency", &urgency, "key", &key) < 0)
        cmd_die (l->j.cmd, "malformed answer of the broker");
    if (l->printed == 0) {
        l->id_width = width_of (id) + ID_GAP;
        print_row (l, "ID", "USER", "URGENCY", "KEY");
    }
    snprintf (text, sizeof (text), "%" JSON_INTEGER_FORMAT, urgency);
    print_row (l, id, jobs_user (&l->j, job), text, printable (key, quoted));
}

/* --- pages ------------------------------------------------------------------------------------ */

/* Print a job, and keep its id as received: the next page begins behind it. */
static void print_job (struct list *l, json_t *job)
{
    const char *id = json_string_value (json_object_get (job, "id"));

    snprintf (l->last, sizeof (l->last), "%s", id ? id : "");
    jobs_set_id (&l->j, job);
    if (l->j.cmd->json)
        ask_print (l->j.cmd, job);
    else
        print_text (l, job);
    l->printed++;
}

/* Print a page of at most 'count' jobs.  Returns whether there are more. */
static bool print_page (struct list *l, uint64_t count)
{
    json_t *request = json_pack ("{s:I}", "count", (json_int_t)count), *answer, *job;
    size_t i;

    if (*l->last)
        json_object_set_new (request, "after", json_string (l->last));
    answer = jobs_ask_new (&l->j, "list", request, "jobs");
    json_array_foreach (json_object_get (answer, "jobs"), i, job)
        print_job (l, job);
    bool more = i > 0 && json_is_true (json_object_get (answer, "more"));
    json_decref (answer);
    return more;
}

static int run (struct cmd *cmd)
{
    struct list l = { .j = jobs_begin (cmd) };
    uint64_t count = l.j.count > 0 ? l.j.count : UINT64_MAX;

    if (l.j.after)
        jobs_read_id (cmd, l.j.after, l.last);
    while (print_page (&l, min_u64 (count - l.printed, PAGE)) && l.printed < count)
        ;
    return CMD_OK;
}

static const struct cmd_option options[] = {
    JOBS_AFTER_OPTION,
    { 'n', "count", "N", "at most N (default: all)", cmd_take_count, JOBS_AT (count) },
    JOBS_FORMAT_OPTIONS (JOBS_AT (form_name)),
    CMD_OPTIONS_END,
};

const struct command job_list_command = {
    .name = "job list",
    .flags = CMD_CONNECTS,
    .summary = "List the jobs that are stored and not acknowledged, in order of their ids",
    .example = "idtree job list -n 20",
    .json = "one object a line",
    .options = options,
    .run = run,
};
