/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rogue.c - a client that misbehaves, until standard input ends
 *
 *     rogue liar URI        requests that only brokers may send: far ids, forged roles, other nodes, unknown leases
 *     rogue greedy URI      has a hundred pending requests for 65,536 ids
 *     rogue deaf URI        sends requests, and never reads
 *     rogue flood URI       publishes events as fast as it can
 *     rogue reload URI      removes modules and loads them again
 *     rogue starve PID      stops a process and continues it, again and again
 *
 * It ignores all answers, and only has to end. Before it ends, 'starve' leaves its process running, and 'reload' leaves
 * the modules loaded. If the connection is lost, it connects again.
 */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "die.h"

#define RETRY_MS 20
#define TURN_MS 5
#define GREEDY_REQUESTS 100
#define GREEDY_COUNT 65536
#define FLOOD_EVENTS 200 /* events that are published in one turn */
#define LOAD_TRIES 200
#define FAR_AHEAD_MS (UINT64_C (30) * 365 * 86400 * 1000)

struct rogue {
    const char *uri;
    idt_t *h;
    unsigned turn;
};

/* Whether standard input has ended. Waits for the end up to 'wait_ms'. */
static bool is_over (int wait_ms)
{
    struct pollfd pfd = { .fd = STDIN_FILENO, .events = POLLIN };

    return poll (&pfd, 1, wait_ms) > 0;
}

/* Connect if not connected yet. Returns false if there is no broker. */
static bool connect_to (struct rogue *g)
{
    if (!g->h && (g->h = idt_open (g->uri, NULL)))
        idt_get_reactor (g->h);
    return g->h != NULL;
}

static void disconnect (struct rogue *g)
{
    idt_close (g->h);
    g->h = NULL;
}

/* Send a request with forged fields; the answer is dropped. */
static int send_forged (struct rogue *g, const char *topic, const void *data, size_t size, uint32_t nodeid, int flags,
                        uint32_t roles)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);
    int rc = -1;

    if (msg && idt_msg_set_topic (msg, topic) == 0 && idt_msg_set_payload (msg, data, size) == 0) {
        idt_msg_route_clear (msg);
        idt_msg_set_flag (msg, flags);
        idt_msg_set_nodeid (msg, nodeid);
        idt_msg_set_cred (msg, (struct idt_cred){ .userid = getuid (), .rolemask = roles });
        idt_msg_set_matchtag (msg, UINT32_C (1) << 30 | ++g->turn);
        rc = idt_send (g->h, msg);
    }
    idt_msg_unref (msg);
    return rc;
}

/* Let the handle write and read for a moment. */
static void serve (struct rogue *g)
{
    for (int i = 0; i < 20 && g->h; i++)
        if (idt_reactor_run (idt_get_reactor (g->h), IDT_REACTOR_NOWAIT) < 0)
            disconnect (g);
}

/* --- liar ----------------------------------------------------------------------------------------- */

/* Request ids above an id of 30 years ahead. */
static int ask_far (struct rogue *g, uint32_t nodeid, int flags, uint32_t roles)
{
    uint8_t request[12];

    memcpy (request, &(uint32_t){ htobe32 (3) }, 4);
    memcpy (request + 4, &(uint64_t){ htobe64 (FAR_AHEAD_MS << 24) }, 8);
    return send_forged (g, "fluid.block", request, sizeof (request), nodeid, flags, roles);
}

#define NOBODY "11111111-1111-4111-8111-111111111111"
#define FAR_MS "946080000000"

/* Requests that only a module of a broker sends to its parent; their form is right. */
static const struct lie {
    const char *topic, *payload;
} lies[] = {
    { "fluid.lease", "{\"want\":[[1,\"" NOBODY "\",1,\"0\"]]}" },
    { "fluid.lease", "{\"want\":[[1,\"" NOBODY "\",1,\"" FAR_MS "\"]]}" },
    { "fluid.lease", "{\"want\":[[1,\"" NOBODY "\",1,\"" FAR_MS "\",0]]}" },
    { "fluid.lease", "{\"want\":[],\"epoch\":\"1\"}" },
    { "fluid.lease", "{\"part\":[1,\"" NOBODY "\",1,\"0\",16,0,\"0\"]}" },
    { "fluid.lease", "{\"part\":[1,\"" NOBODY "\",1,\"1\",0,0,\"0\"]}" },
    { "fluid.position", "{\"rank\":1,\"from\":\"" NOBODY "\",\"holders\":[1,\"1\"],\"low_ms\":\"" FAR_MS "\"}" },
    { "fluid.cancel", "{}" },
    { "fluid.time", "{}" },
    { "fluid.time", "{\"end_ms\":" FAR_MS "}" },
    { "fluid.disconnect", "{}" },
};
#define LIES (sizeof (lies) / sizeof (lies[0]))

