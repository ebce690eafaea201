/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* candidates.c - the possible values of an argument, by its name in the usage line */
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/base/ask.h"
#include "cmd/base/out.h"
#include "cmd/candidates.h"
#include "cmd/id/scheme.h"
#include "libutil/text.h"

#define ASK_MS 1000. /* the longest that the user waits while typing */
#define RANKS_MAX 256
#define NAME_LEN 64

/* Offer 'word', unless it has control characters, as a name that a user chose may: it could not be typed as it is
 * shown.
 */
void candidates_offer (const struct candidates *c, const char *word)
{
    if (!strncmp (word, c->typed, strlen (c->typed)) && utf8_span_printable (word, strlen (word)) == strlen (word))
        out_print ("%.*s%s\n", (int)c->before_len, c->before ? c->before : "", word);
}

/* --- of ids ---------------------------------------------------------------------------------- */

static void offer_forms (const struct candidates *c)
{
    const struct scheme *scheme = c->scheme ? scheme_find (c->scheme) : scheme_at (0);

    for (int i = 0; scheme && scheme->forms[i]; i++)
        candidates_offer (c, scheme->forms[i]);
}

static void offer_schemes (const struct candidates *c)
{
    for (int i = 0; i < SCHEME_COUNT; i++)
        candidates_offer (c, scheme_at (i)->name);
}

/* --- of the instance ------------------------------------------------------------------------- */

/* The answer of a broker, or of the broker of --rank; NULL: no answer. */
static json_t *ask_quietly_new (const struct candidates *c, const char *topic, uint32_t nodeid, const char *request)
{
    struct cmd *cmd = c->cmd;
    const char *text;
    json_t *o = NULL;

    if (!cmd->h)
        cmd->h = idt_open_ex (cmd->uri, &(struct idt_open_options){ .flags = IDT_O_NORECONNECT, .timeout_ms = ASK_MS },
                              NULL);
    if (!cmd->h)
        return NULL;
    idt_future_t *f = idt_rpc (cmd->h, topic, request, nodeid, 0);
    if (f && idt_future_wait (f, ASK_MS) == 0 && idt_rpc_get (f, &text) == 0 && text)
        o = json_loads (text, 0, NULL);
    idt_future_destroy (f);
    return o;
}

static uint32_t rank_of (const struct candidates *c)
{
    return c->rank && isdigit ((unsigned char)*c->rank) ? (uint32_t)strtoul (c->rank, NULL, 10) : IDT_NODEID_ANY;
}

/* Offer the strings of an array, or of a member of its objects. */
static void offer_strings (const struct candidates *c, const json_t *array, const char *member)
{
    size_t i;
    json_t *o;

    json_array_foreach ((json_t *)array, i, o) {
        const char *s = json_string_value (member ? json_object_get (o, member) : o);

        if (s)
            candidates_offer (c, s);
    }
}

static void offer_attributes (const struct candidates *c)
{
    json_t *o = ask_quietly_new (c, "attr.list", rank_of (c), "{}");

    offer_strings (c, json_object_get (o, "names"), NULL);
    json_decref (o);
}

static void offer_modules (const struct candidates *c)
{
    json_t *o = ask_quietly_new (c, "module.list", rank_of (c), NULL);

    offer_strings (c, json_object_get (o, "mods"), "name");
    json_decref (o);
}

static void offer_services (const struct candidates *c)
{
    json_t *o = ask_quietly_new (c, "module.list", IDT_NODEID_ANY, NULL), *m;
    size_t i;

    json_array_foreach (json_object_get (o, "mods"), i, m)
        offer_strings (c, json_object_get (m, "services"), NULL);
    json_decref (o);
}

static void offer_documents (const struct candidates *c)
{
    json_t *o = ask_quietly_new (c, "compressor.list", IDT_NODEID_ANY, "{}");

    offer_strings (c, json_object_get (o, "documents"), "document");
    json_decref (o);
}

/* An attribute of the connected broker, for free (); NULL: unknown. */
static char *attribute_new (const struct candidates *c, const char *request)
{
    json_t *o = ask_quietly_new (c, "attr.get", IDT_NODEID_ANY, request);
    const char *value = json_string_value (json_object_get (o, "value"));
    char *copy = value ? strdup (value) : NULL;

    json_decref (o);
    return copy;
}

static void offer_ranks (const struct candidates *c)
{
    char *text = attribute_new (c, "{\"name\":\"size\"}"), word[16];
    unsigned long size = text ? strtoul (text, NULL, 10) : 0;

    for (unsigned long rank = 0; rank < size && rank < RANKS_MAX; rank++) {
        snprintf (word, sizeof (word), "%lu", rank);
        candidates_offer (c, word);
    }
    free (text);
}

