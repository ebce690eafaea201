/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* overlay.h - two ways to show a subtree: rank by rank, or as sets of ranks in the same state */
#ifndef CMD_LOOK_OVERLAY_H
#define CMD_LOOK_OVERLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/base/cmd.h"
#include "cmd/base/table.h"

#define OVERLAY_STATE_SIZE 32 /* bytes of the name of a state */

struct overlay_view {
    struct cmd *cmd;
    uint32_t rank; /* the root of the shown subtree */
    bool json;
    bool fluid; /* show sets of generators' states, too */
    bool down;  /* only ranks that are not full */
    struct color color;
};

/* The number of brokers in the subtree of a rank.  Ends the program if the rank does not exist. */
uint32_t overlay_subtree_size (struct cmd *cmd, uint32_t rank);

void overlay_print_tree (const struct overlay_view *v);
void overlay_print_sets (const struct overlay_view *v);

/* The color of a state. */
enum mood overlay_mood (const char *state);

#endif /* CMD_LOOK_OVERLAY_H */
