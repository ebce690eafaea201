/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job.h - functions that idtree job submit and the other job commands share (doc/design/ingest.md) */
#ifndef CMD_JOB_H
#define CMD_JOB_H

#include "cmd/base/ask.h"
#include "cmd/id/scheme.h"

#define JOBS_FORMAT_OPTIONS(at)                                                                              \
    { 'F', "format", "FORM", "ids in this form (default f58): as of idtree id convert", cmd_take_text, at }, \
    {                                                                                                        \
        't', "to", "FORM", NULL, cmd_take_text, at                                                           \
    }
/* Return the number of a form of ids; of F58 if 'name' is NULL.  Ends the program if the form is unknown. */
int jobs_form (const struct cmd *cmd, const char *name);

/* Convert 's', an id in an answer, to form number 'form' in 'buf'.  Ends the program if 's' is not an id.  Returns
 * 'buf'.
 */
const char *jobs_write_id (const struct cmd *cmd, int form, const char *s, char buf[SCHEME_TEXT_MAX]);

/* If 'f' failed because the ingest module is not loaded, end the program with advice.  If 'f' is NULL, because the
 * request could not be sent, nothing is done.
 */
void jobs_check_service (const struct cmd *cmd, const idt_future_t *f, const char *what);

#endif /* CMD_JOB_H */
