/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* cmd.h - what the subcommands of idtree share: the table of commands, options, errors
 *
 * Each subcommand is a 'struct command', defined beside its code.  The parser, the -h screen and the completion of the
 * shell are all made from its table of options, so they cannot disagree.
 *
 * Exit status: 0 done; 1 failed (CMD_FAILED); 2 wrong usage (CMD_USAGE).  idtree start ends with the status of the
 * command that it ran, with 128 + N if signal N ended that command, and with 126 or 127 if it could not run the
 * command.
 */
#ifndef CMD_CMD_H
#define CMD_CMD_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/error.h>
#include <idtree/handle.h>
#include <idtree/rpc.h>

enum cmd_status {
    CMD_OK = 0,
    CMD_FAILED = 1,
    CMD_USAGE = 2,
};

/* --- the table ------------------------------------------------------------------------------- */

struct cmd;

struct cmd_option {
    int letter;       /* 0: no letter; one letter, or two with CMD_LETTERS */
    const char *name; /* the word after -- */
    const char *arg;  /* name of the argument in the -h screen; NULL: takes no argument */
    const char *help; /* one line; NULL: an alias of the option before it, hidden from -h */

    /* Convert 'arg' (borrowed from argv; NULL: the option takes none) and store it in 'to', or end the program.  'to'
     * is the address that the caller gave to cmd_options (), plus 'offset' bytes.
     */
    void (*take) (struct cmd *cmd, const char *arg, void *to);
    size_t offset;
};

/* Two letters for one option: 'own' (0: no letter) is shown by -h.  'other' is hidden, because it is only the letter of
 * Flux's command, or has another meaning in most commands.  A letter that -h shows means the same in all commands.
 */
#define CMD_LETTERS(own, other) ((own) | (other) << 8)
#define CMD_OPTIONS_MAX 16                    /* most options of one command */
#define CMD_OPTIONS_ALL (CMD_OPTIONS_MAX + 4) /* own options, and --uri, --timeout, --json, -h */
#define CMD_OPTIONS_END              \
    {                                \
        0, NULL, NULL, NULL, NULL, 0 \
    }

/* Functions for 'take' of common options.  The comment is the type of '*to'. */
void cmd_take_flag (struct cmd *cmd, const char *arg, void *to);  /* bool, set to true */
void cmd_take_text (struct cmd *cmd, const char *arg, void *to);  /* const char * */
void cmd_take_rank (struct cmd *cmd, const char *arg, void *to);  /* uint32_t */
void cmd_take_count (struct cmd *cmd, const char *arg, void *to); /* uint64_t from 1 to UINT32_MAX */

/* An entry for the option table of a command that sends its request to one broker: --rank, stored as a uint32_t.
 * cmd_rank_options is a table with only this entry.
 */
#define CMD_RANK_OPTION(offset)                                                               \
    {                                                                                         \
        'r', "rank", "R", "of rank R (default: the broker of the URI)", cmd_take_rank, offset \
    }
extern const struct cmd_option cmd_rank_options[];

enum cmd_flag {
    CMD_CONNECTS = 1, /* connects to a broker: has --uri and --timeout */
    CMD_VERBATIM = 2, /* gets its arguments unparsed */
    CMD_RUNS = 4,     /* options end at the first operand, because the rest is another command */
    CMD_HIDDEN = 8,   /* is left out of lists of commands */
    CMD_SILENT = 16,  /* prints nothing; with --json prints an empty object when done */
};

struct command {
    const char *name;     /* one word, or two: "id new" */
    const char *operands; /* as in the usage line: [optional], "..." after an operand that repeats; NULL: no operands */
    int flags;            /* enum cmd_flag bits */
    const char *summary;
    const char *details;              /* more lines for -h; may be NULL */
    const char *example;              /* one command line */
    const char *json;                 /* output of --json, for -h (etc/schema); NULL: no --json */
    const struct cmd_option *options; /* ends with CMD_OPTIONS_END; may be NULL */
    int (*run) (struct cmd *cmd);     /* returns the exit status */
};

/* Find the command whose name is at the beginning of 'argv'.  Sets '*words' to the number of words of this name.
 * Returns NULL if there is no such command.  'table', here and below, has all commands in the order of the -h screen,
 * and ends with NULL.
 */
const struct command *cmd_find (const struct command *const *table, int argc, char **argv, int *words);

#define CMD_WORD_MAX 64
#define CMD_WORDS_MAX 64
struct cmd_words {
    char buf[CMD_WORDS_MAX][CMD_WORD_MAX];
    const char *words[CMD_WORDS_MAX];
    size_t count;
};

/* List the words that may follow 'group', or the first words of all commands ('group' NULL).  Each word is listed one
 * time.  Returns the number of words.
 */
size_t cmd_words (struct cmd_words *w, const struct command *const *table, const char *group);

/* --- a command that runs ---------------------------------------------------------------------- */

/* The variables of the environment; NULL if unset. */
struct cmd_env {
    const char *broker; /* IDTREE_BROKER: the broker's executable */
    const char *tmpdir; /* TMPDIR */
    const char *shell;  /* SHELL */
    const char *path;   /* PATH */
    const char *term;   /* TERM */
    bool no_color;      /* NO_COLOR, or TERM=dumb */
};

