/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* overlay.h - two ways to show a subtree: rank by rank, or as sets of ranks that are in the same state */
#ifndef CMD_LOOK_OVERLAY_H
#define CMD_LOOK_OVERLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/base/cmd.h"
#include "cmd/base/color.h"

#define OVERLAY_STATE_SIZE 32 /* of a state's name */

struct overlay_view {
    struct cmd *cmd;
    uint32_t rank; /* and those below it */
    bool json;
    bool fluid; /* sets of generators' states too */
    bool down;  /* only ranks that are not full */
    struct color color;
};

/* How many brokers the subtree of a rank has.  Ends the program where there is no such rank. */
uint32_t overlay_subtree_size (struct cmd *cmd, uint32_t rank);

void overlay_print_tree (const struct overlay_view *v);
void overlay_print_sets (const struct overlay_view *v);

/* How a state is to be looked at. */
enum mood overlay_mood (const char *state);

#endif /* CMD_LOOK_OVERLAY_H */
