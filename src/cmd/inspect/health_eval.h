/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* health_eval.h - how a broker, and at rank 0 its instance, is, by what it answered; a thinking part
 *
 *   good      all is as it should be
 *   degraded  ids are made, and no promise is in danger; but somebody should look
 *   critical  ids are not made here, or soon will not be any more
 */
#ifndef CMD_LOOK_HEALTH_EVAL_H
#define CMD_LOOK_HEALTH_EVAL_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

enum grade { GRADE_GOOD, GRADE_DEGRADED, GRADE_CRITICAL }; /* the exit status of idtree health */

struct judgement {
    uint32_t rank;
    uint64_t lease_ms; /* fluid.lease; 0: not known */
    int in_flux;       /* the broker is one of Flux's: false until it is set */
    enum grade grade;  /* the worst of all */
    json_t *reasons;   /* [{"status":s,"what":s,"why":s},...], worst first; for json_decref () */
};

/* What is asked, in this order. */
struct question {
    const char *what;
    const char *topic;
    int flags; /* enum question_flag */

    /* Take an answer. */
    void (*judge) (struct judgement *j, const json_t *answer);
};

enum question_flag {
    QUESTION_ROOT = 1,     /* of rank 0 alone, for the instance */
    QUESTION_NOT_ROOT = 2, /* of all others */
    QUESTION_OPTIONAL = 4, /* it is no fault where nobody has that service */
};

extern const struct question judge_questions[];
#define HEALTH_EVAL_QUESTIONS_MAX 8 /* there are fewer; ended by one without a topic */

/* Whether it is to be asked of a rank. */
int health_eval_asks (const struct question *q, uint32_t rank);

void health_eval_begin (struct judgement *j, uint32_t rank, uint64_t lease_ms);

/* Take the answer to a question; or that it is an error. */
void health_eval_answer (struct judgement *j, const struct question *q, const json_t *answer);
void health_eval_error (struct judgement *j, const struct question *q, int errnum, const char *text);

/* Add a reason. */
void health_eval_add (struct judgement *j, enum grade grade, const char *what, const char *fmt, ...)
    __attribute__ ((format (printf, 4, 5)));

const char *grade_name (enum grade grade);

#endif /* CMD_LOOK_HEALTH_EVAL_H */
