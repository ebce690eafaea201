/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* judge.h - compares the records of submitters and consumers of jobs with the promises
 *
 * A record is lines of text, each of which was appended in one write. An incomplete line at the end is ignored.
 *
 *     sent TAG              before a submission is sent, and before each repetition
 *     bad TAG               the same for a submission that must be refused
 *     id TAG ID             it was answered with this id
 *     errno TAG NUMBER      it was answered with an error, or its connection was lost
 *     silent TAG            it was not answered at all
 *     job ID TAG            a consumer received it
 *     again ID TAG          a consumer that continues after the acknowledged jobs received it again
 *     wrong TEXT            a consumer received an invalid answer
 *
 * These are violations:
 *   1. a submission that was answered with an id is not seen by a consumer, or seen under another id;
 *   2. a submission that was only ever refused is seen;
 *   3. a submission is seen twice by a consumer, or under two ids, or was answered with two ids;
 *   4. an id was the answer to two submissions;
 *   5. the ids that a consumer sees do not increase;
 *   6. a job is seen that was never sent; a submission that must be refused was accepted, or one was not answered.
 */
#ifndef JOBS_JUDGE_H
#define JOBS_JUDGE_H

#include <stdbool.h>
#include <stdio.h>

struct judge;

/* Make a judge. Ends the program if memory is short. */
struct judge *judge_create (void);
void judge_destroy (struct judge *j);

/* judge_begin (): begin a record. judge_line (): pass its next line, without the newline. */
void judge_begin (struct judge *j, const char *name);
void judge_line (struct judge *j, char *line);

/* Read a record from a file. Returns 0, or -1 with errno set. */
int judge_file (struct judge *j, const char *path);

/* Print the results, with the first violations as examples. Returns the number of violations. If no consumer has a
 * record, unseen submissions are not counted.
 */
unsigned long judge_tell (struct judge *j, FILE *out);

/* Whether a submission that failed with this errno was not stored. */
bool judge_is_refusal (int errnum);

#endif /* JOBS_JUDGE_H */
