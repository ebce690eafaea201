/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* overlay.c - idtree overlay status: the state of each rank, now or after it has reached a given state */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/base/ask.h"
#include "cmd/base/cmd.h"
#include "cmd/inspect/overlay.h"
#include "libutil/clock.h"

#define MANY_RANKS 256    /* more ranks are shown as sets, except with --all */
#define LOOK_AGAIN_MS 100 /* interval while waiting for a state */

static const char *const states[] = { "full", "partial", "degraded", "lost", NULL };

struct overlay_options {
    struct overlay_view view;
    bool all, summary, check;
    const char *wait;
};

enum mood overlay_mood (const char *state)
{
    if (!strcmp (state, "full"))
        return MOOD_GOOD;
    return !strcmp (state, "lost") || !strcmp (state, "offline") || !strcmp (state, "no answer") ? MOOD_BAD
                                                                                                 : MOOD_WARNING;
}

/* Write the state of a rank's subtree, as the rank reports it, into 'state'; "lost": it cannot be reached. */
static void get_state (struct cmd *cmd, uint32_t rank, char state[OVERLAY_STATE_SIZE])
{
    idt_future_t *f = ask_ready (cmd, ask_send (cmd, "overlay.health", rank, NULL), "state");
    const char *status;

    if (idt_future_errnum (f) == EHOSTUNREACH)
        status = "lost";
    else if (idt_rpc_get_unpack (ask_wait (cmd, f, "state"), "{s:s}", "status", &status) < 0)
        cmd_die (cmd, "state: the answer has no state");
    snprintf (state, OVERLAY_STATE_SIZE, "%s", status);
    idt_future_destroy (f);
}

/* --- waiting -------------------------------------------------------------------------------------- */

static void check_state_name (struct cmd *cmd, const char *name)
{
    for (int i = 0; states[i]; i++)
        if (!strcmp (states[i], name))
            return;
    cmd_usage (cmd, "'%.64s' is not a state to wait for: full, partial, degraded or lost", name);
}

/* Wait for the state for at most --timeout in total, as it may never be reached. */
static void await_state (struct cmd *cmd, const struct overlay_options *o)
{
    uint64_t since_ms = clock_ms (CLOCK_MONOTONIC);
    char state[OVERLAY_STATE_SIZE];

    for (;;) {
        get_state (cmd, o->view.rank, state);
        if (!strcmp (state, o->wait))
            return;
        if (ask_left_ms (cmd, since_ms) == 0)
            cmd_die (cmd, "rank %" PRIu32 " is %s, not %s, after %g s (--timeout)", o->view.rank, state, o->wait,
                     cmd->timeout_ms / 1000);
        clock_sleep_ns (LOOK_AGAIN_MS * INT64_C (1000000));
    }
}

/* --- the command ---------------------------------------------------------------------------------- */

static void show (const struct overlay_options *o)
{
    const struct overlay_view *v = &o->view;

    if (o->summary || v->fluid || (!o->all && overlay_subtree_size (v->cmd, v->rank) > MANY_RANKS))
        overlay_print_sets (v);
    else
        overlay_print_tree (v);
}

static int run (struct cmd *cmd)
{
    struct overlay_options o = { .view = { .cmd = cmd } };
    char state[OVERLAY_STATE_SIZE];

    cmd_options (cmd, &o);
    o.view.json = cmd->json;
    if (o.wait)
        check_state_name (cmd, o.wait);
    ask_connect_for (cmd, o.view.rank);
    if (o.wait)
        await_state (cmd, &o);
    show (&o);
    if (!o.check)
        return CMD_OK;
    get_state (cmd, o.view.rank, state);
    return overlay_mood (state) == MOOD_GOOD ? 0 : overlay_mood (state) == MOOD_WARNING ? 1 : 2;
}

#define AT(member) offsetof (struct overlay_options, member)

static const struct cmd_option options[] = {
    { 'r', "rank", "RANK", "only that rank and the ranks below it", cmd_take_rank, AT (view.rank) },
    { 0, "summary", NULL, "each state with its set of ranks, as for more than 256 ranks", cmd_take_flag, AT (summary) },
    { 0, "fluid", NULL, "as --summary, with the states of generators", cmd_take_flag, AT (view.fluid) },
    { 0, "all", NULL, "a line for each rank, also for more than 256", cmd_take_flag, AT (all) },
    { 0, "down", NULL, "only ranks that are not full", cmd_take_flag, AT (view.down) },
    { 0, "wait", "STATE", "first wait until RANK (0) is full, partial, degraded or lost", cmd_take_text, AT (wait) },
    { 0, "check", NULL, "exit status 0: full, 1: partial or degraded, 2: lost", cmd_take_flag, AT (check) },
    COLOR_OPTIONS (AT (view.color)),
    CMD_OPTIONS_END,
};

const struct command overlay_status_command = {
    .name = "overlay status",
    .flags = CMD_CONNECTS,
    .summary = "Show the tree, the state of each rank, and where its ids come from",
    .details = "STATUS: full, partial (ranks below are offline), degraded (ranks below are lost), lost, "
               "offline;\n\"via R\": its parent is lost, it is attached to rank R.\nFLUID: active (makes ids), idle "
               "(no generator: its ids come from IDS-FROM), fenced (waits for a\nlease), borrowing (makes ids with "
               "some of the sequence numbers of another rank's GENERATOR);\nat rank 0 also the problem of the store "
               "of its horizon, if any.",
    .example = "idtree overlay status --wait=full --down",
    .json = "one object",
    .options = options,
    .run = run,
};
