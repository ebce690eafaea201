/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* jobs.h - declarations that the commands of jobload share
 *
 *   jobload.c    options
 *   submitter.c  submits jobs, and records the answers
 *   consumer.c   receives jobs and acknowledges them, and records what it received
 *   crowd.c      many submitters and a consumer, processes that are killed from time to time until standard input ends;
 *                then checks their records
 *   record.c     the file that a submitter or consumer writes
 */
#ifndef JOBS_JOBS_H
#define JOBS_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAUSE_MS 2.   /* ms between a failure and the next attempt, to limit the load */
#define REOPEN_MS 10. /* ms between two attempts to connect */

/* --- records: judge.h describes their lines ----------------------------------------------------------------------- */

/* Open or make a file. Each complete line is passed to 'line'. An incomplete line at the end is removed. Returns a
 * descriptor; ends the program on failure.
 */
int record_open (const char *path, void (*line) (void *arg, char *line), void *arg);

/* Append a line, with a single write. */
void record_print (int fd, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));

/* --- commands: they return the exit status ------------------------------------------------------------------------ */

struct submit_options {
    const char *record;
    uint64_t count;  /* submissions for each URI; 0: submit until standard input ends */
    uint32_t window; /* pending submissions at a time, for each URI */
    size_t size;     /* size of a jobspec */
    bool keys;
    bool mixed;        /* some submissions are long, and some must be refused */
    const char **uris; /* NULL ends the list */
};

/* Submit jobs. With keys, a job is submitted again if it is unknown whether it was stored; the next process with the
 * same record does that, too. When standard input ends, each client submits a last job until this job has an id. Then
 * it is decided which of the earlier jobs of its rank were stored.
 */
int submitter_main (const struct submit_options *o);

struct consume_options {
    const char *record, *uri;
    uint32_t window; /* 0: the default of the broker */
    bool acked;      /* continue after the acknowledged jobs, not after the record */
};

/* Consume jobs until standard input ends, and then until all stored jobs are acknowledged. */
int consumer_main (const struct consume_options *o);

struct crowd_options {
    const char *program, *dir, *uri_prefix;
    uint64_t seed;
    char **ranks;
    int nranks;
};

int crowd_main (const struct crowd_options *o);

#endif /* JOBS_JOBS_H */
