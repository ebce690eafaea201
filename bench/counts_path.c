/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* counts_path.c - the path of a request for ids through a broker, from the bytes that a client has written to the bytes
 * that it reads: framing, routing, the node's decision and the answer, without sockets and threads
 *
 * The client and the fluid module are peers of a real router, and the module has a real node. It is rank 3 of a chain.
 * Either it holds a lease and makes ids, or it is idle and forwards requests to its parent, which this program plays.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "broker/base/topology.h"
#include "broker/route/router.h"
#include "libmsg/stream.h"
#include "modules/fluid/node/node.h"
#include "modules/fluid/service/wire.h"

#include "counts.h"

#define RANK 3
#define CLIENT "aaaaaaaa-0000-4000-8000-000000000001"
#define MODULE "bbbbbbbb-0000-4000-8000-000000000002"
#define NODE "cccccccc-0000-4000-8000-000000000003"
#define LIMIT ((size_t)64 << 20)
#define MS UINT64_C (1000)
#define START_US (100 * 1000 * MS)
#define NOW_MS 20000 /* present time of the instance in ms */
#define BUFFER 1024

struct path {
    struct topo *topo;
    struct router *router;
    struct peer client, module;
    struct msg_stream *in; /* receives the bytes of the client */
    struct node *node;
    uint64_t now_us;
    uint32_t lease_tag;
    uint64_t lease_number;
    uint32_t tag, count; /* tag and count of the last forward */
    fluid_t next;        /* next id that the parent gives */

    struct jv_reader reader; /* parses the JSON of requests */

    uint8_t request[BUFFER];
    size_t request_size; /* size of the request with the header of its frame */
    uint8_t answer[BUFFER];
    uint8_t up[BUFFER];
    int answers;
};

/* --- what the node calls for --- */

static bool is_json (const idt_msg_t *request)
{
    return strcmp (idt_msg_topic (request), "fluid.generate") == 0;
}

static void reply (void *arg, void *cookie, const struct id_run *run, size_t nruns)
{
    struct path *p = arg;
    idt_msg_t *msg = idt_msg_respond (cookie, 0);
    char buf[WIRE_RUNS_TEXT (1)];
    size_t size = BLOCK_RUN_SIZE;

    counts_must (msg && nruns == 1, "an answer of one run");
    if (is_json (cookie))
        size = wire_write_runs (buf, run, nruns);
    else
        block_put_run ((uint8_t *)buf, *run);
    idt_msg_set_payload (msg, buf, size);
    idt_msg_unref (cookie);
    router_response_new (p->router, &p->module, msg);
}

static void fail (void *arg, void *cookie, int errnum, const char *text)
{
    counts_must (0, text ? text : "a request");
}

/* Make the message to the parent, as the module does. */
static int forward (void *arg, uint32_t tag, uint32_t count, fluid_t after)
{
    struct path *p = arg;
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);
    uint8_t buf[BLOCK_REQUEST_SIZE];

    block_put_request (buf, count, after);
    counts_must (msg && idt_msg_set_topic (msg, "fluid.block") == 0
                     && idt_msg_set_payload (msg, buf, sizeof (buf)) == 0,
                 "a forward");
    idt_msg_set_nodeid (msg, RANK);
    idt_msg_set_flag (msg, IDT_MSGFLAG_UPSTREAM);
    idt_msg_set_matchtag (msg, tag);
    counts_must (idt_msg_encode (msg, p->up, BUFFER) > 0, "encoding a forward");
    idt_msg_unref (msg);
    p->tag = tag;
    p->count = count;
    return 0;
}

static void cancel (void *arg)
{
}

static int lease_up (void *arg, uint32_t tag, const struct lease_request *req)
{
    struct path *p = arg;

    if (req->nwant > 0) {
        p->lease_tag = tag;
        p->lease_number = req->want[0].number;
    }
    return 0;
}

static void lease_reply (void *arg, void *cookie, const struct lease_answer *answer)
{
}

static void report_up (void *arg, const struct report *report)
{
}

static void log_text (void *arg, int level, const char *text)
{
}

static const struct node_ops ops = { reply,       fail,      forward,  cancel, lease_up,
                                     lease_reply, report_up, log_text, NULL,   NULL };

/* --- peers --- */

/* Encode the answer, as the socket of a client does. */
static int client_send (void *arg, const idt_msg_t *msg)
{
    struct path *p = arg;

    counts_must (idt_msg_encode (msg, p->answer, BUFFER) > 0, "encoding an answer");
    p->answers++;
    return 0;
}

static int module_send (void *arg, const idt_msg_t *msg)
{
    struct path *p = arg;
    struct node_request req = { .cookie = (void *)idt_msg_ref (msg), .asker = idt_msg_route_newest (msg) };
    const void *data;
    size_t size;

    if (is_json (msg))
        counts_must (wire_get_count (&p->reader, idt_msg_string (msg), &req.count, NULL) == 0, "a request's text");
    else
        counts_must (idt_msg_payload (msg, &data, &size) == 0
                         && wire_get_block (data, size, &req.count, &req.after, NULL) == 0,
                     "a request's payload");
    node_block (p->node, p->now_us, &req);
    return 0;
}

/* --- work --- */

