/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* survey.h - get the merged report of a subtree with one request (broker/metrics/serve.h) */
#ifndef CMD_LOOK_SURVEY_H
#define CMD_LOOK_SURVEY_H

#include <jansson.h>

#include "cmd/base/ranks.h"

/* A request for the report of a rank's subtree, with a deadline that fits --timeout; a new reference. */
json_t *survey_question_new (const struct cmd *cmd, uint32_t rank);

/* Send it ('question' is stolen).  Returns the report, a new reference, or NULL if the broker does not know the
 * request.  Ends the program with "WHAT: why" if no answer arrives.
 */
json_t *survey_new (struct cmd *cmd, json_t *question, const char *what);

/* overlay.topology of a rank, a new reference; and the ranks in it, for ranks_fini ().  Both end the program if the
 * rank does not exist.
 */
json_t *survey_topology_new (struct cmd *cmd, uint32_t rank);
struct ranks survey_subtree (struct cmd *cmd, uint32_t rank);

#endif /* CMD_LOOK_SURVEY_H */
