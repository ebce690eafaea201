/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* top.c - idtree top: the ranks of an instance, updated live
 *
 * A round is begun after --interval, and soon after the connected broker logs a line or an event arrives: brokers log
 * changes of the tree.  All changes within SOON_MS cause one round.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <idtree/reactor.h>

#include "cmd/base/ask.h"
#include "cmd/base/cmd.h"
#include "cmd/base/out.h"
#include "libutil/text.h"
#include "cmd/top/poll.h"
#include "cmd/top/screen.h"

#define INTERVAL_MS 1000.
#define SOON_MS 50.
#define NOTE_MAX 512

struct top {
    struct cmd *cmd;
    struct top_model board;
    struct view view;
    struct round round;
    uint64_t left; /* rounds to show; 0: no limit */
    double interval_ms;
    struct color color;
    idt_watcher_t *timer, *keys, *signals;
    int signal_fd;
    idt_future_t *log;
    bool again; /* something happened while a round was running */
    bool soon;  /* something happened, and the timer is set for it */
    char note[NOTE_MAX];
};

static void draw (struct top *t)
{
    if (!t->cmd->json)
        screen_draw (&t->view, &(struct screen_text){ .uri = ask_uri (t->cmd), .note = t->note });
}

static void stop (struct top *t)
{
    idt_reactor_stop (idt_get_reactor (t->cmd->h));
}

/* --- rounds ------------------------------------------------------------------------------------------ */

static void look (struct top *t)
{
    t->again = t->round.waiting > 0;
    if (t->again)
        return;
    t->soon = false;
    round_begin (&t->round, t->view.root);
    idt_timer_watcher_reset (t->timer, t->interval_ms, t->interval_ms);
}

static void print_json (struct top *t)
{
    json_t *o = top_model_json_new (&t->board);

    ask_print (t->cmd, o);
    json_decref (o);
    cmd_flush (t->cmd);
}

static void take_keys (struct top *t)
{
    enum view_action action = VIEW_DRAW;
    int key;

    while (action != VIEW_QUIT && (key = screen_key ()) != 0)
        if ((action = view_key (&t->view, key)) == VIEW_ASK)
            look (t);
    if (action == VIEW_QUIT)
        stop (t);
    else
        draw (t);
}

static void done_cb (void *arg)
{
    struct top *t = arg;

    if (t->cmd->json)
        print_json (t);
    else
        take_keys (t);
    if (t->left > 0 && --t->left == 0)
        stop (t);
    else if (t->again)
        look (t);
}

static void timer_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct top *t = arg;

    if (!t->view.paused)
        look (t);
    else if (!t->cmd->json)
        take_keys (t);
}

static void look_soon (struct top *t)
{
    if (!t->soon && t->interval_ms > SOON_MS)
        idt_timer_watcher_reset (t->timer, SOON_MS, t->interval_ms);
    t->soon = true;
}

/* --- what happens ------------------------------------------------------------------------------------ */

static void keep_note (struct top *t, idt_future_t *f)
{
    char line[NOTE_MAX];
    const void *data;
    size_t size;

    if (idt_rpc_get_raw (f, &data, &size) < 0)
        return;
    snprintf (line, sizeof (line), "%.*s", (int)size, (const char *)data);
    if (logline_format (line, t->note, sizeof (t->note)) < 0)
        snprintf (t->note, sizeof (t->note), "%s", line);
}

/* A user who may not read the log sees all else. */
static void log_cb (idt_future_t *f, void *arg)
{
    struct top *t = arg;

    if (idt_future_errnum (f) != 0) {
        idt_future_destroy (f);
        t->log = NULL;
        return;
    }
    keep_note (t, f);
    idt_future_reset (f);
    look_soon (t);
}

static void event_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    look_soon (arg);
}

static void keys_cb (idt_watcher_t *w, int revents, void *arg)
{
    take_keys (arg);
}

/* --- signals: the handlers of ncurses draw inside the interrupted code --------------------------------------- */

static int block_signals (void)
{
    sigset_t set;

    sigemptyset (&set);
    sigaddset (&set, SIGWINCH);
    sigaddset (&set, SIGTSTP);
    sigprocmask (SIG_BLOCK, &set, NULL);
    return signalfd (-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* Give the terminal to the shell and stop, unless no parent could continue the process. */
static void suspend (void)
{
    screen_end ();
    if (getpgrp () != getsid (0))
        raise (SIGSTOP);
}

static void signal_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct top *t = arg;
    struct signalfd_siginfo info;
    bool any = false;

    while (read (t->signal_fd, &info, sizeof (info)) == sizeof (info)) {
        if (info.ssi_signo == SIGTSTP)
            suspend ();
        any = true;
    }
    if (any) {
        screen_fit ();
        draw (t);
    }
}

/* --- life -------------------------------------------------------------------------------------------- */

static int died (const struct cmd *cmd, const char *why)
{
    screen_end ();
    out_error ("idtree top: %s\n", why);
    return CMD_FAILED;
}

static void begin_screen (struct top *t)
{
    struct cmd *cmd = t->cmd;

    if (!isatty (STDIN_FILENO) || !isatty (STDOUT_FILENO))
        cmd_die (cmd, "stdout is not a terminal: idtree overlay status prints the tree once");
    if ((t->signal_fd = block_signals ()) < 0)
        cmd_die (cmd, "%s", strerror (errno));
    if (screen_begin (color_wanted (cmd, &t->color)) < 0)
        cmd_die (cmd,
                 "TERM says that this terminal is %s, which is unknown here or cannot move its cursor: set TERM "
                 "correctly, or use idtree status",
                 cmd->env.term ? cmd->env.term : "nothing");
    cmd->died = died;
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_EVENT, "*", event_cb, 0 },
    IDT_HANDLERS_END,
};

