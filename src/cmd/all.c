/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* all.c - idtree-all: all commands of idtree, and help; idtree module list, doc list, keygen
 *
 * If the idtree program does not have a command itself, it executes idtree-all in its process (main.c).
 */
#include <errno.h>
#include <locale.h>
#include <string.h>

#include "cmd/base/ask.h"
#include "cmd/base/out.h"
#include "cmd/base/table.h"
#include "cmd/doc/doc.h"
#include "common/libzmqutil/curve.h"
#include "libutil/inherited.h"

/* --- lists, as tables ------------------------------------------------------------------------ */

static const char *status_name (const json_t *number)
{
    static const char *const names[] = { "init", "running", "finalizing", "exited" };
    int status = json_integer_value (number);

    return status >= 0 && status < 4 ? names[status] : "?";
}

/* The services of a module, joined with commas, without the service that has the module's name. */
static json_t *other_services (const json_t *m)
{
    const char *name = json_string_value (json_object_get (m, "name"));
    char buf[512] = "";
    size_t i;
    json_t *s;

    json_array_foreach (json_object_get (m, "services"), i, s) {
        const char *service = json_string_value (s);
        size_t n = strlen (buf);

        if (service && name && strcmp (service, name))
            snprintf (buf + n, sizeof (buf) - n, "%s%s", n ? "," : "", service);
    }
    return json_string (buf);
}

static int run_module_list (struct cmd *cmd)
{
    static const struct table_column columns[] = {
        { "MODULE", "name", 0 },
        { "STATE", "state", 0 },
        { "IDLE", "idle", TABLE_RIGHT },
        { "SENDQ", "sendqueue", TABLE_RIGHT },
        { "RECVQ", "recvqueue", TABLE_RIGHT },
        { "SERVICES", "others", 0 },
    };
    uint32_t rank = IDT_NODEID_ANY;
    size_t i;
    json_t *m;

    cmd_options (cmd, &rank);
    json_t *answer = ask_new (cmd, "module.list", rank, NULL, "modules"), *mods = json_object_get (answer, "mods");
    json_array_foreach (mods, i, m)
        if (!cmd->json) {
            json_object_set_new (m, "state", json_string (status_name (json_object_get (m, "status"))));
            json_object_set_new (m, "others", other_services (m));
        }
    table_print_rows (cmd, columns, sizeof (columns) / sizeof (columns[0]), mods);
    json_decref (answer);
    return CMD_OK;
}

const struct command module_list_command = {
    .name = "module list",
    .flags = CMD_CONNECTS,
    .summary = "List the modules of a broker",
    .example = "idtree module list --rank 3",
    .json = "one object a line, for each module",
    .options = cmd_rank_options,
    .run = run_module_list,
};

static int run_doc_list (struct cmd *cmd)
{
    static const struct table_column columns[] = {
        { "DOCUMENT", "document", 0 },           { "RANGES", "seq", TABLE_RIGHT },
        { "FINALS", "finals", TABLE_RIGHT },     { "SESSIONS", "sessions", TABLE_RIGHT },
        { "CLUSTERS", "clusters", TABLE_RIGHT }, { "UUID", "uuid", 0 },
    };
    json_t *answer = doc_list_new (cmd);

    table_print_rows (cmd, columns, sizeof (columns) / sizeof (columns[0]), json_object_get (answer, "documents"));
    json_decref (answer);
    return CMD_OK;
}

const struct command doc_list_command = {
    .name = "doc list",
    .flags = CMD_CONNECTS,
    .summary = "List the documents of the id compressor",
    .example = "idtree doc list",
    .json = "one object a line, for each document",
    .run = run_doc_list,
};

/* --- keygen ---------------------------------------------------------------------------------- */

static int run_keygen (struct cmd *cmd)
{
    const char *name = NULL;
    idt_error_t err;

    cmd_options (cmd, &name);
    if (certificate_make (cmd->argv[0], name, &err) < 0)
        cmd_die (cmd, "%s", err.text);
    if (!cmd->json)
        out_print ("%s: made; copy it to all hosts of the instance, readable only by the user of the brokers\n",
                   cmd->argv[0]);
    return CMD_OK;
}

