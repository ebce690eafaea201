/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pg_proxy.h - for tests: a thread between libpq and a PostgreSQL server, which loses statements and answers
 *
 * The server must accept connections at a UNIX socket, and trust them. A statement must fit into one packet of 64 KiB,
 * unless no fault is set.
 */
#ifndef TEST_PG_PROXY_H
#define TEST_PG_PROXY_H

#include <stdbool.h>

struct pg_proxy;

/* What happens to the next statement, on any connection. Its connection ends in each case. */
enum pg_fault {
    PG_FAULT_NONE,
    PG_FAULT_QUERY,  /* it never arrives */
    PG_FAULT_ANSWER, /* it is done, and its answer is lost */
    PG_FAULT_LATE,   /* it arrives when pg_proxy_deliver () is called */
};

/* Start a proxy before the server whose socket is in folder 'server' (as libpq's "host"). Ends the program if it cannot
 * start.
 */
struct pg_proxy *pg_proxy_start (const char *server);
void pg_proxy_stop (struct pg_proxy *p);

/* The folder of the proxy's socket, as libpq's "host". */
const char *pg_proxy_host (const struct pg_proxy *p);

/* Set the fault of the next statement, and forget all others. */
void pg_proxy_fault (struct pg_proxy *p, enum pg_fault fault);

/* Add a fault. It happens to the first statement that contains 'text' (borrowed) after all earlier faults.
 */
void pg_proxy_fault_then (struct pg_proxy *p, enum pg_fault fault, const char *text);

/* Whether a fault has not happened yet. */
bool pg_proxy_is_armed (struct pg_proxy *p);

/* Deliver all statements that are held, and wait until the server has answered them. Returns their number. */
int pg_proxy_deliver (struct pg_proxy *p);

#endif /* TEST_PG_PROXY_H */
