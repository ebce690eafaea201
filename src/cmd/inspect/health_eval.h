/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* health_eval.h - grade the health of a broker, and at rank 0 of its instance, by its answers.  Does no I/O.
 *
 *   good      all checks pass
 *   degraded  ids are made and all guarantees hold, but an operator should look
 *   critical  no ids are made for clients of this broker, or soon none will be made
 */
#ifndef CMD_HEALTH_EVAL_H
#define CMD_HEALTH_EVAL_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

enum grade { GRADE_GOOD, GRADE_DEGRADED, GRADE_CRITICAL }; /* the exit status of idtree health */

struct judgement {
    uint32_t rank;
    uint64_t lease_ms; /* fluid.lease in ms; 0: unknown */
    int in_flux;       /* whether the broker belongs to Flux; set by the caller */
    enum grade grade;  /* the worst grade of all reasons */
    json_t *reasons;   /* [{"status":s,"what":s,"why":s},...], worst first; owned */
};

/* The requests to send, in the order of the table. */
struct question {
    const char *what;
    const char *topic;
    int flags; /* bits of enum question_flag */

    /* Evaluate an answer. */
    void (*judge) (struct judgement *j, const json_t *answer);
};

enum question_flag {
    QUESTION_ROOT = 1,     /* sent to rank 0 only; asks about the instance */
    QUESTION_NOT_ROOT = 2, /* sent to all ranks except 0 */
    QUESTION_OPTIONAL = 4, /* a missing service is no fault */
};

extern const struct question judge_questions[];
#define HEALTH_EVAL_QUESTIONS_MAX 9 /* the table has fewer; it ends with an entry without a topic */

/* Whether the request must be sent to this rank. */
int health_eval_asks (const struct question *q, uint32_t rank);

void health_eval_begin (struct judgement *j, uint32_t rank, uint64_t lease_ms);

/* Grade the error of a request.  The function judge () of a question grades its answer. */
void health_eval_error (struct judgement *j, const struct question *q, int errnum, const char *text);

/* Add a reason for a grade. */
void health_eval_add (struct judgement *j, enum grade grade, const char *what, const char *fmt, ...)
    __attribute__ ((format (printf, 4, 5)));

const char *grade_name (enum grade grade);

#endif /* CMD_HEALTH_EVAL_H */
