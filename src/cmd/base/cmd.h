/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* cmd.h - what the subcommands of idtree share: the table, options, errors, the connection
 *
 * A subcommand is a 'struct command' beside its code.  Its options are a table too: the parser,
 * the -h screen and the completion of the shell are made from it, so that they can't disagree.
 *
 * Exit status: 0 done; 1 failed (CMD_FAILED); 2 wrong usage (CMD_USAGE).  idtree start ends with
 * the status of the command that it ran, 128 + N where signal N ended that, 126 or 127 where it
 * could not be run.
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
    int letter;       /* 0: it has none; of CMD_LETTERS one or both */
    const char *name; /* after -- */
    const char *arg;  /* name of its argument as -h shows it; NULL: takes none */
    const char *help; /* one line; NULL: another name of the option before it, which -h does not show */

    /* Read 'arg' (borrowed from argv; NULL: takes none) into 'to', or end the program.  'to' is 'offset' bytes behind
     * what cmd_options () was given.
     */
    void (*take) (struct cmd *cmd, const char *arg, void *to);
    size_t offset;
};

/* Two letters for one option: ours (0: it has none), and one more that -h does not show: that of Flux's command, or one
 * that means something else in most commands.  A letter that -h shows means the same in all commands.
 */
#define CMD_LETTERS(own, other) ((own) | (other) << 8)
#define CMD_OPTIONS_MAX 16 /* of one command */
#define CMD_OPTIONS_END              \
    {                                \
        0, NULL, NULL, NULL, NULL, 0 \
    }

/* What takes many an option, and the type of '*to'. */
void cmd_take_flag (struct cmd *cmd, const char *arg, void *to);  /* bool, which becomes true */
void cmd_take_text (struct cmd *cmd, const char *arg, void *to);  /* const char * */
void cmd_take_rank (struct cmd *cmd, const char *arg, void *to);  /* uint32_t */
void cmd_take_count (struct cmd *cmd, const char *arg, void *to); /* uint64_t from 1 to UINT32_MAX */

enum cmd_flag {
    CMD_CONNECTS = 1, /* talks to a broker: has --uri and --timeout */
    CMD_VERBATIM = 2, /* gets its arguments unparsed */
    CMD_RUNS = 4,     /* options end at the first operand: it is another command's */
    CMD_HIDDEN = 8,   /* not listed */
    CMD_SILENT = 16,  /* prints nothing; with --json an empty object, when it is done */
};

struct command {
    const char *name;     /* one word, or two: "id new" */
    const char *operands; /* as the usage line shows them, [what may be left out], "..." any number; NULL: none */
    int flags;            /* enum cmd_flag bits */
    const char *summary;
    const char *details;              /* more lines for -h; may be NULL */
    const char *example;              /* one command line */
    const char *json;                 /* what --json prints, for -h (etc/schema); NULL: there is no --json */
    const struct cmd_option *options; /* ended by CMD_OPTIONS_END; may be NULL */
    int (*run) (struct cmd *cmd);     /* returns the exit status */
};

/* The command whose name begins 'argv', and in '*words' how many words that took; NULL: none.  'table', here and below:
 * all commands in the order of the -h screen, ended by NULL.
 */
const struct command *cmd_find (const struct command *const *table, int argc, char **argv, int *words);

#define CMD_WORD_MAX 64
#define CMD_WORDS_MAX 64
struct cmd_words {
    char buf[CMD_WORDS_MAX][CMD_WORD_MAX];
    const char *words[CMD_WORDS_MAX];
    size_t count;
};

/* The words that may stand behind 'group', or at first (NULL), each once.  Returns how many there are. */
size_t cmd_words (struct cmd_words *w, const struct command *const *table, const char *group);

/* --- a command that runs ---------------------------------------------------------------------- */

/* What is in the environment; NULL where unset. */
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
    const struct command *const *table; /* it is one of these */
    struct cmd_env env;
    const char *uri;   /* --uri; NULL: not given, as for idt_open () */
    double timeout_ms; /* --timeout: how long nobody may answer; negative: for ever */
    bool json;         /* --json */
    int open_flags;    /* for idt_open_ex () */
    idt_t *h;          /* NULL: not connected; closed when the command has run */
    struct {           /* who was asked last: who is to blame where no answer comes */
        char service[CMD_SERVICE_MAX];
        uint32_t nodeid;
    } asked;
    /* What cmd_die () calls with its sentence, to say it in another way; returns the exit status.  NULL: stderr. */
    int (*died) (const struct cmd *cmd, const char *why);
    /* The operands, once there was cmd_options (); all arguments where CMD_VERBATIM. */
    int argc;
    char **argv;
};

