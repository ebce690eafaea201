/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_request.h - for tests and measurements: requests for job-ingest.submit, as Flux's clients send them */
#ifndef TEST_JOB_REQUEST_H
#define TEST_JOB_REQUEST_H

#include <stddef.h>
#include <stdint.h>

enum job_fault {
    JOB_GOOD,
    JOB_URGENCY,   /* an urgency above 31 */
    JOB_VERSION,   /* a jobspec of an unknown version */
    JOB_NOT_JSON,  /* the jobspec in J is not JSON */
    JOB_NO_J,      /* J is missing */
    JOB_OTHERS,    /* J names another user */
    JOB_TOO_LARGE, /* above the default of ingest.max-jobspec */
    JOB_FAULTS,
};

struct job_request {
    const char *tag; /* for attributes.user.tag; letters, digits, '.', '-' */
    const char *key; /* NULL: no key; same characters as tag */
    uint32_t userid;
    size_t size;   /* the least bytes of the jobspec; a short one has about 250 */
    uint32_t seed; /* not 0: half of the filling is random letters */
    enum job_fault fault;
};

/* Returns the text of a request, malloced, or NULL with errno ENOMEM. */
char *job_request_text (const struct job_request *r);

#endif /* TEST_JOB_REQUEST_H */
