/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_request.h - for tests and measurements: requests for job-ingest.submit, as stock clients of Flux send them */
#ifndef TEST_JOB_REQUEST_H
#define TEST_JOB_REQUEST_H

#include <stddef.h>
#include <stdint.h>

enum job_fault {
    JOB_GOOD,
    JOB_URGENCY,   /* above 31 */
    JOB_VERSION,   /* a jobspec of a version that is not */
    JOB_NOT_JSON,  /* in J */
    JOB_NO_J,      /* J is missing */
    JOB_OTHERS,    /* J says that another user wrote it */
    JOB_TOO_LARGE, /* above ingest.max-jobspec's default */
    JOB_FAULTS,
};

struct job_request {
    const char *tag; /* goes to attributes.user.tag; letters, digits, '.', '-' */
    const char *key; /* NULL: none; the same letters */
    uint32_t userid;
    size_t size;   /* of the jobspec at least, in bytes; a short one has about 250 */
    uint32_t seed; /* not 0: half of what fills it up is letters by chance */
    enum job_fault fault;
};

/* The text of a request, malloced; NULL with errno ENOMEM. */
char *job_request_text (const struct job_request *r);

#endif /* TEST_JOB_REQUEST_H */
