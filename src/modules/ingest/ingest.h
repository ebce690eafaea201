/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ingest.h - shared by the files of the adapter: one object, in several files
 *
 *   ingest.c         start, end, timers, the table of topics; ids, batches on their way up, verdicts on their way down;
 *                    counters
 *   submit.c         submissions: reads one, checks its job (in a thread if the job is long), and answers it
 *   root/job_root.c  rank 0: gives the store one piece of work after another
 *   root/notify.c    rank 0: requests of consumers and other clients
 *
 * ingest.c calls the functions of all other files. These call only ingest_now_ms (), ingest_set_timer (), ingest_wake
 * () and ingest_answered () of ingest.c.
 */
#ifndef INGEST_INGEST_H
#define INGEST_INGEST_H

#include <stdbool.h>
#include <sys/queue.h>

#include <idtree/idtree.h>

#include "libjsonview/jsonview.h"
#include "libmetrics/metrics.h"
#include "libmodule/module.h"
#include "libmodule/quota.h"
#include "modules/ingest/job/wire.h"
#include "modules/ingest/node/entry.h"
#include "modules/ingest/node/job_relay.h"

#define INGEST_WHY 100 /* bytes of the reason why a request failed, with its NUL */

/* The ingest.* attributes of a broker, which doc/design/ingest.md describes. */
struct ingest_options {
    uint32_t rank;
    bool require_signature;
    bool allow_guests;
    uint32_t max_jobspec; /* bytes */
    uint32_t max_waiting; /* submissions that may wait at a rank */
    uint32_t max_waiting_bytes;
    uint32_t max_jobs; /* unacknowledged jobs that rank 0 may hold */
    uint64_t max_bytes;
    uint32_t max_remembered; /* acknowledged jobs whose id and key are kept */
    uint64_t remember_ms;
    uint64_t settle_ms;
    uint64_t timeout_ms;
    struct module_place place; /* rank 0 only */
};

struct submit_checks;
struct job_root;

struct ingest {
    idt_t *h;
    struct ingest_options options;
    struct upcalls ups;   /* requests of this module that are under way */
    idt_watcher_t *timer; /* due when the entry, the relay or the prefetched ids need a turn */
    idt_watcher_t *idle;  /* runs a turn after ingest_wake () */
    struct submit_checks *checks;
    struct jv_reader reader; /* for the payloads of submissions */

    struct job_block ids;
    struct entry *entry;
    struct entry_batch *out; /* a batch of this rank that the relay had no room for, or NULL */
    struct jobwire_reader out_jobs;
    struct job_relay *relay;
    struct pack_buf pack;                /* memory for packing and unpacking batches */
    bool unpacked;                       /* the parent answered EPROTO, so batches are sent unpacked */
    char no_ids[INGEST_WHY];             /* why the last request for ids failed; "": it succeeded */
    char no_way[INGEST_WHY];             /* why the last batch sent to the parent failed; "": it succeeded */
    LIST_HEAD (, ingest_child) children; /* batches of children that are not answered yet */

    struct job_root *root; /* rank 0 only */
    uint64_t submitted, refused;
    struct quota_rule submissions_rule; /* derived from ingest.max-waiting */
    struct quota submissions;           /* waiting submissions of each user */
};

uint64_t ingest_now_ms (void); /* CLOCK_BOOTTIME */

/* Start 'timer', so that it fires when ingest_now_ms () reaches 'due_ms'; UINT64_MAX: stop the timer. */
void ingest_set_timer (idt_watcher_t *timer, uint64_t due_ms);

/* Schedule a turn. When all messages that arrived have been handled, the turn requests ids, and makes and sends
 * batches, as needed.
 */
void ingest_wake (struct ingest *sv);

/* The parent or, at rank 0, the store has answered batch 'tag'. */
void ingest_answered (struct ingest *sv, uint32_t tag, const void *data, size_t size);

/* --- submit.c ---------------------------------------------------------------------------------------------- */

/* submit_create () returns NULL with errno ENOMEM. submit_destroy () answers EHOSTUNREACH to submissions whose jobs are
 * not checked yet; NULL is allowed.
 */
struct submit_checks *submit_create (struct ingest *sv);
void submit_destroy (struct submit_checks *k);

void submit_cb (idt_t *h, const idt_msg_t *msg, void *arg);

/* The reply function that is passed to entry_create (). 'cookie' is the request to answer. */
void submit_reply (void *arg, void *cookie, uint64_t id, int errnum, const char *text);

/* Drop the submissions of the client that 'disconnect' names, if they wait for a thread that checks them. */
void submit_forget (struct submit_checks *k, const idt_msg_t *disconnect);

/* --- rank 0: root/ ------------------------------------------------------------------------------------------------ */

/* job_root_create () returns NULL with errno set and 'errp' filled. If the store cannot be used, the function does not
 * fail, but logs the reason, and all jobs get the verdict FORGOTTEN.
 */
struct job_root *job_root_create (struct ingest *sv, idt_error_t *errp);
void job_root_destroy (struct job_root *root);

/* Store batch 'tag'. 'data' is borrowed until ingest_answered () is called for this batch. */
void job_root_batch (struct job_root *root, uint32_t tag, const void *data, size_t size);

void job_root_watch_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void job_root_ack_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void job_root_get_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void job_root_list_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void job_root_stats_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void job_root_forget (struct job_root *root, const idt_msg_t *disconnect);
json_t *job_root_stats (const struct job_root *root);
void job_root_report (const struct job_root *root, struct metrics *m);

#endif /* INGEST_INGEST_H */
