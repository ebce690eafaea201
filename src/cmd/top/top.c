/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* top.c - idtree top: the ranks of an instance on a terminal (ncurses), updated live
 *
 * A round begins after each --interval, and soon after an event or a new line of the connected broker's log, because
 * brokers log changes of the tree.  All lines and events within SOON_MS cause one round.
 *
 * The screen has, from top to bottom: a line about all ranks, a line about the selected view, the titles, the ranks,
 * and the last line of the log.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <ncurses.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <idtree/reactor.h>

#include "cmd/base/ask.h"
#include "cmd/base/cmd.h"
#include "cmd/base/out.h"
#include "cmd/base/table.h"
#include "cmd/top/poll.h"
#include "cmd/top/top_model.h"
#include "libutil/text.h"

#define INTERVAL_MS 1000.
#define SOON_MS 50.
#define NOTE_MAX 512
#define HEAD 3 /* number of lines above the ranks */
#define FOOT 1
#define ESCAPE 27
#define REDRAW 12          /* Ctrl-L */
#define ESCAPE_MS 25       /* how long to wait for the rest of a key's escape sequence */
#define SIZE_MAX_USED 1000 /* limit of lines and of columns; ncurses counts them in a short */
#define RANK_MAX 40        /* largest width of a rank with its indentation, and of a host */
#define HOST_MAX 20
#define NAME_MIN 4 /* smallest width of both, which their titles need */
#define OTHERS 60  /* width of all other columns, with the blanks between them */

enum pair { PAIR_WARNING = 1, PAIR_BAD };

/* --- the screen -------------------------------------------------------------------------------------- */

/* Whether the terminal can move its cursor.  "dumb" terminals and printers cannot, so the screen would be scrambled. */
static bool can_move (void)
{
    const char *cup = tigetstr ("cup");

    return cup && cup != (const char *)-1;
}

/* Get the size of the terminal, with at most SIZE_MAX_USED lines and columns.  Returns false if the terminal does not
 * report its size.
 */
