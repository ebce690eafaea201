/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* overlay_summary.h - which ranks of a subtree are in which state, as sets */
#ifndef CMD_OVERLAY_SUMMARY_H
#define CMD_OVERLAY_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/base/cmd.h"

/* How many brokers the subtree of a rank has.  Ends the program where there is no such rank. */
uint32_t overlay_subtree_size (struct cmd *cmd, uint32_t rank);

/* Print the states of a rank and all below it.  'fluid': and of their generators, for which each of them is asked. */
void overlay_summary_print (struct cmd *cmd, uint32_t rank, bool fluid, bool json);

#endif /* CMD_OVERLAY_SUMMARY_H */
