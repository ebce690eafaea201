/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* screen.c - show a top_model on a terminal (ncurses)
 *
 * From top to bottom: a line about all ranks, a line with the selected view, titles, ranks, and the last line of the
 * log.
 */
#include <inttypes.h>
#include <ncurses.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cmd/base/out.h"
#include "cmd/top/screen.h"

#define HEAD 3 /* lines above the ranks */
#define FOOT 1
#define ESCAPE 27
#define REDRAW 12          /* Ctrl-L */
#define ESCAPE_MS 25       /* limit for the rest of an escape sequence of a key */
#define SIZE_MAX_USED 1000 /* lines and columns; ncurses counts in short */
#define RANK_MAX 40        /* columns of a rank with its indentation, and of a host */
#define HOST_MAX 20
#define NAME_MIN 4 /* least columns of both: their titles */
#define OTHERS 60  /* columns of all others, with blanks between */

enum pair { PAIR_WARNING = 1, PAIR_BAD };

/* "dumb" terminals and printers cannot place the cursor: the screen would be scrambled. */
static bool can_move (void)
{
    const char *cup = tigetstr ("cup");

    return cup && cup != (const char *)-1;
}

/* The size of the terminal, up to SIZE_MAX_USED.  Returns false if the terminal does not report it. */
static bool get_size (int *lines, int *columns)
{
    struct winsize size;

    if (ioctl (STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row == 0 || size.ws_col == 0)
        return false;
    *lines = size.ws_row < SIZE_MAX_USED ? size.ws_row : SIZE_MAX_USED;
    *columns = size.ws_col < SIZE_MAX_USED ? size.ws_col : SIZE_MAX_USED;
    return true;
}

int screen_begin (bool color)
{
    int lines, columns;
    char text[16];

    if (get_size (&lines, &columns) && (lines == SIZE_MAX_USED || columns == SIZE_MAX_USED)) {
        snprintf (text, sizeof (text), "%d", lines);
        setenv ("LINES", text, 1); /* newterm () prefers it to the terminal's size */
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

void screen_fit (void)
{
    int lines, columns;

    if (get_size (&lines, &columns))
        resizeterm (lines, columns);
    clear (); /* the terminal may have kept old text */
}

void screen_end (void)
{
    if (stdscr && !isendwin ())
        endwin ();
}

/* --- keys -------------------------------------------------------------------------------------------- */

int screen_key (void)
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
        clear (); /* the terminal may have kept old text */
    return c == ERR ? 0 : c;
}

/* --- what is drawn ----------------------------------------------------------------------------------- */

static void put_line (int y, int attributes, const char *text)
{
    attrset (attributes);
    move (y, 0);
    clrtoeol ();
    addnstr (text, COLS > 0 ? COLS - 1 : 0);
    attrset (A_NORMAL);
}

static void describe_all (const struct view *v, const struct screen_text *t, char *buf, size_t size)
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
              v->paused ? "  PAUSED" : "", more, t->uri);
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

/* --- columns ----------------------------------------------------------------------------------------- */

/* Ranks and hosts get the columns that they need; hosts get at most the columns that are left, as the figures to their
 * right matter more.
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

void screen_draw (struct view *v, const struct screen_text *t)
{
    struct widths w = measure (v);
    char text[512];

    v->lines = LINES > HEAD + FOOT ? (size_t)(LINES - HEAD - FOOT) : 0;
    describe_all (v, t, text, sizeof (text));
    put_line (0, A_BOLD, text);
    describe_choice (v, text, sizeof (text));
    put_line (1, A_NORMAL, text);
    snprintf (text, sizeof (text), "%-*s %-*s %-9s %-9s %8s %8s %9s %10s", w.rank, "RANK", w.host, "HOST", "STATUS",
              "FLUID", "IDS-FROM", "LEASE", "IDS/S", "REQUESTS/S");
    put_line (2, A_UNDERLINE, text);
    draw_rows (v, &w);
    put_line (LINES - 1, A_DIM, t->note);
    redrawwin (stdscr); /* idtree start may have printed messages about its brokers on the same terminal */
    refresh ();
}
