/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* service.h - shared by the files of the adapter: one object, in several files
 *
 *   ingest.c         start, end, timers; the table of topics
 *   submit.c         reading a submission, and answering it
 *   job_check.c      checking whether a job is valid, and the threads for long jobs
 *   uplink.c         ids, batches on their way up, verdicts on their way down
 *   stats.c          stats-get, metrics
 *   root/job_root.c  rank 0: gives the store one piece of work after another
 *   root/notify.c    rank 0: requests of consumers and other clients
 *
 * ingest.c calls the functions of all other files; none of them calls ingest.c, except for ingest_now_ms () and
 * service_wake ().
 */
#ifndef INGEST_SERVICE_H
#define INGEST_SERVICE_H

#include <sys/queue.h>

#include <idtree/idtree.h>

#include "libjsonview/jsonview.h"
#include "libmetrics/metrics.h"
#include "libmodule/quota.h"
#include "libmodule/module.h"
#include "modules/ingest/job/wire.h"
#include "modules/ingest/node/entry.h"
#include "modules/ingest/node/job_relay.h"
#include "modules/ingest/ingest_options.h"

#define SERVICE_ENDS "job-ingest of this broker ends"
#define SERVICE_STOPPING "job-ingest of this broker is stopping: it is not known whether the job is stored"

#define SERVICE_WHY 100 /* bytes of a reason that another service gave */

struct job_check;
struct checks;
struct job_root;

struct ingest {
    idt_t *h;
    struct ingest_options options;
    struct upcalls ups;   /* requests of this module that are under way */
    idt_watcher_t *timer; /* for entry, relay and ids */
    idt_watcher_t *idle;  /* runs uplink_turn () after service_wake () */
    struct checks *checks;
    struct jv_reader reader; /* for the payloads of submissions */

    struct job_block ids;
    struct entry *entry;
    struct entry_batch *out; /* a batch of this rank that the relay had no room for, or NULL */
    struct jobwire_reader out_jobs;
    struct job_relay *relay;
    struct pack_buf pack;                /* a batch received or being sent */
    bool unpacked;                       /* the parent refuses packed batches */
    char no_ids[SERVICE_WHY];            /* why the last request for ids failed; "": it succeeded */
    char no_way[SERVICE_WHY];            /* why the last batch sent to the parent failed; "": it succeeded */
    LIST_HEAD (, uplink_child) children; /* batches of children that are not answered yet */

    struct job_root *root; /* rank 0 only */
    uint64_t submitted, refused;
    struct quota_rule submissions_rule; /* derived from ingest.max-waiting */
    struct quota submissions;           /* submissions of each user that wait */
};

uint64_t ingest_now_ms (void); /* CLOCK_BOOTTIME */

/* Call uplink_turn () after all messages that arrived are handled. */
void service_wake (struct ingest *sv);

/* --- submit.c ---------------------------------------------------------------------------------------------- */

void submit_cb (idt_t *h, const idt_msg_t *msg, void *arg);

/* A submission was checked; errnum 0: the job is valid. 'check' stays the caller's. */
void submit_checked (struct ingest *sv, struct job_check *check, int errnum, const idt_error_t *error);

/* The reply function of the entry. The cookie is the request. */
void submit_reply (void *arg, void *cookie, uint64_t id, int errnum, const char *text);

/* --- job_check.c ------------------------------------------------------------------------------------------------- */

/* A submission that is being checked. */
struct job_check {
    STAILQ_ENTRY (job_check) link;
    const idt_msg_t *msg; /* the request, without its payload */
    const char *j;        /* wrapped job, in the payload or in 'kept'; NULL: 'spec' is the jobspec */
    size_t j_size;
    char *kept;      /* malloced: J without escapes, or a copy for a thread */
    uint32_t userid; /* the submitter */
    uint32_t max;    /* the most bytes of a jobspec */
    uint32_t flags;
    uint8_t urgency;
    char key[JOBWIRE_KEY_MAX];
    uint8_t key_size;
    char *spec; /* malloced */
    size_t spec_size;
    struct quota *quota; /* holds a place in it; NULL: holds none, or the entry has taken it over */
};

/* checks_create () returns NULL with errno ENOMEM. checks_destroy () answers waiting submissions with EHOSTUNREACH;
 * NULL is allowed.
 */
struct checks *checks_create (struct ingest *sv);
void checks_destroy (struct checks *k);

/* Check a submission: immediately, or, if it is long, in a thread. Then submit_checked () is called. 'c' is taken over.
 */
void checks_add (struct checks *k, struct job_check *c);
void job_check_destroy (struct job_check *c);

/* Drop the waiting submissions of a client that has gone. */
void checks_forget (struct checks *k, const idt_msg_t *disconnect);

/* --- uplink.c -------------------------------------------------------------------------------------------------- */

/* Handle a batch of a child. */
void uplink_batch_cb (idt_t *h, const idt_msg_t *msg, void *arg);

/* Request ids, and make and send batches, as needed. */
void uplink_turn (struct ingest *sv);

/* Batch 'tag' was answered, by the parent or, at rank 0, by the store. */
void uplink_answered (struct ingest *sv, uint32_t tag, const void *data, size_t size);

/* Answer the batches of children with EHOSTUNREACH; the children send them again. */
void uplink_stop (struct ingest *sv);

/* --- stats.c ----------------------------------------------------------------------------------------------------- */

void ingest_stats_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void ingest_metrics_cb (idt_t *h, const idt_msg_t *msg, void *arg);

/* --- rank 0: root/ ------------------------------------------------------------------------------------------------ */

/* If the store cannot be used, job_root_create () logs the reason, and all jobs get the verdict FORGOTTEN. Returns NULL
 * with errno set and 'errp' filled.
 */
struct job_root *job_root_create (struct ingest *sv, idt_error_t *errp);
void job_root_destroy (struct job_root *root);

/* Store batch 'tag', which is borrowed until it is answered. */
void job_root_batch (struct job_root *root, uint32_t tag, const void *data, size_t size);

void job_root_watch_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void job_root_ack_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void job_root_get_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void job_root_list_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void job_root_stats_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void job_root_forget (struct job_root *root, const idt_msg_t *disconnect);
json_t *job_root_stats (const struct job_root *root);
void job_root_report (const struct job_root *root, struct metrics *m);

#endif /* INGEST_SERVICE_H */
