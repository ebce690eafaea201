/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* service.h - what the parts of the shell share: one object in several subjects
 *
 *   ingest.c     life, timers; the table of topics
 *   submit.c     a submission: what it says, whether it is good, its answer
 *   check.c      whether a job is good, and the threads for those that are long
 *   uplink.c     ids, batches on their way up, verdicts on their way down
 *   stats.c      stats-get, metrics
 *   root/root.c  rank 0: from group to group
 *   root/tell.c  rank 0: consumers, and who asks what is there
 *
 * ingest.c calls all of them, and none calls it.
 */
#ifndef INGEST_SERVICE_H
#define INGEST_SERVICE_H

#include <sys/queue.h>

#include <idtree/idtree.h>

#include "libjsonview/jsonview.h"
#include "libmetrics/metrics.h"
#include "libmodule/quota.h"
#include "libmodule/respond.h"
#include "libmodule/upcall.h"
#include "modules/ingest/job/pack.h"
#include "modules/ingest/node/block.h"
#include "modules/ingest/node/entry.h"
#include "modules/ingest/node/relay.h"
#include "modules/ingest/options.h"

#define SERVICE_ENDS "job-ingest of this broker ends"
#define SERVICE_STOPPING "job-ingest of this broker is stopping: whether the job is there is not known"

#define SERVICE_WHY 100 /* bytes of what a sentence says of others */

struct check;
struct checks;
struct root;

struct service {
    idt_t *h;
    struct options options;
    struct upcalls ups;   /* requests to others, and what they are for */
    idt_watcher_t *timer; /* of entry and relay */
    idt_watcher_t *idle;  /* service_wake () */
    struct checks *checks;
    struct jv_reader reader; /* of submissions */

    struct block ids;
    struct entry *entry;
    struct entry_batch *out; /* of this rank, that the relay has not taken yet, or NULL */
    struct jobwire_reader out_jobs;
    struct relay *relay;
    struct pack_buf pack;         /* a batch on its way in, or out */
    bool unpacked;                /* the broker above takes no packed ones */
    char no_ids[SERVICE_WHY];     /* why the last try to get ids failed; "": it did not */
    char no_way[SERVICE_WHY];     /* ... to send a batch */
    LIST_HEAD (, child) children; /* batches that children sent */

    struct root *root; /* rank 0 alone */
    uint64_t submitted, refused;
    struct quota_rule submissions_rule; /* by ingest.max-waiting */
    struct quota submissions;           /* that wait, of each user */
};

uint64_t service_now_ms (void); /* CLOCK_BOOTTIME */

/* Have uplink_turn () called when all that came in is taken. */
void service_wake (struct service *sv);

/* --- submit.c ---------------------------------------------------------------------------------------------- */

void submit_cb (idt_t *h, const idt_msg_t *msg, void *arg);

/* A submission was looked at (errnum 0: it is good).  'check' is the caller's. */
void submit_checked (struct service *sv, struct check *check, int errnum, const idt_error_t *error);

/* An answer of the entry, whose cookie is the request. */
void submit_reply (void *arg, void *cookie, uint64_t id, int errnum, const char *text);

/* --- check.c ------------------------------------------------------------------------------------------------- */

/* A submission that is looked at. */
struct check {
    STAILQ_ENTRY (check) link;
    const idt_msg_t *msg; /* the request, without its payload */
    const char *j;        /* wrapped, in the payload while that is there, or in 'kept'; NULL: 'spec' is the jobspec */
    size_t j_size;
    char *kept;      /* malloced: J without escapes, or for a thread */
    uint32_t userid; /* who submits */
    uint32_t max;    /* bytes of a jobspec */
    uint32_t flags;
    uint8_t urgency;
    char key[JOBWIRE_KEY_MAX];
    uint8_t key_size;
    char *spec; /* malloced */
    size_t spec_size;
    struct quota *quota; /* in which it has a place; NULL: it has none, or the entry has that */
};

/* NULL with errno ENOMEM.  / What waits is answered with EHOSTUNREACH.  NULL is fine. */
struct checks *checks_create (struct service *sv);
void checks_destroy (struct checks *k);

/* Look at a submission: now, or in a thread where it is long; submit_checked () is told.  'c' is stolen. */
void checks_add (struct checks *k, struct check *c);
void check_destroy (struct check *c);

/* Drop those of a client that is gone. */
void checks_forget (struct checks *k, const idt_msg_t *disconnect);

/* --- uplink.c -------------------------------------------------------------------------------------------------- */

/* A batch of a child. */
void uplink_batch_cb (idt_t *h, const idt_msg_t *msg, void *arg);

/* Do what there is to do: ids, batches. */
void uplink_turn (struct service *sv);

/* Batch 'tag' was answered, at rank 0 by its root. */
void uplink_answered (struct service *sv, uint32_t tag, const void *data, size_t size);

/* Nobody is told any more; children send again. */
void uplink_stop (struct service *sv);

/* --- stats.c ----------------------------------------------------------------------------------------------------- */

void stats_get_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void stats_metrics_cb (idt_t *h, const idt_msg_t *msg, void *arg);

/* --- rank 0: root/ ------------------------------------------------------------------------------------------------ */

/* Where the store cannot be used nobody is told what becomes of a job, and the log says why. */
struct root *root_create (struct service *sv, idt_error_t *errp);
void root_destroy (struct root *root);

/* Take batch 'tag', borrowed until it is answered. */
void root_batch (struct root *root, uint32_t tag, const void *data, size_t size);

void root_watch_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void root_ack_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void root_get_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void root_list_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void root_stats_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void root_forget (struct root *root, const idt_msg_t *disconnect);
json_t *root_stats (const struct root *root);
void root_report (const struct root *root, struct metrics *m);

#endif /* INGEST_SERVICE_H */
