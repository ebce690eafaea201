/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* completion.h - the completion scripts of etc/completion; make writes completion_scripts.c from them */
#ifndef CMD_COMPLETION_H
#define CMD_COMPLETION_H

#include <stddef.h>

struct completion_script {
    const char *shell;
    const char *text; /* for idtree, then for idtree-http */
};

extern const struct completion_script completion_scripts[]; /* ends with an entry without a shell */

#endif /* CMD_COMPLETION_H */
