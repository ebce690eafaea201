/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* completion.h - the scripts that complete commands, as etc/completion has them; make writes completion_scripts.c */
#ifndef CMD_COMPLETION_H
#define CMD_COMPLETION_H

#include <stddef.h>

struct completion_script {
    const char *shell;
    const char *text; /* of idtree, then of idtree-http */
};

extern const struct completion_script completion_scripts[]; /* ended by one without a shell */

#endif /* CMD_COMPLETION_H */
