/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* stats.h - add up the counters of many ranks */
#ifndef CMD_LOOK_STATS_H
#define CMD_LOOK_STATS_H

#include <stdbool.h>

#include <jansson.h>

#include "cmd/base/cmd.h"

/* Add the object 'o' of a rank to 'sum'.  Numbers are added, also in nested objects; of longest_* and max* the greatest
 * counts.  Other values, and numbers that name something (a rank), are kept if all ranks report the same one; otherwise
 * they become null.  Arrays are left out.
 */
void stats_add (json_t *sum, const json_t *o);

/* Send 'topic' to all of 'ranks' (a text) and print {"ranks":s,"sum":{...},"failed":{why:ranks}}; "failed" is present
 * only if a rank failed.  Returns the exit status: CMD_FAILED if a rank did not answer, or answered with an error.
 */
int stats_print (struct cmd *cmd, const char *ranks, const char *topic, bool json);

#endif /* CMD_LOOK_STATS_H */
