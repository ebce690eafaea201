/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_backend.h - the database of a store of jobs: SQLite (job_disk.c) or PostgreSQL (job_pg.c)
 *
 * job_store.c decides what is stored, acknowledged and cleared away. A backend finds and changes rows. All functions
 * block, and are called by one thread at a time, except stop ().
 *
 * A group is begin (), functions that find and change, and then commit (), which is done completely or not at all, or
 * rollback (). Within a group, functions find what earlier ones have changed. If nothing is to be changed, look ()
 * suffices, and nothing must follow.
 *
 * Functions return 0, or -1 with errno set and 'errp' filled, unless they are described otherwise.
 */
#ifndef INGEST_JOB_BACKEND_H
#define INGEST_JOB_BACKEND_H

#include "modules/ingest/root/job_store.h"

/* The state after the last commit. */
struct job_store_state {
    struct job_store_counts counts;
    uint64_t cleared; /* jobspecs up to this id are deleted; at most counts.acked */
};

/* What clearing away does in one group: it takes some 20 ms. */
#define JOB_SLICE_JOBS 10000
#define JOB_SLICE_BYTES (16 << 20)

/* A group as it begins. A backend may read all that the functions will have to find in advance. */
struct job_backend_group {
    const struct job_store_group *group;
    struct job_store_state now;
    uint64_t acked; /* jobs up to this id are acknowledged after this group */
    bool notes;     /* note_time () will be called */
};

struct job_backend;

struct job_backend_ops {
    /* Read the state. EBADMSG: it contradicts itself. */
    int (*load) (struct job_backend *b, struct job_store_state *s, idt_error_t *errp);

    int (*look) (struct job_backend *b, const struct job_backend_group *g, idt_error_t *errp);
    int (*begin) (struct job_backend *b, const struct job_backend_group *g, idt_error_t *errp);

    /* Count the jobs with after < id <= upto, and their bytes. 'after' is the acknowledged id before the group, 'upto'
     * that after it.
     */
    int (*sum) (struct job_backend *b, uint64_t after, uint64_t upto, uint64_t *jobs, uint64_t *bytes,
                idt_error_t *errp);

    /* Record that all jobs up to 'upto' that have no time yet were acknowledged at 'now_s', and drop later times. */
    int (*note_time) (struct job_backend *b, int64_t now_s, uint64_t upto, idt_error_t *errp);

    /* Whether the id of job 'i' of the group is stored. Return 1 or 0, or -1. */
    int (*has_id) (struct job_backend *b, size_t i, idt_error_t *errp);

    /* Whether the key of job 'i', which has one, is stored for its user; 'id' gets the id. Return 1 or 0, or -1. */
    int (*find_key) (struct job_backend *b, size_t i, uint64_t *id, idt_error_t *errp);

    /* Store job 'i'. 'bytes': of its jobspec and key. */
    int (*put) (struct job_backend *b, size_t i, uint64_t bytes, idt_error_t *errp);

    /* Delete a slice of the jobspecs with cleared < id <= acked. '*upto' gets the id up to which they are deleted. */
    int (*clear_specs) (struct job_backend *b, uint64_t cleared, uint64_t acked, uint64_t *upto, idt_error_t *errp);

    /* Find the highest id that was acknowledged before 'forget_s'. Return 1, or 0 if there is none, or -1. */
    int (*find_old) (struct job_backend *b, int64_t forget_s, uint64_t *old, idt_error_t *errp);

    /* Delete a slice of the jobs up to 'upto'. '*last' gets the id of the last one, and '*n' their number, if any. */
    int (*drop_jobs) (struct job_backend *b, uint64_t upto, uint64_t *last, uint64_t *n, idt_error_t *errp);

    /* Drop the times before 'forget_s'. */
    int (*drop_times) (struct job_backend *b, int64_t forget_s, idt_error_t *errp);

    /* Make the group durable. 's' is the state after it. 'writes': write something, even if the group changed nothing,
     * or fail. If it fails, 'maybe' tells whether a later life may find the group all the same.
     */
    int (*commit) (struct job_backend *b, const struct job_store_state *s, bool writes, bool *maybe, idt_error_t *errp);

    /* End the group without a change. Keeps errno. */
    void (*rollback) (struct job_backend *b);

    /* Add jobs with after < id <= read->upto to 'read' by job_store_found (), in order. */
    int (*read) (struct job_backend *b, struct job_store_read *read, uint64_t after, bool specs);

    /* End the function that is running, and all later ones, if their duration has no limit. Another thread calls it. */
    void (*stop) (struct job_backend *b);

    /* Whether the running function waits for a server; 'why' gets the reason. Another thread calls it. */
    bool (*waits) (struct job_backend *b, idt_error_t *why);

    void (*close) (struct job_backend *b);
};

struct job_backend {
    const struct job_backend_ops *ops;
    const char *where; /* for messages */
    /* The last failure may be over soon: the jobs of the group should wait, and be tried again. */
    bool passing;
    /* A later life may write to the same store while this one runs. So verdicts that say that a job is not stored need
     * a commit.
     */
    bool shared;
};

struct job_backend *job_disk_open (const char *dir, const char *holder, idt_error_t *errp);
struct job_backend *job_pg_open (const struct module_place *place, idt_error_t *errp);

/* Add a job to what a read has found. Returns 1 if more jobs may follow, 0 if the read is full, or -1 with errno ENOMEM
 * and read->error filled.
 */
int job_store_found (struct job_backend *b, struct job_store_read *read, const struct job *job);

#endif /* INGEST_JOB_BACKEND_H */
