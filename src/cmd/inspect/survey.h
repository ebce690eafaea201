/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* survey.h - what a subtree tells, asked for with one request (broker/metrics/serve.h) */
#ifndef CMD_LOOK_SURVEY_H
#define CMD_LOOK_SURVEY_H

#include <jansson.h>

#include "cmd/base/ranks.h"

/* A question for the subtree of a rank, which is to be answered within --timeout; a new reference. */
json_t *survey_question_new (const struct cmd *cmd, uint32_t rank);

/* Ask it ('question' is stolen).  Returns the report, a new reference, or NULL where the broker knows no such request.
 * Ends the program where there is no answer: "WHAT: why".
 */
json_t *survey_new (struct cmd *cmd, json_t *question, const char *what);

/* overlay.topology of a rank, a new reference; and the ranks that are in it, for ranks_fini ().  End the program where
 * there is no such rank.
 */
json_t *survey_topology_new (struct cmd *cmd, uint32_t rank);
struct ranks survey_subtree (struct cmd *cmd, uint32_t rank);

#endif /* CMD_LOOK_SURVEY_H */
