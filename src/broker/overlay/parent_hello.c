/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* parent_hello.c - the hello of a broker to an ancestor, and what follows when it is accepted */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "broker/overlay/parent_private.h"

#define PART_MS 200 /* to send the goodbye to an ancestor that we leave */

idt_msg_t *conn_make_hello (struct conn *c)
{
    struct overlay_conf *conf = &c->up->ov->conf;
    idt_msg_t *msg;

    c->up->ov->told = c->up->ov->health;
    c->joined = overlay_joined (c->up->ov);
    msg = link_add_json (idt_msg_create (IDT_MSGTYPE_REQUEST),
                         instance_put_new (conf->instance,
                                           json_pack ("{s:I s:s s:s s:s s:s s:s s:I s:s s:i s:I s:I}", "rank",
                                                      (json_int_t)conf->rank, "uuid", conf->uuid, "version",
                                                      PACKAGE_VERSION, "hostname", conf->host, "topology",
                                                      conf->topo->name, "status", health_name (c->up->ov->told), "seq",
                                                      (json_int_t)event_seq (conf->event), "stream",
                                                      event_stream (conf->event), "link", CHANNEL_VERSION, "size",
                                                      (json_int_t)conf->topo->size, "joined", (json_int_t)c->joined)));
    if (!msg || idt_msg_set_topic (msg, "overlay.hello") < 0) {
        idt_msg_unref (msg);
        return NULL;
    }
    idt_msg_set_matchtag (msg, 1);
    idt_msg_set_nodeid (msg, conn_target (c)->rank);
    idt_msg_set_cred (msg, (struct idt_cred){ geteuid (), IDT_ROLE_OWNER });
    idt_msg_route_clear (msg);
    return msg;
}

void conn_take_time (struct conn *c, const struct idt_clock_sample *sample)
{
    struct overlay *ov = c->up->ov;

    if (ov->clock && sample->peer_received_us > 0)
        ov->clock->sample (ov->clock_arg, sample);
}

void conn_send_keys (struct conn *c)
{
    struct keyring *keys = c->up->ov->keys;
    bool sent = true;
    idt_msg_t *msg;

    while (sent && (msg = keyring_take_news (keys))) {
        sent = conn_send (c, msg) == 0;
        idt_msg_unref (msg);
        c->keys_us = link_boot_us ();
    }
    if (!sent)
        keyring_again (keys); /* the next heartbeat sends them */
}

/* Notify the clock's module and the broker that the way up is open or closed. */
void parent_tell (struct parent *up, bool open)
{
    struct overlay *ov = up->ov;

    if (ov->clock)
        ov->clock->parent (ov->clock_arg, open);
    ov->conf.ops->parent (ov->conf.arg, open);
}

/* Leave the ancestor in use for a nearer one.  Requests pending there fail now, and nothing more is sent to it. */
static void part (struct conn *c)
{
    idt_msg_t *msg = control_encode (CONTROL_GOODBYE, 0, NULL);

    if (msg)
        conn_send (c, msg);
    idt_msg_unref (msg);
    c->state = CONN_IDLE;
    conn_close (c, PART_MS);
    router_peer_remove (c->up->ov->conf.router, &c->peer);
    parent_tell (c->up, false);
}

static void use_probe (struct parent *up)
{
    struct conn *c = up->probe;

    up->probe = up->used;
    up->used = c;
    if (up->probe->state == CONN_JOINED)
        part (up->probe);
    else
        conn_lose (up->probe, NULL);
}

static bool become_peer (struct conn *c, const char *uuid)
{
    c->peer = (struct peer){
        .kind = PEER_PARENT, .rank = conn_target (c)->rank, .send = conn_send, .hang_up = conn_hang_up, .arg = c
    };
    memcpy (c->peer.uuid, uuid, sizeof (c->peer.uuid));
    if (router_peer_add (c->up->ov->conf.router, &c->peer) < 0) {
        conn_lose (c, "its UUID is in use on this broker");
        return false;
    }
    return true;
}

static void joined (struct conn *c, const char *uuid, const struct idt_clock_sample *sample, int version)
{
    struct parent *up = c->up;

    if (c == up->probe)
        use_probe (up);
    if (!become_peer (c, uuid))
        return;
    c->state = CONN_JOINED;
    up->retry_ms = RETRY_MIN_MS;
    up->probe_ms = PROBE_MS;
    c->refused = false;
    idt_watcher_stop (up->retry);
    idt_watcher_stop (up->probe_timer);
    if (c->target > 0 || up->has_joined)
        log_printf (up->ov->conf.log, LOG_INFO, "overlay", "attached to rank %u", conn_target (c)->rank);
    if (c->target > 0)
        parent_start_timer (up->probe_timer, PROBE_MS * parent_jitter (up));
    up->has_joined = true;
    conn_take_time (c, sample);
    channel_open (&c->channel, version);
    keyring_join (up->ov->keys, uuid);
    c->keys_us = 0;
    conn_send_keys (c);
}

static void hello_accepted (struct conn *c, const idt_msg_t *msg)
{
    struct overlay_conf *conf = &c->up->ov->conf;
    struct idt_clock_sample sample = { .sent_us = c->hello_us, .received_us = link_boot_us () };
    const char *uuid, *version, *stream, *instance = NULL, *name = NULL;
    json_int_t seq, received = 0, sent = 0, bound = 0;
    int link = 0, lived;
    idt_error_t err;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &err, "{s:s s:s s:s s:I s?[I,I] s?I s?i s?{s:s s:s s?b}}", "uuid", &uuid, "version",
                        &version, "stream", &stream, "seq", &seq, "time_us", &received, &sent, "bound_us", &bound,
                        "link", &link, "instance", "uuid", &instance, "name", &name, "lived", &lived)
        < 0) {
        conn_lose (c, err.text);
        return;
    }
    sample.peer_received_us = received;
    sample.peer_sent_us = sent;
    sample.peer_bound_us = bound;
    if (strlen (uuid) != IDT_MSG_UUID_LEN || strlen (stream) > IDT_MSG_UUID_LEN)
        conn_lose (c, "its hello has a malformed uuid");
    else if (instance && conf->instance && instance_learn (conf->instance, conf->attrs, instance, name, &err) < 0) {
        c->refused = true;
        conn_lose (c, err.text);
    }
    else
        joined (c, uuid, &sample, link);
    if (c->state == CONN_JOINED) {
        event_newest (conf->event, stream, seq);
        parent_tell (c->up, true);
    }
    json_decref (o);
}

void conn_hello_answered (struct conn *c, const idt_msg_t *msg)
{
    struct overlay_conf *conf = &c->up->ov->conf;
    uint32_t errnum = idt_msg_errnum (msg);
    const char *text = idt_msg_string (msg);

    if (errnum == 0) {
        hello_accepted (c, msg);
        return;
    }
    if (errnum == EADDRINUSE)
        c->up->served_at = c->target;
    if (c == c->up->used)
        conf->ops->refused (conf->arg, errnum, text ? text : strerror (errnum));
    if (errnum != ESHUTDOWN) {
        c->up->attempts = 0;
        c->refused = true;
    }
    if (c == c->up->probe && errnum == EADDRINUSE) /* another broker has our rank at the nearer ancestor */
        conn_lose (c->up->used, "a nearer ancestor has another broker of this rank");
    conn_lose (c, NULL);
}