#define CMD_SERVICE_MAX 64

struct cmd {
    const struct command *command;
    const struct command *const *table; /* all commands, 'command' among them */
    struct cmd_env env;
    const char *uri;   /* --uri; NULL: not given, idt_open () uses its default */
    double timeout_ms; /* --timeout: how long to wait for an answer; negative: forever */
    bool json;         /* --json */
    int open_flags;    /* flags of idt_open_ex () */
    idt_t *h;          /* NULL: not connected; closed when the command has run */
    struct {           /* the last request: the message about a missing answer names it */
        char service[CMD_SERVICE_MAX];
        uint32_t nodeid;
    } asked;
    /* NULL, or a function to which cmd_die () passes its message instead of printing it.  The function prints the
     * message in another form, and returns the exit status.
     */
    int (*died) (const struct cmd *cmd, const char *why);
    /* The operands, after cmd_options ().  With CMD_VERBATIM: all arguments. */
    int argc;
    char **argv;
};

/* Run a command of 'table'.  'argv' begins with the last word of its name.  Returns its exit status. */
int cmd_run (const struct command *command, const struct command *const *table, int argc, char **argv);

/* Store the options in 'to' (NULL: the command has no options of its own).  Handles -h, --uri, --timeout and --json.
 * Ends the program (CMD_USAGE) if an option is not in the table, or if there are too few or too many operands.
 */
void cmd_options (struct cmd *cmd, void *to);

/* Print "idtree NAME: " and the sentence to stderr. */
void cmd_warn (const struct cmd *cmd, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));

/* Print like cmd_warn (), and end the program: cmd_die () with CMD_FAILED; cmd_usage () with CMD_USAGE and a hint at
 * -h.
 */
void cmd_die (const struct cmd *cmd, const char *fmt, ...) __attribute__ ((noreturn, format (printf, 2, 3)));
void cmd_usage (const struct cmd *cmd, const char *fmt, ...) __attribute__ ((noreturn, format (printf, 2, 3)));

/* Return 's' as a decimal number from min to max, or end the program: "WHAT '8x': a number from 1 to 9 is needed". */
uint64_t cmd_number (const struct cmd *cmd, const char *what, const char *s, uint64_t min, uint64_t max);

/* Return 's', a number of seconds above 0 and at most a day, with fractions, in milliseconds.  Ends the program if 's'
 * is not such a number.
 */
double cmd_seconds (const struct cmd *cmd, const char *what, const char *s);

/* Return 's' as a rank, or end the program. */
uint32_t cmd_rank (const struct cmd *cmd, const char *s);

/* Write all buffered output, or end the program if it cannot be written.  cmd_run () calls this when the command has
 * run.
 */
void cmd_flush (const struct cmd *cmd);

/* --- text ------------------------------------------------------------------------------------- */

#define CMD_QUOTE_MAX 64

/* Write the 'len' bytes at 's' into 'buf' for an error message.  A long text is cut and gets "...", and control
 * characters become \xNN.  Returns 'buf'.
 */
const char *cmd_quote (const char *s, size_t len, char buf[CMD_QUOTE_MAX]);

/* Write all options of a command, including the common ones, into 'all'.  Returns their number. */
int cmd_all_options (const struct command *command, struct cmd_option all[CMD_OPTIONS_ALL]);

/* Print the -h screen of one command, or of all commands. */
void cmd_help (const struct command *command);
void cmd_help_all (const struct command *const *table);
/* Print the -h screen of the commands whose first word is 'group'.  Returns false if there are no such commands. */
bool cmd_help_group (const struct command *const *table, const char *group);

/* End the program with a message that the command in 'argv' is unknown. */
void cmd_unknown (const struct command *const *table, int argc, char **argv) __attribute__ ((noreturn));

/* --- the commands ----------------------------------------------------------------------------- */

extern const struct command init_command, state_show_command, state_check_command, state_backup_command;
extern const struct command state_forget_command, root_status_command, root_release_command;
extern const struct command start_command, startctl_command, broker_command, shutdown_command, reload_command;
extern const struct command keygen_command;
extern const struct command id_new_command, id_show_command, id_convert_command, id_range_command, id_sort_command;
extern const struct command doc_list_command, doc_open_command, doc_close_command, doc_new_command, doc_ids_command;
extern const struct command doc_show_command, doc_rename_command, doc_delete_command, doc_export_command;
extern const struct command doc_import_command;
extern const struct command job_submit_command, job_list_command, job_show_command, job_watch_command;
extern const struct command job_ack_command, job_stats_command;
extern const struct command getattr_command, setattr_command, lsattr_command;
extern const struct command info_command, version_command, watermark_command;
extern const struct command module_list_command, module_load_command, module_remove_command, module_stats_command;
extern const struct command overlay_status_command, health_command, metrics_command, top_command, trace_command;
extern const struct command ping_command, event_pub_command, event_sub_command, dmesg_command, logger_command;
extern const struct command completion_command, complete_command;

/* The name of each shell, followed by its script for idtree and idtree-http; ends with NULL.  make writes
 * completion_scripts.c from etc/completion.
 */
extern const char *const completion_scripts[];

#endif /* CMD_CMD_H */
