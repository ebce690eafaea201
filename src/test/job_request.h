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
    JOB_TOO_LARGE, /* the jobspec exceeds the default of ingest.max-jobspec */
    JOB_FAULTS,
};

struct job_request {
    const char *tag; /* value of attributes.user.tag: letters, digits, '.', '-' */
    const char *key; /* letters, digits, '.', '-'; NULL: no key */
    uint32_t userid;
    size_t size;   /* least size of the jobspec in bytes; a short one has about 250 */
    uint32_t seed; /* if not 0, half of the filling is random letters */
    enum job_fault fault;
};

/* Return the text of a request, for free (), or NULL with errno ENOMEM. */
char *job_request_text (const struct job_request *r);

#endif /* TEST_JOB_REQUEST_H */
