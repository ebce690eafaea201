/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pg_server.h - a private PostgreSQL server for a test, with a synchronous copy of its log
 *
 * The server listens at a socket in a temporary folder. It refuses to run as root; if the test is root, the server runs
 * as nobody. Server and folder are removed when the test ends. The test is bailed out if something does not work.
 *
 * The copy is pg_receivewal: it stores the log, and confirms it like a second server. No commit is acknowledged while
 * the copy is stopped.
 */
#ifndef TEST_PG_SERVER_H
#define TEST_PG_SERVER_H

#include <stdint.h>

struct pg_server;

/* Why no server can run here; NULL if it can. */
const char *pg_server_lacks (void);

/* Make a server and start it. 'synchronous_standby_names' is "*", and the copy runs. */
struct pg_server *pg_server_start (void);
void pg_server_destroy (struct pg_server *s);

/* The folder of the socket, and how to connect: "host=DIR user=postgres dbname=postgres". */
const char *pg_server_dir (const struct pg_server *s);
const char *pg_server_conninfo (const struct pg_server *s);

/* Kill the server, or start it again. pg_server_run () returns when it answers. */
void pg_server_kill (struct pg_server *s);
void pg_server_run (struct pg_server *s);

/* Stop the copy, which does not end its connection; let it go on; end it, or start another one. The last function
 * returns when the server counts on the copy.
 */
void pg_server_copy_stop (struct pg_server *s);
void pg_server_copy_continue (struct pg_server *s);
void pg_server_copy_end (struct pg_server *s);
void pg_server_copy_start (struct pg_server *s);

/* Run a statement in a session that does not wait for the copy. Returns the first value of its first row; 0 if it has
 * none.
 */
int64_t pg_server_sql (struct pg_server *s, const char *sql);

/* Run a statement until its first value is 'value'. */
void pg_server_wait (struct pg_server *s, const char *sql, int64_t value);

/* Set synchronous_standby_names: "*" or "". Returns when new sessions see it. */
void pg_server_set_names (struct pg_server *s, const char *names);

#endif /* TEST_PG_SERVER_H */
