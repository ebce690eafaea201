/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* id_new.c - idtree id new: get ids from the instance
 *
 * Many ids are asked for in pieces, of which a few are on their way at any time, and printed in
 * the order of the requests: what one connection gets strictly increases only from one answer to
 * the next request, so that the pieces of a window may interleave in time, but never repeat.
 */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <idtree/generate.h>

#include "cmd/ask.h"
#include "cmd/commands.h"
#include "cmd/idtext.h"

#define WINDOW 4 /* pieces on their way */
#define FORMS_MAX 8
#define COUNT_MAX UINT64_C (1000000000000)
#define OUTPUT_BUFFER (256 * 1024) /* bytes */

enum { OPT_JSON = CMD_LONG };

struct piece {
    idt_future_t *f;
    uint32_t n;
};

struct new {
    struct cmd *cmd;
    uint64_t count;
    uint32_t rank;
    bool json;
    bool generator;
    enum fluid_form forms[FORMS_MAX];
    int nforms;
    idt_t *h;
};

/* --- output ----------------------------------------------------------------------------------- */

static void print_text (struct new *new, fluid_t id)
{
    char buf[FLUID_STRING_MAX];

    for (int i = 0; i < new->nforms; i++) {
        if (i > 0)
            putchar_unlocked ('\t');
        fputs_unlocked (idtext (id, new->forms[i], buf), stdout);
    }
    if (new->generator)
        printf ("\t%" PRIu32, fluid_split (id).generator);
    putchar_unlocked ('\n');
}

/* No text of an id needs escaping. */
static void print_json (struct new *new, fluid_t id)
{
    char buf[FLUID_STRING_MAX];

    putchar_unlocked ('{');
    for (int i = 0; i < new->nforms; i++)
        printf ("%s\"%s\":\"%s\"", i > 0 ? "," : "", fluid_form_name (new->forms[i]),
                idtext (id, new->forms[i], buf));
    if (new->generator)
        printf (",\"generator\":%" PRIu32, fluid_split (id).generator);
    fputs_unlocked ("}\n", stdout);
}

/* --- requests --------------------------------------------------------------------------------- */

/* As idt_fluid_generate_async () asks the nearest rank: u32 count, u64 after. */
static idt_future_t *ask_rank (idt_t *h, uint32_t n, uint32_t rank)
{
    uint8_t request[12] = { 0 };
    uint32_t count = htobe32 (n);

    memcpy (request, &count, sizeof (count));
    return idt_rpc_raw (h, "fluid.block", request, sizeof (request), rank, 0);
}

/* Send the request of one more piece of the 'left' ids that were not asked for yet. */
static struct piece ask (struct new *new, uint64_t left)
{
    struct piece p = { .n = left < IDT_FLUID_MAX_COUNT ? left : IDT_FLUID_MAX_COUNT };

    p.f = new->rank == IDT_NODEID_ANY ? idt_fluid_generate_async (new->h, p.n)
                                      : ask_rank (new->h, p.n, new->rank);
    return p;
}

static void take (struct new *new, struct piece *p, fluid_t *ids)
{
    char whom[32], what[64];

    snprintf (what, sizeof (what), "%s gave no ids", ask_whom (new->rank, whom));
    ask_wait (new->cmd, p->f, what);
    if (idt_fluid_generate_get (p->f, p->n, ids) < 0)
        cmd_die (new->cmd, "%s: %s", what, strerror (errno));
    idt_future_destroy (p->f);
    for (uint32_t i = 0; i < p->n; i++)
        (new->json ? print_json : print_text) (new, ids[i]);
}

static void generate (struct new *new)
{
    struct piece pieces[WINDOW];
    uint64_t asked = 0, taken = 0;
    unsigned head = 0, tail = 0;
    fluid_t *ids = calloc (IDT_FLUID_MAX_COUNT, sizeof (ids[0]));

    if (!ids)
        cmd_die (new->cmd, "out of memory");
    while (taken < new->count) {
        for (; asked < new->count && head - tail < WINDOW; head++) {
            pieces[head % WINDOW] = ask (new, new->count - asked);
            asked += pieces[head % WINDOW].n;
        }
        struct piece *p = &pieces[tail++ % WINDOW];
        take (new, p, ids);
        taken += p->n;
    }
    free (ids);
}

static void take_option (struct new *new, int key, const char *arg)
{
    switch (key) {
    case 'n':
        new->count = cmd_number (new->cmd, "count", arg, 1, COUNT_MAX);
        break;
    case 'g':
        new->generator = true;
        break;
    case 't':
        if (new->nforms == FORMS_MAX)
            cmd_usage (new->cmd, "more than %d forms", FORMS_MAX);
        new->forms[new->nforms++] = idtext_form (new->cmd, arg);
        break;
    case 'r':
        new->rank = cmd_rank (new->cmd, arg);
        break;
    case OPT_JSON:
        new->json = true;
        break;
    }
}

static int run (struct cmd *cmd)
{
    struct new new = { .cmd = cmd, .count = 1, .rank = IDT_NODEID_ANY };
    const char *arg;
    int key;

    while ((key = cmd_option (cmd, &arg)) != -1)
        take_option (&new, key, arg);
    if (new.nforms == 0)
        new.forms[new.nforms++] = FLUID_F58;
    setvbuf (stdout, NULL, _IOFBF, OUTPUT_BUFFER);
    new.h = cmd_connect (cmd);
    generate (&new);
    idt_close (new.h);
    return cmd_flush (cmd);
}

static const struct cmd_option options[] = {
    { 'n', "count", "N", "how many (default 1)" },
    { 'r', "rank", "R", "from rank R (default: the broker of the URI)" },
    { 't', "to", "FORM", "dec, hex, dothex, f58, ƒ58, words, emoji; again: one column more" },
    { 'g', "generator", NULL, "a column with the generator that made the id" },
    { OPT_JSON, "json", NULL, "one object a line" },
    CMD_OPTIONS_END,
};

const struct command id_new_command = {
    .name = "id new",
    .flags = CMD_CONNECTS,
    .summary = "Get new ids from the instance, one a line (default: in F58)",
    .example = "idtree id new -n 3 --to f58 --to words",
    .options = options,
    .run = run,
};
