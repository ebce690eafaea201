/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* follow.h - requests that come line by line: idtree id new --follow as a coprocess
 *
 * A line is how many are wanted; an empty one is 1.  What came together is made together, and everything that was asked
 * for is written before more is waited for, so that who asks can read it.  Never is more made than was asked for.
 */
#ifndef CMD_ID_FOLLOW_H
#define CMD_ID_FOLLOW_H

#include <stdint.h>

#include "cmd/base/cmd.h"

/* Print 'n', at least 1, to stdout; it may stop where stdout has an error. */
typedef void (*follow_f) (void *arg, uint64_t n);

/* Answer stdin's lines, each at most 'max', until it ends or nobody reads stdout any more: that is no failure, and ends
 * the program at once with CMD_OK.  Ends the program with a sentence at a line that is no such number, when all before
 * it were answered.
 */
void follow (const struct cmd *cmd, uint64_t max, follow_f make, void *arg);

#endif /* CMD_ID_FOLLOW_H */
