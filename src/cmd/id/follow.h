/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* follow.h - requests for ids that arrive line by line: idtree id new --follow as a coprocess
 *
 * A line is the number of ids to make; an empty line is 1.  Lines that arrive together are served together, and all ids
 * are written before the program waits again, so that the requester can read them.  No more ids are made than were
 * requested.
 */
#ifndef CMD_ID_FOLLOW_H
#define CMD_ID_FOLLOW_H

#include <stdint.h>

#include "cmd/base/cmd.h"

/* Print 'n', at least 1, to stdout; it may stop where stdout has an error. */
typedef void (*follow_f) (void *arg, uint64_t n);

/* Serve the lines of stdin, each at most 'max', until stdin ends or stdout has no reader any longer: the latter ends
 * the program immediately with CMD_OK.  At a line that is not such a number it ends the program with a message, after
 * it has served all lines before.
 */
void follow (const struct cmd *cmd, uint64_t max, follow_f make, void *arg);

#endif /* CMD_ID_FOLLOW_H */