static void offer_rank_sets (const struct candidates *c)
{
    candidates_offer (c, "all");
    offer_ranks (c);
}

/* Offer the ranks at the other ends of a broker's links. */
static void offer_neighbours (const struct candidates *c)
{
    json_t *o = ask_quietly_new (c, "overlay.stats-get", rank_of (c), NULL), *link;
    char word[16];
    size_t i;

    json_array_foreach (json_object_get (o, "links"), i, link) {
        snprintf (word, sizeof (word), "%" JSON_INTEGER_FORMAT, json_integer_value (json_object_get (link, "rank")));
        candidates_offer (c, word);
    }
    json_decref (o);
}

/* Offer the possible peers of a broker: kinds, modules, ranks. */
static void offer_peers (const struct candidates *c)
{
    static const char *const kinds[] = { "client", "module", "broker", "child", "parent" };

    for (size_t i = 0; i < sizeof (kinds) / sizeof (kinds[0]); i++)
        candidates_offer (c, kinds[i]);
    offer_modules (c);
    offer_neighbours (c);
}

/* Offer the modules in a folder, without .so. */
static void offer_files (const struct candidates *c, const char *dir)
{
    DIR *d = opendir (dir);
    struct dirent *entry;
    char word[NAME_LEN];

    while (d && (entry = readdir (d))) {
        size_t len = strlen (entry->d_name);

        if (len <= 3 || len >= sizeof (word) || strcmp (entry->d_name + len - 3, ".so"))
            continue;
        snprintf (word, sizeof (word), "%.*s", (int)(len - 3), entry->d_name);
        candidates_offer (c, word);
    }
    if (d)
        closedir (d);
}

/* Offer the modules that can be loaded.  It assumes that the broker runs on this host. */
static void offer_module_files (const struct candidates *c)
{
    char *path = attribute_new (c, "{\"name\":\"module.path\"}"), *save = NULL;

    for (char *dir = path ? strtok_r (path, ":", &save) : NULL; dir; dir = strtok_r (NULL, ":", &save))
        offer_files (c, dir);
    free (path);
}

/* --- all ------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*offer) (const struct candidates *c); /* NULL: 'words' */
    const char *words;
} kinds[] = {
    { "ATTRIBUTE", offer_attributes, NULL },
    { "DOCUMENT", offer_documents, NULL },
    { "FORM", offer_forms, NULL },
    { "FORMAT", NULL, "openmetrics|prometheus" },
    { "KIND", NULL, "local|global" },
    { "LEVEL", NULL, "emerg|alert|crit|err|warning|notice|info|debug" },
    { "MODULE", offer_modules, NULL },
    { "PATH", offer_module_files, NULL },
    { "PEER", offer_peers, NULL },
    { "R", offer_ranks, NULL },
    { "RANK", offer_ranks, NULL },
    { "RANKS", offer_rank_sets, NULL },
    { "SCHEME", offer_schemes, NULL },
    { "SERVICE", offer_services, NULL },
    { "SIG", NULL, "KILL|TERM|INT|HUP|STOP|CONT|ABRT|SEGV" },
    { "SORT", NULL, "tree|rank|host|status|fluid|lease|ids/s|requests/s" },
    { "STATE", NULL, "full|partial|degraded|lost" },
    { "T", NULL, "kary:|mincrit|binomial|custom:" },
    { "TYPES", NULL, "request|response|event|control" },
    { "U", NULL, "hold|default|expedite" },
    { "WHEN", NULL, "auto|always|never" },
};

static void offer_kind (const struct candidates *c, size_t kind)
{
    char words[128], *save = NULL;

    if (kinds[kind].offer) {
        kinds[kind].offer (c);
        return;
    }
    snprintf (words, sizeof (words), "%s", kinds[kind].words);
    for (char *word = strtok_r (words, "|", &save); word; word = strtok_r (NULL, "|", &save))
        candidates_offer (c, word);
}

void candidates_of (const struct candidates *c, const char *name)
{
    char names[128], *save = NULL;

    snprintf (names, sizeof (names), "%s", name);
    for (char *word = strtok_r (names, "|", &save); word; word = strtok_r (NULL, "|", &save)) {
        if (islower ((unsigned char)*word))
            candidates_offer (c, word);
        for (size_t i = 0; i < sizeof (kinds) / sizeof (kinds[0]); i++)
            if (!strcmp (kinds[i].name, word))
                offer_kind (c, i);
    }
}
