/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* all.c - idtree-all: all commands of idtree, help, and completion
 *
 * The program idtree runs it in its own place if it does not have the command itself (main.c).
 */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "cmd/base/commands.h"
#include "cmd/base/out.h"
#include "libutil/inherited.h"

static const struct command *const cmd_table[] = {
    &init_command,
    &state_show_command,
    &state_check_command,
    &state_backup_command,
    &state_forget_command,
    &start_command,
    &startctl_command,
    &broker_command,
    &id_new_command,
    &id_show_command,
    &id_convert_command,
    &id_range_command,
    &id_sort_command,
    &doc_list_command, /* documents */
    &doc_open_command,
    &doc_close_command,
    &doc_new_command,
    &doc_ids_command,
    &doc_show_command,
    &doc_rename_command,
    &doc_delete_command,
    &doc_export_command,
    &doc_import_command,
    &job_submit_command,
    &job_list_command,
    &job_show_command,
    &job_watch_command,
    &job_ack_command,
    &job_stats_command,
    &ping_command,
    &getattr_command,
    &setattr_command,
    &lsattr_command,
    &module_list_command,
    &module_load_command,
    &module_remove_command,
    &module_stats_command,
    &overlay_status_command,
    &top_command,
    &event_pub_command,
    &event_sub_command,
    &dmesg_command,
    &logger_command,
    &trace_command,
    &info_command,
    &watermark_command,
    &health_command,
    &metrics_command,
    &shutdown_command,
    &reload_command,
    &keygen_command,
    &completion_command,
    &version_command,
    &complete_command,
    NULL,
};

static bool is_help (const char *s)
{
    return !strcmp (s, "-h") || !strcmp (s, "--help") || !strcmp (s, "help");
}

/* idtree help, help COMMAND, help GROUP; idtree GROUP -h.  Returns whether the screen exists. */
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
    setlocale (LC_CTYPE, ""); /* for the lines of trees */
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
