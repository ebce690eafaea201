/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* health.c - idtree health: report the health of a broker, and at rank 0 of its instance, for probes
 *
 * However large the instance is, the command sends only a few requests, concurrently and to one rank, because that rank
 * knows enough about the others.  If the command cannot connect or send, the grade is critical, and the reason is
 * printed like any other reason.
 */
#include <errno.h>

#include "cmd/base/ask.h"
#include "cmd/base/out.h"
#include "cmd/inspect/health_eval.h"
#include "libutil/clock.h"
#include "libutil/duration.h"

#define LEASE_MAX_MS 3600000

static void print_text (const struct judgement *j)
{
    json_t *reason;
    size_t i;

    out_print ("%s", grade_name (j->grade));
    json_array_foreach (j->reasons, i, reason)
        out_print ("%s%s", i > 0 ? "; " : ": ", json_string_value (json_object_get (reason, "why")));
    out_print ("\n");
}

/* 'rank' is left out if no broker could be reached. */
static void print_json (const struct judgement *j)
{
    json_t *o = json_pack ("{s:s s:O}", "status", grade_name (j->grade), "reasons", j->reasons);

    if (j->rank != IDT_NODEID_ANY)
        json_object_set_new (o, "rank", json_integer (j->rank));
    (void)out_json (o, JSON_COMPACT); /* cmd_die () may call this, and ask_print () could call cmd_die () */
    out_print ("\n");
    json_decref (o);
}

static int nobody_text (const struct cmd *cmd, const char *why)
{
    out_print ("%s: %s\n", grade_name (GRADE_CRITICAL), why);
    return GRADE_CRITICAL;
}

static int nobody_json (const struct cmd *cmd, const char *why)
{
    struct judgement j;

    health_eval_begin (&j, IDT_NODEID_ANY, 0);
    health_eval_add (&j, GRADE_CRITICAL, "broker", "%s", why);
    print_json (&j);
    return GRADE_CRITICAL;
}

static uint32_t get_rank (struct cmd *cmd)
{
    idt_future_t *f = ask_wait (cmd, ask_attr (cmd, IDT_NODEID_ANY, "rank"), "rank");
    const char *value;
    uint64_t rank;

    if (idt_rpc_get_unpack (f, "{s:s}", "value", &value) < 0)
        cmd_die (cmd, "rank: the answer has no value");
    if (parse_number (value, 0, UINT32_MAX, &rank) < 0)
        cmd_die (cmd, "rank: '%s' is not a number", value);
    idt_future_destroy (f);
    return (uint32_t)rank;
}

/* Return fluid.lease in ms; 0: unknown, because the rank has never loaded the fluid module. */
static uint64_t get_lease_ms (struct cmd *cmd, uint32_t rank)
{
    idt_future_t *f = ask_attr (cmd, rank, "fluid.lease");
    const char *value;
    uint64_t ms = 0;

    if (idt_rpc_get_unpack (f, "{s:s}", "value", &value) == 0 && parse_duration (value, LEASE_MAX_MS, &ms) < 0)
        ms = 0;
    idt_future_destroy (f);
    return ms;
}

static void take (struct judgement *j, const struct question *q, idt_future_t *f, double left_ms)
{
    json_t *answer;

    if (!f || idt_future_wait (f, left_ms) < 0)
        health_eval_error (j, q, errno, "no broker can be reached");
    else if (idt_rpc_get_unpack (f, "o", &answer) == 0)
        q->judge (j, answer);
    else
        health_eval_error (j, q, errno, idt_future_errnum (f) ? idt_future_error (f) : "malformed answer");
    idt_future_destroy (f);
}

static void ask_all (struct cmd *cmd, struct judgement *j)
{
    uint64_t since_ms = clock_ms (CLOCK_MONOTONIC);
    idt_future_t *f[HEALTH_EVAL_QUESTIONS_MAX] = { NULL };
    const struct question *q;

    for (q = judge_questions; q->topic; q++)
        if (health_eval_asks (q, j->rank))
            f[q - judge_questions] = ask_send (cmd, q->topic, j->rank, json_object ());
    for (q = judge_questions; q->topic; q++)
        if (health_eval_asks (q, j->rank))
            take (j, q, f[q - judge_questions], ask_left_ms (cmd, since_ms));
}

static int run (struct cmd *cmd)
{
    uint32_t rank = IDT_NODEID_ANY;
    struct judgement j;

    cmd_options (cmd, &rank);
    cmd->died = cmd->json ? nobody_json : nobody_text;
    ask_connect_for (cmd, rank);
    if (rank == IDT_NODEID_ANY)
        rank = get_rank (cmd);
    health_eval_begin (&j, rank, get_lease_ms (cmd, rank));
    j.in_flux = ask_is_flux (cmd);
    ask_all (cmd, &j);
    if (cmd->json)
        print_json (&j);
    else
        print_text (&j);
    json_decref (j.reasons);
    return (int)j.grade;
}

static const struct cmd_option options[] = {
    { 'r', "rank", "R", "rank to check (default: the broker of the URI); 0: the instance", cmd_take_rank, 0 },
    CMD_OPTIONS_END,
};

const struct command health_command = {
    .name = "health",
    .flags = CMD_CONNECTS,
    .summary = "Report the health of a broker, at rank 0 of its instance: one line, and the exit status",
    .details = "Exit status: 0 good; 1 degraded: ids are made, but an operator should look; 2 critical: ids are\nnot "
               "made, or soon will not be, or no broker answers.",
    .example = "idtree health --timeout 5 || alert",
    .json = "one object",
    .options = options,
    .run = run,
};