static bool lie (struct rogue *g)
{
    static const struct way {
        uint32_t nodeid;
        int flags;
    } ways[] = {
        { IDT_NODEID_ANY, 0 },
        { 0, 0 },
        { 1, 0 },
        { 3, 0 },
        { 0, IDT_MSGFLAG_UPSTREAM },
        { 1, IDT_MSGFLAG_UPSTREAM },
        { 3, IDT_MSGFLAG_UPSTREAM },
        { 7, IDT_MSGFLAG_UPSTREAM },
    };
    static const uint32_t roles[] = { IDT_ROLE_OWNER, IDT_ROLE_ALL, 0, UINT32_MAX, IDT_ROLE_USER };

    for (size_t w = 0; w < sizeof (ways) / sizeof (ways[0]); w++) {
        const struct lie *l = &lies[(g->turn + w) % LIES];
        uint32_t role = roles[(g->turn / LIES + w) % (sizeof (roles) / sizeof (roles[0]))];

        if (ask_far (g, ways[w].nodeid, ways[w].flags, role) < 0
            || send_forged (g, l->topic, l->payload, strlen (l->payload) + 1, ways[w].nodeid, ways[w].flags, role) < 0)
            return false;
    }
    return true;
}

/* --- the greedy, the deaf, the loud -------------------------------------------------------------------- */

static int ask_many (struct rogue *g, uint32_t count)
{
    uint8_t request[12] = { 0 };

    memcpy (request, &(uint32_t){ htobe32 (count) }, 4);
    return send_forged (g, "fluid.block", request, sizeof (request), IDT_NODEID_ANY, 0, IDT_ROLE_OWNER);
}

/* Keep requests pending. Their answers are read, but not counted, so requests are sent again from time to time. */
static bool be_greedy (struct rogue *g)
{
    if (g->turn % (4 * GREEDY_REQUESTS) == 0)
        for (int i = 0; i < GREEDY_REQUESTS; i++)
            if (ask_many (g, GREEDY_COUNT) < 0)
                return false;
    g->turn += GREEDY_REQUESTS / 10;
    return true;
}

static bool be_loud (struct rogue *g)
{
    static const char event[] = "{\"topic\":\"flood.x\",\"flags\":0}";

    for (int i = 0; i < FLOOD_EVENTS; i++)
        if (send_forged (g, "event.publish", event, sizeof (event), IDT_NODEID_ANY, IDT_MSGFLAG_NORESPONSE,
                         IDT_ROLE_OWNER)
            < 0)
            return errno == ENOBUFS;
    return true;
}

/* Send requests without reading. The reactor would also read, so requests are written here, as far as the socket
 * accepts them.
 */
static bool be_deaf (struct rogue *g)
{
    for (int i = 0; i < GREEDY_REQUESTS; i++)
        if (ask_many (g, 1) < 0)
            return errno == ENOBUFS;
    return true;
}

/* --- who reloads --------------------------------------------------------------------------------------- */

static const char *const modules[] = { "fluid", "flake", "compressor", "job-ingest" };
#define MODULES (sizeof (modules) / sizeof (modules[0]))

/* Send a request to the module service. Returns the errno of the answer, or of a lost connection. */
static int ask_module (struct rogue *g, const char *verb, const char *key, const char *module)
{
    char topic[64];
    idt_future_t *f;
    int errnum;

    snprintf (topic, sizeof (topic), "module.%s", verb);
    if (!(f = idt_rpc_pack (g->h, topic, IDT_NODEID_ANY, 0, "{s:s}", key, module)))
        return errno;
    errnum = idt_rpc_get (f, NULL) == 0 ? 0 : errno;
    idt_future_destroy (f);
    return errnum;
}

/* Remove and load modules. If a module was loaded before, it is loaded again, unless its broker has ended. */
static bool reload (struct rogue *g)
{
    const char *module = modules[g->turn++ % MODULES];
    int errnum = ask_module (g, "remove", "name", module);

    if (errnum != 0)
        return errnum == ENOENT; /* the instance does not have this module */
    for (int i = 0; i < LOAD_TRIES; i++) {
        if ((errnum = ask_module (g, "load", "path", module)) == 0 || errnum == EEXIST)
            return true;
        if (errnum == ECONNRESET || errnum == EPIPE)
            return false;
        poll (NULL, 0, RETRY_MS);
    }
    return false;
}

/* --- who starves --------------------------------------------------------------------------------------- */

static int starve (pid_t pid)
{
    for (int turn = 0;
         !is_over (turn % 7 == 0 ? 4 * TURN_MS : TURN_MS) && kill (pid, turn % 2 ? SIGCONT : SIGSTOP) == 0; turn++)
        ;
    kill (pid, SIGCONT);
    return 0;
}

/* --- all -------------------------------------------------------------------------------------------------- */

static const struct kind {
    const char *name;
    bool (*act) (struct rogue *g); /* does one action; false: the connection is lost */
    bool reads;
} kinds[] = {
    { "liar", lie, true },      { "greedy", be_greedy, true }, { "deaf", be_deaf, false },
    { "flood", be_loud, true }, { "reload", reload, true },
};

static int act (const struct kind *k, struct rogue *g)
{
    while (!is_over (TURN_MS)) {
        if (!connect_to (g)) {
            poll (NULL, 0, RETRY_MS);
            continue;
        }
        if (!k->act (g))
            disconnect (g);
        else if (k->reads)
            serve (g);
    }
    disconnect (g);
    return 0;
}

int main (int argc, char **argv)
{
    errno = EINVAL;
    if (argc != 3)
        die ("usage: rogue liar|greedy|deaf|flood|reload URI, rogue starve PID");
    if (!strcmp (argv[1], "starve"))
        return starve (atoi (argv[2]));
    for (size_t i = 0; i < sizeof (kinds) / sizeof (kinds[0]); i++)
        if (!strcmp (argv[1], kinds[i].name))
            return act (&kinds[i], &(struct rogue){ .uri = argv[2] });
    die (argv[1]);
}