static bool get_size (int *lines, int *columns)
{
    struct winsize size;

    if (ioctl (STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row == 0 || size.ws_col == 0)
        return false;
    *lines = size.ws_row < SIZE_MAX_USED ? size.ws_row : SIZE_MAX_USED;
    *columns = size.ws_col < SIZE_MAX_USED ? size.ws_col : SIZE_MAX_USED;
    return true;
}

/* Take over the terminal.  Returns 0, or -1 if TERM names an unknown terminal, or a terminal that cannot move its
 * cursor.
 */
static int screen_begin (bool color)
{
    int lines, columns;
    char text[16];

    if (get_size (&lines, &columns) && (lines == SIZE_MAX_USED || columns == SIZE_MAX_USED)) {
        snprintf (text, sizeof (text), "%d", lines);
        setenv ("LINES", text, 1); /* newterm () prefers this variable to the terminal's own size */
        snprintf (text, sizeof (text), "%d", columns);
        setenv ("COLUMNS", text, 1);
    }
    SCREEN *s = newterm (NULL, stdout, stdin);
    if (!s)
        return -1;
    if (!can_move ()) {
        endwin ();
        delscreen (s);
        return -1;
    }
    cbreak ();
    noecho ();
    nonl ();
    keypad (stdscr, true);
    nodelay (stdscr, true);
    set_escdelay (ESCAPE_MS);
    curs_set (0);
    if (color && start_color () == OK && use_default_colors () == OK) {
        init_pair (PAIR_WARNING, COLOR_YELLOW, -1);
        init_pair (PAIR_BAD, COLOR_RED, -1);
    }
    return 0;
}

/* Adapt to the terminal's size, and redraw, after the size or the view has changed. */
static void screen_fit (void)
{
    int lines, columns;

    if (get_size (&lines, &columns))
        resizeterm (lines, columns);
    clear (); /* the terminal may still show old text */
}

/* Restore the terminal.  Further calls have no effect. */
static void screen_end (void)
{
    if (stdscr && !isendwin ())
        endwin ();
}

/* --- the screen: keys -------------------------------------------------------------------------------- */

/* Return the next key: an enum view_key, or a typed letter; 0: no key was pressed. */
static int screen_key (void)
{
    static const struct {
        int curses, key;
    } keys[] = {
        { KEY_UP, VIEW_UP },           { KEY_DOWN, VIEW_DOWN }, { KEY_PPAGE, VIEW_PAGE_UP },
        { KEY_NPAGE, VIEW_PAGE_DOWN }, { KEY_HOME, VIEW_HOME }, { KEY_END, VIEW_END },
        { KEY_ENTER, VIEW_ENTER },     { '\r', VIEW_ENTER },    { '\n', VIEW_ENTER },
        { KEY_BACKSPACE, VIEW_BACK },  { '\b', VIEW_BACK },     { 0x7f, VIEW_BACK },
        { ESCAPE, VIEW_ESCAPE },
    };
    int c = getch ();

    for (size_t i = 0; i < sizeof (keys) / sizeof (keys[0]); i++)
        if (keys[i].curses == c)
            return keys[i].key;
    if (c == KEY_RESIZE || c == REDRAW)
        clear (); /* the terminal may still show old text */
    return c == ERR ? 0 : c;
}

/* --- the screen: what is drawn ----------------------------------------------------------------------- */

static void put_line (int y, int attributes, const char *text)
{
    attrset (attributes);
    move (y, 0);
    clrtoeol ();
    addnstr (text, COLS > 0 ? COLS - 1 : 0);
    attrset (A_NORMAL);
}

static void describe_all (const struct view *v, const char *uri, char *buf, size_t size)
{
    const struct top_model *b = v->board;
    size_t bad = 0;

    for (size_t i = 0; i < b->n; i++)
        bad += strcmp (b->rows[i].status, "full") != 0;
    char state[64] = "all full", shown[64] = "", more[96] = "";

    if (bad > 0)
        snprintf (state, sizeof (state), "%zu not full", bad);
    if (b->nshown < b->n)
        snprintf (shown, sizeof (shown), ", %zu shown", b->nshown);
    if (b->left_out > 0)
        snprintf (more, sizeof (more), "  %zu more are left out: select a subtree", b->left_out);
    snprintf (buf, size, "ranks %zu, %s%s  ids/s %.0f%s%s  %s", b->n, state, shown, top_model_ids_s (b),
              v->paused ? "  PAUSED" : "", more, uri);
}

static void describe_choice (const struct view *v, char *buf, size_t size)
{
    const char *filter = v->board->filter, *order = v->board->reverse ? ", reversed" : "";
    char of[32] = "all ranks";

    if (v->root > 0)
        snprintf (of, sizeof (of), "below rank %" PRIu32, v->root);
    if (v->help)
        snprintf (buf, size, "s S: sort  r: reverse  /: filter  Enter: subtree  u: all  space: pause  q: end");
    else
        snprintf (buf, size, "%s, by %s%s%s%s%s   (?: keys)", of, top_model_sort_names[v->board->sort], order,
                  *filter || v->typing ? ", filter: " : "", filter, v->typing ? "_" : "");
}

/* --- the screen: columns ----------------------------------------------------------------------------- */

/* The widths of the columns for ranks and hosts.  Both get what they need.  But hosts get at most what the other
 * columns leave, because the figures to their right are more important.
 */
struct widths {
    int rank, host;
};

static int indent_of (const struct view *v, const struct top_model_row *row)
{
    return v->board->sort == SORT_TREE && !v->board->reverse ? (int)row->depth * 2 : 0;
}

static void write_rank (const struct view *v, const struct top_model_row *row, char buf[RANK_MAX + 1])
{
    int indent = indent_of (v, row), most = RANK_MAX - 10;

    snprintf (buf, RANK_MAX + 1, "%*s%" PRIu32, indent < most ? indent : most, "", row->rank);
}

static int larger (int a, int b)
{
    return a > b ? a : b;
}

static struct widths measure (const struct view *v)
{
    struct widths w = { NAME_MIN, NAME_MIN };
    char rank[RANK_MAX + 1];

    for (size_t i = 0; i < v->board->n; i++) {
        write_rank (v, &v->board->rows[i], rank);
        w.rank = larger (w.rank, (int)strlen (rank));
        w.host = larger (w.host, (int)strnlen (v->board->rows[i].host, HOST_MAX));
    }
    if (w.host > COLS - 1 - OTHERS - w.rank)
        w.host = larger (COLS - 1 - OTHERS - w.rank, NAME_MIN);
    return w;
}

static void describe_lease (const struct top_model_row *row, char *buf, size_t size)
{
    if (row->lease_ms < 0)
        snprintf (buf, size, "-");
    else
        snprintf (buf, size, "%.1fs", (double)row->lease_ms / 1000);
}

static void describe_row (const struct view *v, const struct widths *w, const struct top_model_row *row, char *buf,
                          size_t size)
{
    char rank[RANK_MAX + 1], lease[32], from[32] = "-";

    write_rank (v, row, rank);
    describe_lease (row, lease, sizeof (lease));
    if (row->from >= 0)
        snprintf (from, sizeof (from), "%" PRId64, row->from);
    snprintf (buf, size, "%-*s %-*.*s %-9.9s %-9.9s %8s %8s %9.0f %10.0f", w->rank, rank, out_pad (row->host, w->host),
              w->host, row->host, row->status, row->fluid, from, lease, row->ids_s, row->requests_s);
}

static int color_of (const struct top_model_row *row)
{
    if (!strcmp (row->status, "lost") || !strcmp (row->status, "no answer"))
        return COLOR_PAIR (PAIR_BAD);
    return strcmp (row->status, "full") ? COLOR_PAIR (PAIR_WARNING) : A_NORMAL;
}

static void draw_rows (struct view *v, const struct widths *w)
{
    char text[512];
    size_t place = view_place (v);

    for (size_t i = 0; i < v->lines; i++) {
        size_t at = v->first + i;

        text[0] = '\0';
        const struct top_model_row *row = at < v->board->nshown ? top_model_row (v->board, v->board->shown[at]) : NULL;
        if (row)
            describe_row (v, w, row, text, sizeof (text));
        put_line (HEAD + (int)i, row ? color_of (row) | (at == place ? A_REVERSE : 0) : A_NORMAL, text);
    }
}

/* Draw the screen.  'note' is the last line of the log, or empty. */
static void screen_draw (struct view *v, const char *uri, const char *note)
{
    struct widths w = measure (v);
    char text[512];

    v->lines = LINES > HEAD + FOOT ? (size_t)(LINES - HEAD - FOOT) : 0;
    describe_all (v, uri, text, sizeof (text));
    put_line (0, A_BOLD, text);
    describe_choice (v, text, sizeof (text));
    put_line (1, A_NORMAL, text);
    snprintf (text, sizeof (text), "%-*s %-*s %-9s %-9s %8s %8s %9s %10s", w.rank, "RANK", w.host, "HOST", "STATUS",
              "FLUID", "IDS-FROM", "LEASE", "IDS/S", "REQUESTS/S");
    put_line (2, A_UNDERLINE, text);
    draw_rows (v, &w);
    put_line (LINES - 1, A_DIM, note);
    redrawwin (stdscr); /* idtree start may have printed messages about its brokers to this terminal */
    refresh ();
}

struct top {
    struct cmd *cmd;
    struct top_model board;
    struct view view;
    struct round round;
    uint64_t left; /* number of rounds to show; 0: no limit */
    double interval_ms;
    struct color color;
    idt_watcher_t *timer, *keys, *signals;
    int signal_fd;
    idt_future_t *log;
    bool again; /* a line or an event came while a round was running */
    bool soon;  /* a line or an event came, and the timer is set for a round */
    char note[NOTE_MAX];
};

static void draw (struct top *t)
{
    if (!t->cmd->json)
        screen_draw (&t->view, ask_uri (t->cmd), t->note);
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

/* --- events and the log ------------------------------------------------------------------------------ */

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

/* If the user may not read the log, all else is shown nevertheless. */
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

/* --- signals: the handlers of ncurses draw inside the interrupted code ------------------------------- */

static int block_signals (void)
{
    sigset_t set;

    sigemptyset (&set);
    sigaddset (&set, SIGWINCH);
    sigaddset (&set, SIGTSTP);
    sigprocmask (SIG_BLOCK, &set, NULL);
    return signalfd (-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* Return the terminal to the shell and stop this process, unless the process has no parent that could continue it. */
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
    /* _exit () does not wait for pending requests: the kernel closes the connection */
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
