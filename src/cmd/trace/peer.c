/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* peer.c - the filter of idtree trace --peer
 *
 * A trace of a peer that does not exist would look like one of a silent peer.  So the command first checks that the
 * peer exists.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/base/ask.h"
#include "cmd/trace/peer.h"

#define LIST_SIZE 128 /* bytes of a list in a message; a longer list ends with "..." */

/* --- lists -------------------------------------------------------------------------------------------- */

static bool has_rank (const json_t *list, uint32_t rank)
{
    size_t i;
    json_t *o;

    json_array_foreach (list, i, o)
        if (json_integer_value (json_object_get (o, "rank")) == (json_int_t)rank)
            return true;
    return false;
}

static bool has_name (const json_t *list, const char *name)
{
    size_t i;
    json_t *o;

    json_array_foreach (list, i, o)
        if (json_string_length (json_object_get (o, "name")) > 0
            && !strcmp (json_string_value (json_object_get (o, "name")), name))
            return true;
    return false;
}

/* The member 'key' of each element, as "1, 2, 3"; "none". */
static const char *say_list (const json_t *list, const char *key, char buf[LIST_SIZE])
{
    size_t i, n = 0;
    json_t *o;

    snprintf (buf, LIST_SIZE, "none");
    json_array_foreach (list, i, o) {
        const json_t *value = json_object_get (o, key);
        char text[LIST_SIZE / 2];

        if (json_is_string (value))
            snprintf (text, sizeof (text), "%s", json_string_value (value));
        else
            snprintf (text, sizeof (text), "%" JSON_INTEGER_FORMAT, json_integer_value (value));
        if (n + strlen (text) + sizeof (", ...") > LIST_SIZE) {
            snprintf (buf + n, LIST_SIZE - n, ", ...");
            break;
        }
        n += (size_t)snprintf (buf + n, LIST_SIZE - n, "%s%s", i > 0 ? ", " : "", text);
    }
    return buf;
}

/* --- who is there ------------------------------------------------------------------------------------- */

static uint32_t rank_of (struct cmd *cmd, uint32_t rank)
{
    if (rank == IDT_NODEID_ANY && idt_get_rank (ask_connect (cmd), &rank) < 0)
        cmd_die (cmd, "trace: the broker does not report its rank");
    return rank;
}

/* Whether 'child' is below 'parent' in the configured topology. */
static bool is_child (struct cmd *cmd, uint32_t at, uint32_t child, uint32_t parent)
{
    json_t *o = ask_new (cmd, "overlay.topology", at, json_pack ("{s:I}", "rank", (json_int_t)parent), "trace");
    bool is = has_rank (json_object_get (o, "children"), child);

    json_decref (o);
    return is;
}

static void check_link (struct cmd *cmd, uint32_t at, const json_t *links, uint32_t peer)
{
    char list[LIST_SIZE];

    if (has_rank (links, peer))
        return;
    ask_connect_for (cmd, peer);
    if (peer == at)
        cmd_die (cmd, "rank %" PRIu32 " is the traced rank itself: give one at the other end of a link: %s", at,
                 say_list (links, "rank", list));
    if (!is_child (cmd, at, peer, at) && !is_child (cmd, at, at, peer))
        cmd_die (cmd,
                 "rank %" PRIu32 " is not a neighbour of rank %" PRIu32 ", which has links with ranks: %s (-r %" PRIu32
                 " shows the messages there)",
                 peer, at, say_list (links, "rank", list), peer);
    cmd_warn (cmd, "rank %" PRIu32 " has no link with rank %" PRIu32 " now: waiting for one", peer, at);
}

static void check_kind (struct cmd *cmd, uint32_t at, const json_t *stats, const char *kind)
{
    const json_t *children = json_object_get (stats, "child-count");

    if (!strcmp (kind, "parent") && at == 0)
        cmd_die (cmd, "rank 0 has no parent");
    if (!strcmp (kind, "child") && children && json_integer_value (children) == 0)
        cmd_die (cmd, "rank %" PRIu32 " has no children", at);
}

static void check_module (struct cmd *cmd, uint32_t at, const char *name)
{
    json_t *o = ask_new (cmd, "module.list", at, NULL, "trace"), *loaded = json_object_get (o, "mods");
    char list[LIST_SIZE], quoted[CMD_QUOTE_MAX];

    if (!has_name (loaded, name))
        cmd_warn (cmd, "no module '%s' is loaded at rank %" PRIu32 " now: waiting for it (loaded: %s)",
                  cmd_quote (name, strlen (name), quoted), at, say_list (loaded, "name", list));
    json_decref (o);
}

/* --- the request -------------------------------------------------------------------------------------- */

static bool is_kind (const char *peer)
{
    static const char *const kinds[] = { "client", "module", "broker", "child", "parent" };

    for (size_t i = 0; i < sizeof (kinds) / sizeof (kinds[0]); i++)
        if (!strcmp (peer, kinds[i]))
            return true;
    return false;
}

static bool is_number (const char *peer)
{
    return *peer && peer[strspn (peer, "0123456789")] == '\0';
}

void peer_choose (struct cmd *cmd, uint32_t rank, const char *peer, json_t *request)
{
    uint32_t other = is_number (peer) ? cmd_rank (cmd, peer) : 0;

    ask_connect_for (cmd, rank);
    uint32_t at = rank_of (cmd, rank);
    if (!is_kind (peer) && !is_number (peer)) {
        check_module (cmd, at, peer);
        json_object_set_new (request, "names", json_pack ("[s]", peer));
        return;
    }
    json_t *stats = ask_new (cmd, "overlay.stats-get", at, NULL, "trace");
    if (is_kind (peer)) {
        check_kind (cmd, at, stats, peer);
        json_object_set_new (request, "peers", json_pack ("[s]", peer));
    }
    else {
        check_link (cmd, at, json_object_get (stats, "links"), other);
        json_object_set_new (request, "nodeid", json_integer ((json_int_t)other));
    }
    json_decref (stats);
}
