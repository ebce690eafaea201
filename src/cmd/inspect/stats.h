/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* stats.h - counters of many ranks as one */
#ifndef CMD_LOOK_STATS_H
#define CMD_LOOK_STATS_H

#include <stdbool.h>

#include <jansson.h>

#include "cmd/base/cmd.h"

/* Add what a rank tells, an object, to 'sum'.  Numbers are added, also those of objects within; of longest_* and max*
 * the greatest counts.  What is no number, or a number that names something (a rank), is kept where all tell the same;
 * else it is null.  Arrays are left out.
 */
void stats_add (json_t *sum, const json_t *o);

/* Ask all of 'ranks' (a text) for 'topic' and print {"ranks":s,"sum":{...},"failed":{why:ranks}}, the last only where
 * there are such.  Returns the exit status: CMD_FAILED where some did not answer, or with an error.
 */
int stats_print (struct cmd *cmd, const char *ranks, const char *topic, bool json);

#endif /* CMD_LOOK_STATS_H */
