/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* access.c - the table of access: who may send which request, publish which event, and see it
 *
 * Guests use the services, and members of access.group share data. Only the instance owner may change or end what
 * belongs to another user. If a handler makes further distinctions between users, doc/design/access.md describes them.
 */
#include <stdlib.h>
#include <string.h>

#include "libmsg/access.h"

#define NROWS (sizeof (rows) / sizeof (rows[0]))

struct access_row {
    const char *topic;
    uint32_t roles;
};

/* Sorted by strcmp (). */
static const struct access_row rows[] = {
    { "attr.define", ACCESS_OWNER },
    { "attr.get", ACCESS_GUEST },
    { "attr.list", ACCESS_GUEST },
    { "attr.set", ACCESS_OWNER },
    { "attr.stats-get", ACCESS_GUEST },
    { "broker.disconnect", ACCESS_GUEST },
    { "broker.stats-get", ACCESS_GUEST },
    { "broker.trace", ACCESS_OWNER },
    { "broker.trace-more", ACCESS_OWNER },
    { "compressor.close", ACCESS_GROUP },
    { "compressor.create", ACCESS_GROUP },
    { "compressor.decompress", ACCESS_GROUP },
    { "compressor.delete", ACCESS_GROUP },
    { "compressor.disconnect", ACCESS_GUEST },
    { "compressor.fetch", ACCESS_GROUP },
    { "compressor.generate", ACCESS_GROUP },
    { "compressor.join", ACCESS_GROUP },
    { "compressor.list", ACCESS_GROUP },
    { "compressor.metrics", ACCESS_BROKER },
    { "compressor.normalize", ACCESS_GROUP },
    { "compressor.open", ACCESS_GROUP },
    { "compressor.order", ACCESS_BROKER },
    { "compressor.recompress", ACCESS_GROUP },
    { "compressor.rename", ACCESS_GROUP },
    { "compressor.save", ACCESS_GROUP },
    { "compressor.state", ACCESS_GROUP },
    { "compressor.stats", ACCESS_GROUP },
    { "compressor.stats-get", ACCESS_GUEST },
    { "compressor.submit", ACCESS_GROUP },
    { "config.get", ACCESS_GUEST },
    { "config.reload", ACCESS_OWNER },
    { "config.stats-get", ACCESS_GUEST },
    { "disconnect", ACCESS_GUEST },
    { "event.publish", ACCESS_GROUP },
    { "event.replay", ACCESS_BROKER },
    { "event.stats-get", ACCESS_GUEST },
    { "event.subscribe", ACCESS_GUEST },
    { "event.unsubscribe", ACCESS_GUEST },
    { "flake.claim", ACCESS_BROKER },
    { "flake.metrics", ACCESS_BROKER },
    { "flake.stats-clear", ACCESS_OWNER },
    { "flake.stats-get", ACCESS_GUEST },
    { "flax.disconnect", ACCESS_GUEST },
    { "flax.generate", ACCESS_GUEST },
    { "fluid.block", ACCESS_GUEST },
    { "fluid.cancel", ACCESS_BROKER },
    { "fluid.disconnect", ACCESS_GUEST },
    { "fluid.generate", ACCESS_GUEST },
    { "fluid.info", ACCESS_GUEST },
    { "fluid.lease", ACCESS_BROKER },
    { "fluid.metrics", ACCESS_BROKER },
    { "fluid.position", ACCESS_BROKER },
    { "fluid.stats-clear", ACCESS_OWNER },
    { "fluid.stats-get", ACCESS_GUEST },
    { "fluid.time", ACCESS_BESIDE },
    { "fluid.trace", ACCESS_GUEST },
    { "fluid.watermark", ACCESS_GUEST },
    { "ingest.ack", ACCESS_OWNER },
    { "ingest.disconnect", ACCESS_GUEST },
    { "ingest.get", ACCESS_GUEST },
    { "ingest.list", ACCESS_OWNER },
    { "ingest.stats", ACCESS_OWNER },
    { "ingest.watch", ACCESS_OWNER },
    { "job-ingest.batch", ACCESS_BROKER },
    { "job-ingest.disconnect", ACCESS_GUEST },
    { "job-ingest.metrics", ACCESS_BROKER },
    { "job-ingest.stats-get", ACCESS_GUEST },
    { "job-ingest.submit", ACCESS_GUEST },
    { "log.append", ACCESS_OWNER },
    { "log.clear", ACCESS_OWNER },
    { "log.disconnect", ACCESS_GUEST },
    { "log.dmesg", ACCESS_GROUP },
    { "log.stats-get", ACCESS_GUEST },
    { "metrics", ACCESS_BROKER },
    { "metrics.get", ACCESS_GUEST },
    { "metrics.stats-get", ACCESS_GUEST },
    { "module.disconnect", ACCESS_GUEST },
    { "module.list", ACCESS_GUEST },
    { "module.load", ACCESS_OWNER },
    { "module.remove", ACCESS_OWNER },
    { "module.stats-get", ACCESS_GUEST },
    { "module.trace", ACCESS_OWNER },
    { "overlay.disconnect", ACCESS_GUEST },
    { "overlay.health", ACCESS_GUEST },
    { "overlay.stats-get", ACCESS_GUEST },
    { "overlay.topology", ACCESS_GUEST },
    { "overlay.trace", ACCESS_OWNER },
    { "ping", ACCESS_GUEST },
    { "root.get", ACCESS_GUEST },
    { "root.release", ACCESS_OWNER },
    { "root.stats-get", ACCESS_GUEST },
    { "rusage", ACCESS_GUEST },
    { "service.add", ACCESS_OWNER },
    { "service.remove", ACCESS_OWNER },
    { "service.stats-get", ACCESS_GUEST },
    { "shutdown.disconnect", ACCESS_GUEST },
    { "shutdown.start", ACCESS_OWNER },
    { "shutdown.stats-get", ACCESS_GUEST },
    { "sno.disconnect", ACCESS_GUEST },
    { "sno.generate", ACCESS_GUEST },
    { "state-machine.get", ACCESS_GUEST },
    { "state-machine.stats-get", ACCESS_GUEST },
    { "stats-clear", ACCESS_OWNER },
    { "stats-get", ACCESS_GUEST },
    { "uid.disconnect", ACCESS_GUEST },
    { "uid.generate", ACCESS_GUEST },
};