/* Run a command of 'table' with its last word and what follows: returns its exit status. */
int cmd_run (const struct command *command, const struct command *const *table, int argc, char **argv);

/* Take the options into 'to' (NULL: the command has none of its own).  Handles -h, --uri, --timeout and --json; ends
 * the program (CMD_USAGE) at what the table does not have, and where there are too few or too many operands.
 */
void cmd_options (struct cmd *cmd, void *to);

/* Print "idtree NAME: " and a sentence on stderr. */
void cmd_warn (const struct cmd *cmd, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));

/* The same, then end the program: with CMD_FAILED; with CMD_USAGE and a hint at -h. */
void cmd_die (const struct cmd *cmd, const char *fmt, ...) __attribute__ ((noreturn, format (printf, 2, 3)));
void cmd_usage (const struct cmd *cmd, const char *fmt, ...) __attribute__ ((noreturn, format (printf, 2, 3)));

/* Read 's' as a decimal number min ... max, or end the program: "WHAT '8x': a number from 1 to 9
 * is needed".
 */
uint64_t cmd_number (const struct cmd *cmd, const char *what, const char *s, uint64_t min, uint64_t max);

/* Read 's' as seconds above 0, fractions allowed, at most a day.  Returns milliseconds. */
double cmd_seconds (const struct cmd *cmd, const char *what, const char *s);

#define CMD_TIMEOUT_MS 30000. /* where --timeout says nothing else */

/* Read 's' as such seconds, or 0: for ever, which is returned as -1. */
double cmd_timeout (const struct cmd *cmd, const char *s);

/* Read 's' as a rank. */
uint32_t cmd_rank (const struct cmd *cmd, const char *s);

/* Write what was printed, or end the program where that cannot be.  Comes by itself when the command has run. */
void cmd_flush (const struct cmd *cmd);

/* The connection to the broker, which is made at first.  Ends the program with a sentence that says what to do, also
 * where the broker does not answer within --timeout.
 */
idt_t *cmd_connect (struct cmd *cmd);

/* The same for a command that can do without: connect to cmd->uri.  Returns NULL with errno set and the reason in
 * 'errp'; ends the program only where that is no URI (CMD_USAGE), and where the broker does not answer.
 */
idt_t *cmd_try_connect (struct cmd *cmd, idt_error_t *errp);

/* Which broker it is, or would be, for sentences.  Borrowed. */
const char *cmd_uri (const struct cmd *cmd);

/* The same for a command that asks 'rank', which must be one of the instance, or IDT_NODEID_ANY. */
idt_t *cmd_connect_for (struct cmd *cmd, uint32_t rank);

/* The same for a command that stops or changes a broker: ends the program where that is one of Flux's, before
 * anything is asked of it.
 */
idt_t *cmd_connect_own (struct cmd *cmd);

/* The same, but NULL with errno ECONNRESET where the broker has closed the connection by then. */
idt_t *cmd_try_connect_own (struct cmd *cmd);

/* Whether the broker that we are connected to is one of Flux's. */
bool cmd_is_flux (const struct cmd *cmd);

/* --- text ------------------------------------------------------------------------------------- */

#define CMD_QUOTE_MAX 64

/* 's' of 'len' bytes for an error message in 'buf': cut with "..." where long, control characters
 * as \xNN.  Returns 'buf'.
 */
const char *cmd_quote (const char *s, size_t len, char buf[CMD_QUOTE_MAX]);

/* Call 'cb' for each option of a command, those that all have too.  'o' is borrowed until it returns. */
void cmd_each_option (const struct command *command, void (*cb) (const struct cmd_option *o, void *arg), void *arg);

/* Print the -h screen of a command, of all, of those whose first word is 'group'. */
void cmd_help (const struct command *command);
void cmd_help_all (const struct command *const *table);
/* Returns false where there is no such group. */
bool cmd_help_group (const struct command *const *table, const char *group);

/* End the program: there is no such command. */
void cmd_unknown (const struct command *const *table, int argc, char **argv) __attribute__ ((noreturn));

#endif /* CMD_CMD_H */
