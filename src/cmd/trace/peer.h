/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* peer.h - whose messages idtree trace --peer shows */
#ifndef CMD_TRACE_PEER_H
#define CMD_TRACE_PEER_H

#include <stdint.h>

#include <jansson.h>

#include "cmd/base/cmd.h"

/* Put 'peer' into a request for broker.trace at 'rank' (IDT_NODEID_ANY: the broker of the URI): a kind of peer, a rank
 * at the other end of a link, or the name of a module.  Connects, and asks whether there is such a one.  Ends the
 * program with a sentence where none can come; where one may come later that is said, and the trace waits for it.
 */
void peer_choose (struct cmd *cmd, uint32_t rank, const char *peer, json_t *request);

#endif /* CMD_TRACE_PEER_H */
