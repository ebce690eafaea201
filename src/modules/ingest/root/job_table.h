/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_table.h - jobs of a group that were put in, found by id and by key */
#ifndef INGEST_JOB_TABLE_H
#define INGEST_JOB_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modules/ingest/job/wire.h"

/* Must be zero initially. */
struct job_table {
    const struct job *job; /* of the group; borrowed */
    uint32_t *order;       /* the jobs that were put in: their places in 'job' */
    size_t count;
    uint32_t *ids, *keys; /* hash tables: place + 1; 0: empty */
    size_t slots;         /* of each; a power of 2 */
    size_t room;          /* jobs for which there is memory */
};

/* Begin a group of 'n' jobs, with none put in. Returns 0, or -1 with errno ENOMEM. */
int job_table_begin (struct job_table *t, const struct job *job, size_t n);
void job_table_fini (struct job_table *t);

/* Put in the job at place 'i'. */
void job_table_put (struct job_table *t, size_t i);

/* Whether a job with the id of job 'i' was put in. */
bool job_table_has_id (const struct job_table *t, size_t i);

/* The id of the job that was put in with the user and key of job 'i'; 0: none. */
uint64_t job_table_find_key (const struct job_table *t, size_t i);

#endif /* INGEST_JOB_TABLE_H */
