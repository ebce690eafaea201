/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* main.c - the idtree program: runs a subcommand, or executes idtree-all in its process
 *
 * Most commands run for less time than a broker's libraries take to load.  So this program has only the commands that
 * need only the libraries that libidtree needs (doc/design/commands.md).  idtree-all has all commands, and is run for
 * all other first words: help, --version, typing errors.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cmd/base/out.h"
#include "cmd/base/self.h"
#include "libutil/inherited.h"

static const struct command *const quick[] = {
    &broker_command,      &id_new_command,        &id_show_command,      &id_convert_command, &id_range_command,
    &id_sort_command,     &doc_open_command,      &doc_close_command,    &doc_new_command,    &doc_ids_command,
    &doc_show_command,    &doc_rename_command,    &doc_delete_command,   &doc_export_command, &doc_import_command,
    &job_submit_command,  &job_list_command,      &job_show_command,     &job_watch_command,  &job_ack_command,
    &job_stats_command,   &ping_command,          &getattr_command,      &setattr_command,    &lsattr_command,
    &module_load_command, &module_remove_command, &module_stats_command, &event_pub_command,  &event_sub_command,
    &dmesg_command,       &logger_command,        &info_command,         &watermark_command,  &health_command,
    &shutdown_command,    &reload_command,        &trace_command,        &version_command,    NULL,
};

static int run_all (char **argv)
{
    char path[PATH_MAX];

    self_find_all (path);
    execv (path, argv);
    out_error ("idtree: cannot run %s, which has all commands except the quick ones: %s\n", path, strerror (errno));
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
    if ((command = cmd_find (quick, argc - 1, argv + 1, &words)))
        return cmd_run (command, quick, argc - words, argv + words);
    return run_all (argv);
}
