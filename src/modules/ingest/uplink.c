/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uplink.c - ids, batches on their way up, verdicts on their way down
 *
 * At rank 0 batches go to its root instead of a parent, so that all jobs are stored in the same way.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "libutil/text.h"
#include "modules/ingest/service.h"

#define ANSWER_MS 10000 /* timeout of a batch; the overlay reports a lost connection sooner */

/* A batch of a child that is not answered yet. */
struct uplink_child {
    LIST_ENTRY (uplink_child) link;
    struct ingest *service;
    const idt_msg_t *msg;
};

static void child_destroy (struct uplink_child *c)
{
    LIST_REMOVE (c, link);
    idt_msg_unref (c->msg);
    free (c);
}

/* Keep a reason for submitters whose time is over. */
static void note (char why[SERVICE_WHY], const char *what, idt_future_t *f)
{
    snprintf (why, SERVICE_WHY, "%s: %s", what, idt_future_error (f));
    utf8_clean (why, strlen (why)); /* a character may have been cut */
}

/* --- verdicts ------------------------------------------------------------------------------------------------- */

static void child_reply (void *arg, struct jobwire_reader *verdicts)
{
    struct uplink_child *c = arg;
    struct jobwire_buf b = { 0 };

    if (jobwire_add_verdicts (&b, verdicts->body, verdicts->size, verdicts->count) < 0)
        module_respond_error (c->service->h, c->msg, ENOMEM, NULL);
    else
        module_respond_raw (c->service->h, c->msg, b.data, b.size);
    jobwire_buf_fini (&b);
    child_destroy (c);
}

static void own_reply (void *arg, struct jobwire_reader *verdicts)
{
    entry_verdicts (arg, ingest_now_ms (), verdicts);
}

void uplink_answered (struct ingest *sv, uint32_t tag, const void *data, size_t size)
{
    struct jobwire_reader verdicts;
    idt_error_t error;

    if (jobwire_read_verdicts (&verdicts, data, size, &error) < 0) {
        idt_log (sv->h, LOG_ERR, "invalid answer to a batch: %s", error.text);
        job_relay_failed (sv->relay, ingest_now_ms (), tag);
    }
    else
        job_relay_answered (sv->relay, ingest_now_ms (), tag, &verdicts);
}

static void answered_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    struct ingest *sv = up->owner;
    const void *data;
    size_t size;

    if (idt_rpc_get_raw (f, &data, &size) == 0) {
        sv->no_way[0] = '\0';
        uplink_answered (sv, up->tag, data, size);
    }
    else {
        sv->unpacked = sv->unpacked || errno == EPROTO; /* maybe the parent is of an older version: send it unpacked */
        note (sv->no_way, "the parent", f);
        job_relay_failed (sv->relay, ingest_now_ms (), up->tag);
    }
    upcall_destroy (up);
    service_wake (sv);
}

/* --- batches ------------------------------------------------------------------------------------------------------ */

void uplink_batch_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct ingest *sv = arg;
    struct jobwire_reader jobs;
    struct uplink_child *c;
    const void *data;
    size_t size;
    idt_error_t error = { "a batch must have a payload" };

    if (idt_msg_payload (msg, &data, &size) < 0 || pack_open (&sv->pack, &data, &size, &error) < 0
        || jobwire_read_batch (&jobs, data, size, &error) < 0) {
        module_respond_error (h, msg, errno == ENOMEM ? ENOMEM : EPROTO, error.text);
        return;
    }
    if (!(c = calloc (1, sizeof (*c)))) {
        module_respond_error (h, msg, ENOMEM, NULL);
        return;
    }
    c->service = sv;
    c->msg = idt_msg_ref (msg);
    LIST_INSERT_HEAD (&sv->children, c, link);
    if (job_relay_add (sv->relay, &jobs, child_reply, c) < 0) {
        module_respond_error (h, msg, errno, "the batches that wait at this rank exceed ingest.max-waiting-bytes");
        child_destroy (c);
    }
    service_wake (sv);
}

/* Pass this rank's own jobs to the relay. A batch that does not fit waits until the relay has room. */
static void add_own (struct ingest *sv)
{
    while (sv->out || (sv->out = entry_batch (sv->entry, ingest_now_ms (), &sv->ids, &sv->out_jobs))) {
        if (job_relay_add (sv->relay, &sv->out_jobs, own_reply, sv->out) < 0)
            break;
        sv->out = NULL;
    }
}

static void send (struct ingest *sv, const void *data, size_t size, uint32_t tag)
{
    if (sv->root) {
        job_root_batch (sv->root, tag, data, size);
        return;
    }
    if (!sv->unpacked)
        pack_batch (&sv->pack, &data, &size);
    struct upcall *up = upcall_create (&sv->ups,
                                       idt_rpc_raw (sv->h, "job-ingest.batch", data, size, IDT_NODEID_UPSTREAM, 0),
                                       ANSWER_MS, answered_cb, sv);
    if (up)
        up->tag = tag;
    else
        job_relay_failed (sv->relay, ingest_now_ms (), tag);
}

/* --- ids ---------------------------------------------------------------------------------------------------------- */

static void take_ids (struct ingest *sv, const fluid_t *ids, uint32_t n)
{
    struct job_block_run *runs = calloc (n, sizeof (*runs));
    size_t nruns = 0;

    for (uint32_t i = 0; runs && i < n; i++)
        if (nruns > 0 && runs[nruns - 1].first + runs[nruns - 1].count == ids[i])
            runs[nruns - 1].count++;
        else
            runs[nruns++] = (struct job_block_run){ ids[i], 1 };
    if (!runs || job_block_filled (&sv->ids, runs, nruns) < 0)
        job_block_failed (&sv->ids);
    free (runs);
}

static void ids_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    struct ingest *sv = up->owner;
    fluid_t *ids = malloc (up->tag * sizeof (*ids));

    if (ids && idt_fluid_generate_get (f, up->tag, ids) == 0) {
        sv->no_ids[0] = '\0';
        take_ids (sv, ids, up->tag);
    }
    else {
        note (sv->no_ids, "cannot get ids", f);
        job_block_failed (&sv->ids);
    }
    free (ids);
    upcall_destroy (up);
    service_wake (sv);
}

static void ask_for_ids (struct ingest *sv)
{
    uint32_t n = job_block_ask (&sv->ids, ingest_now_ms (), entry_wants (sv->entry));

    if (n == 0)
        return;
    struct upcall *up = upcall_create (&sv->ups, idt_fluid_generate_async (sv->h, n), ANSWER_MS, ids_cb, sv);
    if (up)
        up->tag = n;
    else
        job_block_failed (&sv->ids);
}

/* --- turns ------------------------------------------------------------------------------------------------------- */

void uplink_turn (struct ingest *sv)
{
    const void *data;
    size_t size;
    uint32_t tag;

    add_own (sv);
    ask_for_ids (sv);
    while (job_relay_next (sv->relay, ingest_now_ms (), &data, &size, &tag))
        send (sv, data, size, tag);
}

void uplink_stop (struct ingest *sv)
{
    struct uplink_child *c;

    while ((c = LIST_FIRST (&sv->children))) {
        module_respond_error (sv->h, c->msg, EHOSTUNREACH, SERVICE_STOPPING);
        child_destroy (c);
    }
}
