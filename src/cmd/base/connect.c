/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* connect.c - connect to the broker, or end with a message that says what to do */
#include <errno.h>
#include <string.h>

#include <idtree/handle.h>

#include "cmd/base/cmd.h"
#include "cmd/base/guard.h"

#define OWN_ATTRIBUTE "router.max-pending" /* every broker of idtree has it, no broker of Flux does */

const char *cmd_uri (const struct cmd *cmd)
{
    if (cmd->h)
        return idt_get_uri (cmd->h);
    return cmd->uri ? cmd->uri : idt_default_uri ();
}

idt_t *cmd_try_connect (struct cmd *cmd, idt_error_t *errp)
{
    idt_error_t error;

    if (cmd->h)
        return cmd->h;
    cmd->h = idt_open_ex (cmd->uri,
                          &(struct idt_open_options){ .flags = cmd->open_flags, .timeout_ms = cmd->timeout_ms },
                          &error);
    if (!cmd->h && cmd->uri && errno == EINVAL)
        cmd_usage (cmd, "--uri %s", error.text);
    if (!cmd->h && errno == ETIMEDOUT)
        cmd_die (cmd, "no answer within %g s: %s", cmd->timeout_ms / 1000, error.text);
    if (!cmd->h && errp)
        *errp = error;
    return cmd->h;
}

static uint32_t get_size (struct cmd *cmd)
{
    struct guard guard;
    uint32_t size;

    guard_begin (&guard, cmd);
    if (idt_get_size (cmd->h, &size) < 0)
        cmd_die (cmd, "size: %s", strerror (errno));
    guard_end (&guard);
    return size;
}

static void die_unconnected (struct cmd *cmd, const idt_error_t *error) __attribute__ ((noreturn));
static void die_unconnected (struct cmd *cmd, const idt_error_t *error)
{
    if (errno == ENOENT || errno == ECONNREFUSED)
        cmd_die (cmd, "%s; start one with idtree start, or name another with --uri or IDTREE_URI", error->text);
    cmd_die (cmd, "%s", error->text);
}

idt_t *cmd_connect (struct cmd *cmd)
{
    idt_error_t error;

    if (!cmd_try_connect (cmd, &error))
        die_unconnected (cmd, &error);
    return cmd->h;
}

idt_t *cmd_connect_for (struct cmd *cmd, uint32_t rank)
{
    idt_t *h = cmd_connect (cmd);
    uint32_t size = rank == IDT_NODEID_ANY ? 0 : get_size (cmd);

    if (rank == IDT_NODEID_ANY)
        return h;
    if (rank >= size)
        cmd_die (cmd, "there is no rank %u: the instance has ranks 0 to %u", rank, size - 1);
    return h;
}

/* A failure other than ENOENT counts as "not Flux": the caller's next request fails and reports the error. */
bool cmd_is_flux (const struct cmd *cmd)
{
    struct guard guard;

    guard_begin (&guard, cmd);
    bool is_flux = !idt_attr_get (cmd->h, OWN_ATTRIBUTE) && errno == ENOENT;
    guard_end (&guard);
    return is_flux;
}

idt_t *cmd_try_connect_own (struct cmd *cmd)
{
    idt_t *h;
    struct guard guard;
    idt_error_t error;

    if (!(h = cmd_try_connect (cmd, &error)) && errno == ECONNRESET)
        return NULL;
    if (!h)
        die_unconnected (cmd, &error);
    guard_begin (&guard, cmd);
    const char *own = idt_attr_get (h, OWN_ATTRIBUTE);
    if (!own && (errno == ECONNRESET || errno == EPIPE)) {
        guard_end (&guard);
        errno = ECONNRESET;
        return NULL;
    }
    if (!own && errno != ENOENT)
        cmd_die (cmd, OWN_ATTRIBUTE ": %s", strerror (errno));
    const char *version = own ? NULL : idt_attr_get (h, "version");
    guard_end (&guard);
    if (own)
        return h;
    cmd_die (cmd,
             "the broker at %s belongs to Flux%s%s, not to idtree: stop, change and use it with the command flux; "
             "nothing was done",
             idt_get_uri (h), version ? " " : "", version ? version : "");
}

idt_t *cmd_connect_own (struct cmd *cmd)
{
    idt_t *h = cmd_try_connect_own (cmd);

    if (!h)
        cmd_die (cmd, "the broker at %s closed the connection", cmd_uri (cmd));
    return h;
}
