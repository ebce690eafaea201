/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* commands.h - the subcommands, each defined in its own file */
#ifndef CMD_COMMANDS_H
#define CMD_COMMANDS_H

#include "cmd/base/cmd.h"

extern const struct command init_command;
extern const struct command state_show_command;
extern const struct command state_check_command;
extern const struct command state_backup_command;
extern const struct command state_forget_command;
extern const struct command start_command;
extern const struct command startctl_command;
extern const struct command broker_command;
extern const struct command id_new_command;
extern const struct command id_show_command;
extern const struct command id_convert_command;
extern const struct command id_range_command;
extern const struct command id_sort_command;
extern const struct command doc_list_command;
extern const struct command doc_open_command;
extern const struct command doc_close_command;
extern const struct command doc_new_command;
extern const struct command doc_ids_command;
extern const struct command doc_show_command;
extern const struct command doc_rename_command;
extern const struct command doc_delete_command;
extern const struct command doc_export_command;
extern const struct command doc_import_command;
extern const struct command job_submit_command;
extern const struct command job_list_command;
extern const struct command job_show_command;
extern const struct command job_watch_command;
extern const struct command job_ack_command;
extern const struct command job_stats_command;
extern const struct command ping_command;
extern const struct command getattr_command;
extern const struct command setattr_command;
extern const struct command lsattr_command;
extern const struct command module_list_command;
extern const struct command module_load_command;
extern const struct command module_remove_command;
extern const struct command module_stats_command;
extern const struct command overlay_status_command;
extern const struct command top_command;
extern const struct command event_pub_command;
extern const struct command event_sub_command;
extern const struct command dmesg_command;
extern const struct command logger_command;
extern const struct command trace_command;
extern const struct command info_command;
extern const struct command watermark_command;
extern const struct command health_command;
extern const struct command metrics_command;
extern const struct command shutdown_command;
extern const struct command keygen_command;
extern const struct command completion_command;
extern const struct command reload_command;
extern const struct command version_command;
extern const struct command complete_command;

#endif /* CMD_COMMANDS_H */