static void take_request (struct path *p)
{
    int answers = p->answers;
    idt_msg_t *msg;

    p->now_us += MS;
    counts_must (msg_stream_feed (p->in, p->request, p->request_size) == 0, "feeding a request");
    counts_must ((msg = msg_stream_next (p->in, NULL)) != NULL, "a message");
    router_request_new (p->router, &p->client, msg);
    if (p->count > 0) { /* the request was forwarded, so the parent answers now */
        struct id_run run = { p->next += p->count, p->count };

        p->count = 0;
        node_forwarded (p->node, p->now_us, p->tag, &run, 1);
    }
    counts_must (p->answers == answers + 1, "a request");
}

static void request (void *arg, int i)
{
    take_request (arg);
}

static void decode (void *arg, int i)
{
    struct path *p = arg;

    idt_msg_unref (idt_msg_decode (p->request + 8, p->request_size - 8));
}

static void sample (struct path *p)
{
    node_sample (p->node, p->now_us,
                 &(struct idt_clock_sample){ .sent_us = p->now_us - 2 * MS,
                                             .peer_received_us = NOW_MS * MS,
                                             .peer_sent_us = NOW_MS * MS,
                                             .received_us = p->now_us });
}

static void begin (void *arg, int max_generators)
{
    struct path *p = arg;
    const struct node_config config = { .rank = RANK,
                                        .max_generators = (uint32_t)max_generators,
                                        .incarnation = NODE,
                                        .lease_ms = 60000,
                                        .max_backlog_ms = 2000,
                                        .forward_timeout_ms = 5000,
                                        .max_waiting = 100 };

    if (p->node) {
        node_stop (p->node, p->now_us);
        node_destroy (p->node);
    }
    p->now_us = START_US;
    p->lease_number = 0;
    p->next = (fluid_t)(NOW_MS + 1000) << 24;
    counts_must ((p->node = node_create (&config, &ops, p)) != NULL, "creating a node");
    node_parent (p->node, p->now_us, true);
    sample (p);
    node_tick (p->node, p->now_us);
    if (p->lease_number == 0)
        return;
    struct grant grant = { .rank = RANK,
                           .incarnation = NODE,
                           .number = p->lease_number,
                           .box = { RANK, UINT64_MAX, { NOW_MS - 10, NOW_MS + 60000 } } };
    node_lease_answered (p->node, p->now_us, p->lease_tag, &(struct lease_answer){ .grant = &grant, .ngrant = 1 });
    p->now_us += 100 * MS;
    node_tick (p->node, p->now_us);
}

/* --- all of it --- */

/* Make the frame of a client's request: binary, or JSON as clients of Flux send. */
static void make_request (struct path *p, bool json)
{
    static const char text[] = "{\"count\":1}";
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);
    uint8_t block[BLOCK_REQUEST_SIZE];
    ssize_t size;

    block_put_request (block, 1, 0);
    counts_must (msg && idt_msg_set_topic (msg, json ? "fluid.generate" : "fluid.block") == 0
                     && idt_msg_set_payload (msg, json ? (const void *)text : block,
                                             json ? sizeof (text) : sizeof (block))
                            == 0,
                 "making a request");
    idt_msg_set_nodeid (msg, IDT_NODEID_ANY);
    idt_msg_set_matchtag (msg, 1);
    idt_msg_route_push (msg, CLIENT);
    idt_msg_set_cred (msg, (struct idt_cred){ .userid = 1000, .rolemask = IDT_ROLE_OWNER | IDT_ROLE_LOCAL });
    counts_must ((size = idt_msg_encode (msg, p->request + 8, BUFFER - 8)) > 0, "encoding a request");
    memcpy (p->request, &(uint32_t){ UINT32_C (0xffee0012) }, 4);
    memcpy (p->request + 4, &(uint32_t){ htobe32 ((uint32_t)size) }, 4);
    p->request_size = (size_t)size + 8;
    idt_msg_unref (msg);
}

static void begin_json (void *arg, int max_generators)
{
    begin (arg, max_generators);
    make_request (arg, true);
}

static void path_init (struct path *p)
{
    *p = (struct path){ .client = { .uuid = CLIENT, .kind = PEER_CLIENT, .send = client_send, .arg = p },
                        .module = { .uuid = MODULE, .kind = PEER_MODULE, .send = module_send, .arg = p } };
    p->topo = topo_create ("kary:1", RANK + 1, NULL);
    counts_must (p->topo && (p->router = router_create (RANK, p->topo, 1 << 20)), "creating a router");
    counts_must (router_peer_add (p->router, &p->client) == 0 && router_peer_add (p->router, &p->module) == 0
                     && router_service_add (p->router, "fluid", &p->module) == 0,
                 "peers");
    counts_must ((p->in = msg_stream_create (-1, LIMIT, LIMIT)) != NULL, "creating a stream");
    make_request (p, false);
}

static void path_fini (struct path *p)
{
    node_stop (p->node, p->now_us);
    node_destroy (p->node);
    router_peer_remove (p->router, &p->module);
    router_peer_remove (p->router, &p->client);
    router_destroy (p->router);
    topo_destroy (p->topo);
    msg_stream_destroy (p->in);
    jv_reader_fini (&p->reader);
}

void count_path (void)
{
    static const struct count counts[] = {
        { "path: decode a request", decode, NULL, 0 },
        { "path: a request that is answered here", request, begin, RANK + 1 },
        { "path: a request that is forwarded", request, begin, 1 },
        { "path: a request in JSON that is answered here", request, begin_json, RANK + 1 },
    };
    struct path p;

    path_init (&p);
    counts_run (counts, sizeof (counts) / sizeof (counts[0]), &p);
    path_fini (&p);
}
