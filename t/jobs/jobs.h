/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* jobs.h - what the commands of jobload share
 *
 *   jobload.c    options
 *   submitter.c  submits, and writes down what it was answered
 *   consumer.c   gets jobs and acknowledges them, and writes down what it saw
 *   crowd.c      many of both, each a process that is killed now and then, until standard input ends; then judges
 *   record.c     the file that one of them writes
 */
#ifndef JOBS_JOBS_H
#define JOBS_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAUSE_MS 2.   /* between a failure and the next try: what is down is not hammered */
#define REOPEN_MS 10. /* between tries to connect */

/* --- a record: what its lines mean is in judge.h ------------------------------------------------------------------ */

/* Open or make a file, whose text so far goes to 'line' without what is cut off at its end: that is removed.  Returns a
 * descriptor; ends the program where that fails.
 */
int record_open (const char *path, void (*line) (void *arg, char *line), void *arg);

/* Append one line in one go. */
void record_print (int fd, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));

/* --- commands: they return the exit status ------------------------------------------------------------------------ */

struct submit_options {
    const char *record;
    uint64_t count;  /* submissions of each URI; 0: until standard input ends */
    uint32_t window; /* that are under way at a time, for each URI */
    size_t size;     /* of a jobspec */
    bool keys;
    bool mixed;        /* some are long, and some must be refused */
    const char **uris; /* ended by NULL */
};

/* With keys what is unknown is submitted again, by the next process with the same record, too.  At the end of standard
 * input each client submits a last one until that has an id: then all that came to its rank before has its fate.
 */
int submitter_main (const struct submit_options *o);

struct consume_options {
    const char *record, *uri;
    uint32_t window; /* 0: as it is by default */
    bool acked;      /* go on after what was acknowledged, not after what the record has */
};

/* Until standard input ends; then until all that is stored is acknowledged. */
int consumer_main (const struct consume_options *o);

struct crowd_options {
    const char *program, *dir, *uri_prefix;
    uint64_t seed;
    char **ranks;
    int nranks;
};

int crowd_main (const struct crowd_options *o);

#endif /* JOBS_JOBS_H */
