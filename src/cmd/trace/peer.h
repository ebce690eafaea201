/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* peer.h - the filter of idtree trace --peer */
#ifndef CMD_TRACE_PEER_H
#define CMD_TRACE_PEER_H

#include <stdint.h>

#include <jansson.h>

#include "cmd/base/cmd.h"

/* Put 'peer' into a request for broker.trace at 'rank' (IDT_NODEID_ANY: the broker of the URI): a kind of peer, a rank
 * at the other end of a link, or the name of a module.  Connects, and checks that such a peer exists.  Ends the program
 * with a message if it can never exist; if it may appear later, prints a warning, and the trace waits for it.
 */
void peer_choose (struct cmd *cmd, uint32_t rank, const char *peer, json_t *request);

#endif /* CMD_TRACE_PEER_H */