static const struct cmd_option keygen_options[] = {
    { 0, "name", "NAME", "name for people (default: idtree)", cmd_take_text, 0 },
    CMD_OPTIONS_END,
};

const struct command keygen_command = {
    .name = "keygen",
    .operands = "FILE",
    .flags = CMD_SILENT,
    .summary = "Make the certificate that all hosts of an instance share",
    .details = "Any reader of FILE can pose as any of the brokers.  Copy it to each host as safely as other\nkeys, "
               "readable only by the user that runs the broker; it is made with mode 0400.  An existing\nfile is not "
               "replaced.",
    .example = "idtree keygen /etc/idtree/idtree.cert",
    .options = keygen_options,
    .run = run_keygen,
};

/* --- all commands ---------------------------------------------------------------------------- */

static const struct command *const cmd_table[] = {
    &init_command,           &state_show_command,    &state_check_command,
    &state_backup_command,   &state_forget_command,  &root_status_command,
    &root_release_command,   &start_command,         &startctl_command,
    &broker_command,         &id_new_command,        &id_show_command,
    &id_convert_command,     &id_range_command,      &id_sort_command,
    &doc_list_command,       &doc_open_command,      &doc_close_command,
    &doc_new_command,        &doc_ids_command,       &doc_show_command,
    &doc_rename_command,     &doc_delete_command,    &doc_export_command,
    &doc_import_command,     &job_submit_command,    &job_list_command,
    &job_show_command,       &job_watch_command,     &job_ack_command,
    &job_stats_command,      &ping_command,          &getattr_command,
    &setattr_command,        &lsattr_command,        &module_list_command,
    &module_load_command,    &module_remove_command, &module_stats_command,
    &overlay_status_command, &top_command,           &event_pub_command,
    &event_sub_command,      &dmesg_command,         &logger_command,
    &trace_command,          &info_command,          &watermark_command,
    &health_command,         &metrics_command,       &shutdown_command,
    &reload_command,         &keygen_command,        &completion_command,
    &version_command,        &complete_command,      NULL,
};

static bool is_help (const char *s)
{
    return !strcmp (s, "-h") || !strcmp (s, "--help") || !strcmp (s, "help");
}

/* Show the help of idtree help, help COMMAND, help GROUP or idtree GROUP -h.  Returns false if there is no such help.
 */
static bool help (int argc, char **argv)
{
    const struct command *command;
    int words;

    if (argc == 0)
        cmd_help_all (cmd_table);
    else if ((command = cmd_find (cmd_table, argc, argv, &words)))
        cmd_help (command);
    else
        return argc == 1 && cmd_help_group (cmd_table, argv[0]);
    return true;
}

static int finish (void)
{
    idt_error_t why;

    if (out_flush (stdout, &why) == 0)
        return CMD_OK;
    out_error ("idtree: cannot write: %s\n", why.text);
    return CMD_FAILED;
}

int main (int argc, char **argv)
{
    const struct command *command;
    idt_error_t error;
    int words;

    if (inherited_set (&error) < 0) {
        out_error ("idtree: %s\n", error.text);
        return CMD_FAILED;
    }
    setlocale (LC_CTYPE, ""); /* trees are drawn with characters outside of ASCII */
    if (argc < 2) {
        out_error ("idtree: which command? (idtree -h lists them)\n");
        return CMD_USAGE;
    }
    if (is_help (argv[1])) {
        if (help (argc - 2, argv + 2))
            return finish ();
        cmd_unknown (cmd_table, argc - 2, argv + 2);
    }
    if (!strcmp (argv[1], "--version") || !strcmp (argv[1], "-V"))
        return cmd_run (&version_command, cmd_table, 1, argv + 1);
    if ((command = cmd_find (cmd_table, argc - 1, argv + 1, &words)))
        return cmd_run (command, cmd_table, argc - words, argv + words);
    if (argc == 3 && is_help (argv[2]) && help (1, argv + 1))
        return finish ();
    cmd_unknown (cmd_table, argc - 1, argv + 1);
}
