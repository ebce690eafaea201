/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* judge.h - what submitters and consumers of jobs wrote down, against what they were promised
 *
 * A record is lines of text, each appended in one go; what was cut off at its end was never said.
 *
 *     sent TAG              before a submission goes out; again before each repetition
 *     bad TAG               the same of one that must be refused
 *     id TAG ID             it was answered with this id
 *     errno TAG NUMBER      it was answered with an error, or its connection was lost
 *     silent TAG            it was not answered at all
 *     job ID TAG            a consumer got it
 *     again ID TAG          a consumer that asked for what was not acknowledged got it once more
 *     wrong TEXT            a consumer got what is no answer
 *
 * It is wrong that
 *   1. a submission that was answered with an id is not seen, or seen under another id;
 *   2. one that was refused each time (and only refused) is seen;
 *   3. one is seen twice by a consumer, or under two ids, or answered with two;
 *   4. an id was answered to two submissions;
 *   5. ids that a consumer sees do not increase;
 *   6. one is seen that nobody sent; one that must be refused was not; one was not answered.
 */
#ifndef JOBS_JUDGE_H
#define JOBS_JUDGE_H

#include <stdbool.h>
#include <stdio.h>

struct judge;

/* Ends the program where there is no memory. */
struct judge *judge_create (void);
void judge_destroy (struct judge *j);

/* A record begins, then comes its text, one line after the other, without newlines. */
void judge_begin (struct judge *j, const char *name);
void judge_line (struct judge *j, char *line);

/* The same of a file.  Returns 0, or -1 with errno. */
int judge_file (struct judge *j, const char *path);

/* Tell what was found, with the first examples of what is wrong.  Returns how much is wrong.  Without a consumer among
 * the records nothing is said of what is not seen.
 */
unsigned long judge_tell (struct judge *j, FILE *out);

/* Whether this errno says that a job is not there. */
bool judge_is_refusal (int errnum);

#endif /* JOBS_JUDGE_H */