static void watch (struct top *t)
{
    struct cmd *cmd = t->cmd;
    idt_reactor_t *r = idt_get_reactor (cmd->h);

    t->round = (struct round){ .cmd = cmd, .board = &t->board, .done = done_cb, .arg = t };
    if (!r || !(t->timer = idt_timer_watcher_create (r, t->interval_ms, t->interval_ms, timer_cb, t))
        || (!cmd->json && !(t->keys = idt_fd_watcher_create (r, STDIN_FILENO, IDT_POLLIN, keys_cb, t)))
        || (!cmd->json && !(t->signals = idt_fd_watcher_create (r, t->signal_fd, IDT_POLLIN, signal_cb, t)))
        || idt_handlers_add (cmd->h, handlers, t) < 0)
        cmd_die (cmd, "%s", strerror (errno));
    idt_watcher_start (t->timer);
    if (t->keys)
        idt_watcher_start (t->keys);
    if (t->signals)
        idt_watcher_start (t->signals);
    idt_future_destroy (idt_event_subscribe (cmd->h, ""));
    t->log = ask_stream (cmd, "log.dmesg", IDT_NODEID_ANY, json_pack ("{s:b s:b}", "follow", 1, "nobacklog", 1));
    if (t->log && idt_future_then (t->log, -1, log_cb, t) < 0)
        cmd_die (cmd, "%s", strerror (errno));
}

static int run (struct cmd *cmd)
{
    struct top t = { .cmd = cmd, .interval_ms = INTERVAL_MS };

    top_model_init (&t.board);
    cmd_options (cmd, &t);
    t.view.board = &t.board;
    t.view.selected = t.view.root;
    ask_connect_for (cmd, t.view.root);
    if (!cmd->json)
        begin_screen (&t);
    watch (&t);
    look (&t);
    draw (&t);
    int rc = idt_reactor_run (idt_get_reactor (cmd->h), IDT_REACTOR_DEFAULT);
    int errnum = errno;
    screen_end ();
    if (rc < 0)
        cmd_die (cmd, "connection lost: %s", strerror (errnum));
    /* leave outstanding requests to the kernel */
    cmd_flush (cmd);
    _exit (CMD_OK);
}

/* --- options ----------------------------------------------------------------------------------------- */

static void take_interval (struct cmd *cmd, const char *arg, void *to)
{
    *(double *)to = cmd_seconds (cmd, "interval", arg);
}

static void take_sort (struct cmd *cmd, const char *arg, void *to)
{
    for (enum top_model_sort s = 0; s < SORTS; s++)
        if (!strcmp (arg, top_model_sort_names[s])) {
            *(enum top_model_sort *)to = s;
            return;
        }
    cmd_usage (cmd, "sort '%.64s': tree, rank, host, status, fluid, lease, ids/s or requests/s is needed", arg);
}

static void take_filter (struct cmd *cmd, const char *arg, void *to)
{
    snprintf (to, TOP_MODEL_TEXT_MAX, "%s", arg);
}

#define AT(member) offsetof (struct top, member)

static const struct cmd_option options[] = {
    { 'r', "rank", "RANK", "only that rank and the ranks below it", cmd_take_rank, AT (view.root) },
    { 0, "sort", "SORT", "tree, rank, host, status, fluid, lease, ids/s or requests/s", take_sort, AT (board.sort) },
    { 0, "filter", "TEXT", "only ranks whose number, host or state has TEXT", take_filter, AT (board.filter) },
    { 'i', "interval", "S", "seconds between two rounds if nothing happens (default 1)", take_interval,
      AT (interval_ms) },
    { 'n', "count", "N", "end after N rounds (default: at the key q)", cmd_take_count, AT (left) },
    COLOR_OPTIONS (AT (color)),
    CMD_OPTIONS_END,
};

const struct command top_command = {
    .name = "top",
    .flags = CMD_CONNECTS,
    .summary = "Show ranks, the source and rate of their ids, updated live",
    .details = "Keys: s S sort, r reverse, / filter, Enter subtree, u all, space pause, arrows j k, ? help, q end.",
    .example = "idtree top --sort ids/s",
    .json = "one object a line, for each round",
    .options = options,
    .run = run,
};
