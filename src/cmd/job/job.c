/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job.c - what the commands about jobs share */
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "cmd/id/text.h"
#include "cmd/job/job.h"

#define USER_ENTRY_MAX 4096 /* bytes of a user's entry; a user with a longer one is shown by number */

static const struct scheme *fluid (void)
{
    return scheme_find ("fluid");
}

/* --- options ---------------------------------------------------------------------------------- */

int jobs_form (const struct cmd *cmd, const char *name)
{
    return name ? idtext_form (cmd, fluid (), name) : fluid ()->usual;
}

struct jobs jobs_begin (struct cmd *cmd)
{
    struct jobs j = { .cmd = cmd };

    cmd_options (cmd, &j);
    j.form = jobs_form (cmd, j.form_name);
    return j;
}

/* --- ids -------------------------------------------------------------------------------------- */

const char *jobs_read_id (const struct cmd *cmd, const char *s, char buf[SCHEME_TEXT_MAX])
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

void jobs_set_id (const struct jobs *j, json_t *job)
{
    char id[SCHEME_TEXT_MAX];

    jobs_write_id (j->cmd, j->form, json_string_value (json_object_get (job, "id")), id);
    json_object_set_new (job, "id", json_string (id));
}

/* --- questions -------------------------------------------------------------------------------- */

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

json_t *jobs_ask_new (const struct jobs *j, const char *method, json_t *request, const char *what)
{
    char topic[64];

    snprintf (topic, sizeof (topic), "ingest.%s", method);
    idt_future_t *f = ask_ready (j->cmd, ask_send (j->cmd, topic, 0, request), what);
    jobs_check_service (j->cmd, f, j->cmd->argc == 1 ? j->cmd->argv[0] : what); /* the id as given */
    return ask_take_new (j->cmd, f, what);
}

/* --- users ------------------------------------------------------------------------------------ */

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

const char *jobs_user (struct jobs *j, const json_t *job)
{
    uid_t userid = (uid_t)json_integer_value (json_object_get (job, "userid"));
    struct jobs_user *u = &j->users[userid % JOBS_USERS];

    if (!*u->name || u->userid != userid)
        look_up (u, userid);
    return u->name;
}
