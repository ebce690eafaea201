/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job.h - what the commands about jobs share (doc/design/ingest.md) */
#ifndef CMD_JOB_H
#define CMD_JOB_H

#include <sys/types.h>

#include "cmd/base/ask.h"
#include "cmd/id/scheme.h"

#define JOBS_USER_MAX 64
#define JOBS_USERS 16

/* The name of a user, or the number as text; empty: unused entry. */
struct jobs_user {
    uid_t userid;
    char name[JOBS_USER_MAX];
};

/* The parsed options of a command. */
struct jobs {
    struct cmd *cmd;
    const char *form_name;
    int form;          /* of printed ids */
    const char *after; /* an id; NULL: not given */
    uint64_t count;    /* 0: not given */
    bool ack;
    bool no_jobspec;
    struct jobs_user users[JOBS_USERS]; /* cache of names, as a look-up may take long */
};

#define JOBS_AT(member) offsetof (struct jobs, member)
#define JOBS_FORMAT_OPTIONS(at)                                                                              \
    { 'F', "format", "FORM", "ids in this form (default f58): as of idtree id convert", cmd_take_text, at }, \
    {                                                                                                        \
        't', "to", "FORM", NULL, cmd_take_text, at                                                           \
    }
#define JOBS_AFTER_OPTION                                                                              \
    {                                                                                                  \
        'a', "after", "ID", "only jobs with ids above ID, in any form", cmd_take_text, JOBS_AT (after) \
    }

/* The number of a form of ids; NULL: F58.  Ends the program if the form is unknown. */
int jobs_form (const struct cmd *cmd, const char *name);

/* Parse the options. */
struct jobs jobs_begin (struct cmd *cmd);

/* Convert an id in any form to F58 in 'buf'.  Ends the program if 's' is not an id.  Returns 'buf'. */
const char *jobs_read_id (const struct cmd *cmd, const char *s, char buf[SCHEME_TEXT_MAX]);

/* Convert an id of an answer to form number 'form' in 'buf'.  Ends the program if 's' is not an id.  Returns 'buf'. */
const char *jobs_write_id (const struct cmd *cmd, int form, const char *s, char buf[SCHEME_TEXT_MAX]);

/* The same for the member "id" of a job, which becomes that text. */
void jobs_set_id (const struct jobs *j, json_t *job);

/* If 'f' (NULL: it could not be sent) failed because the module is not loaded, end the program with advice. */
void jobs_check_service (const struct cmd *cmd, const idt_future_t *f, const char *what);

/* Send a request of the service "ingest" to rank 0 and return the answer, a new reference; 'request' is stolen.  If it
 * fails end the program with "WHAT: why".
 */
json_t *jobs_ask_new (const struct jobs *j, const char *method, json_t *request, const char *what);

/* The name of the user of a job, or the number as text; borrowed until the next call. */
const char *jobs_user (struct jobs *j, const json_t *job);

#endif /* CMD_JOB_H */