static int compare (const void *topic, const void *row)
{
    return strcmp (topic, ((const struct access_row *)row)->topic);
}

uint32_t access_roles (const char *topic)
{
    const struct access_row *row = bsearch (topic, rows, NROWS, sizeof (rows[0]), compare);

    return row ? row->roles : ACCESS_OWNER;
}

/* The length of the service's name, including its dot; 0: the topic names no service. */
static size_t service_len (const char *topic)
{
    const char *dot = strchr (topic, '.');

    return dot ? (size_t)(dot - topic) + 1 : 0;
}

static bool is_of_service (const char *topic)
{
    size_t len = service_len (topic);

    for (size_t i = 0; len > 0 && i < NROWS; i++)
        if (strncmp (topic, rows[i].topic, len) == 0)
            return true;
    return false;
}

/* Whether services act upon an event with this topic. They act upon NAME.stats-clear for any NAME, because each module
 * accepts this event.
 */
static bool is_for_services (const char *topic)
{
    return is_of_service (topic) || strcmp (topic + service_len (topic), "stats-clear") == 0;
}

bool access_may_publish (struct idt_cred user, const char *topic)
{
    return user.rolemask & (is_for_services (topic) ? ACCESS_OWNER : access_roles ("event.publish"));
}

/* The roles that may see a private event. If it is an event of a document: the roles that may open a document.
 * Otherwise: the owner.
 */
static uint32_t roles_of_private (const char *topic)
{
    return strncmp (topic, "compressor.", 11) == 0 ? access_roles ("compressor.open") : ACCESS_OWNER;
}

bool access_may_see (struct idt_cred user, const idt_msg_t *event)
{
    if (!idt_msg_has_flag (event, IDT_MSGFLAG_PRIVATE))
        return user.rolemask & access_roles ("event.subscribe");
    return user.userid == idt_msg_cred (event).userid || (user.rolemask & roles_of_private (idt_msg_topic (event)));
}

const char *access_topic (size_t i, uint32_t *roles)
{
    if (i >= NROWS)
        return NULL;
    *roles = rows[i].roles;
    return rows[i].topic;
}
