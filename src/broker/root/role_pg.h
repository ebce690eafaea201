/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* role_pg.h - the role of rank 0 in PostgreSQL: carries out what role.h decides
 *
 * A thread runs the statements, one at a time, over a connection of its own. Another thread looks whether another
 * candidate accepts connections. All functions belong to the thread of the reactor, and do not block, except
 * role_pg_create () and role_pg_destroy () for a moment.
 */
#ifndef BROKER_ROLE_PG_H
#define BROKER_ROLE_PG_H

#include <jansson.h>

#include <idtree/reactor.h>

#include "broker/root/peers.h"
#include "broker/root/role.h"
#include "broker/root/root_attrs.h"
#include "broker/root/root_conf.h"

struct role_pg;

/* The state or the ending of the role, or the reason of a failure, has changed. */
typedef void (*role_pg_f) (void *arg);

struct role_pg_conf {
    idt_reactor_t *reactor;
    const struct root_conf *root;                         /* copied; its texts are borrowed */
    const char *host;                                     /* of this candidate, for messages */
    uint32_t candidate;                                   /* its position in cluster.root */
    const struct peer_list *peers;                        /* the other candidates; copied; NULL: there are none */
    char attributes[ROOT_ATTRS_SIZE];                     /* root_attrs_describe () */
    role_pg_f changed;                                    /* may destroy nothing; may be called without a change */
    void (*say) (void *arg, int level, const char *text); /* a line for the log */
    void *arg;
};

/* Begin to wait for the role. NULL with errno set and 'errp' filled. */
struct role_pg *role_pg_create (const struct role_pg_conf *conf, idt_error_t *errp);

/* NULL is allowed; keeps errno. A statement that is under way may still be carried out. */
void role_pg_destroy (struct role_pg *p);

const struct role *role_pg_role (const struct role_pg *p);

/* Why this process cannot use the store at all, so that waiting is in vain; NULL: there is no such reason. Sets errno:
 * STATE_REFUSED, or EINVAL if uid.drift of this host is another one than that of the instance.
 */
const char *role_pg_refusal (const struct role_pg *p);

/* See role_end (). */
void role_pg_end (struct role_pg *p, enum role_ending how);

/* Why the role has ended, or what this candidate waits for, as a sentence without a subject. Returns 'text'. */
#define ROLE_PG_TEXT 512
const char *role_pg_text (const struct role_pg *p, char text[ROLE_PG_TEXT]);

/* While the store does not answer, 'ask' is called about once a second: its owner then calls role_pg_tell_horizon ()
 * when it knows whether this root has no time left to grant. NULL: no longer.
 */
void role_pg_ask_horizon (struct role_pg *p, role_pg_f ask, void *arg);
void role_pg_tell_horizon (struct role_pg *p, bool past);

/* The name of this candidate's host. */
const char *role_pg_host (const struct role_pg *p);

/* Candidates in cluster.root, with this one; 1: no other host can take over. */
uint32_t role_pg_candidates (const struct role_pg *p);

/* How many of them stand by, as the newest beat counted them; -1: not known. */
int64_t role_pg_standbys (const struct role_pg *p);

/* How often a process became rank 0 after the first one: by a takeover, a release, or a restart. */
uint64_t role_pg_takeovers (const struct role_pg *p);

/* The newest failure of the store: it does not answer, or a commit would not be on a second server. "": none. */
const char *role_pg_why (const struct role_pg *p);

/* A subquery that counts the candidates that stand by: processes that have read the row in the last seconds. (With the
 * longest root.takeover they read it each 5 s.)
 */
#define ROLE_PG_STANDBYS                                                                                             \
    "(SELECT count(*) FROM pg_stat_activity WHERE application_name = 'idtree role' AND datname = current_database()" \
    " AND query LIKE 'SELECT term,%' AND query_start > now() - interval '10 s')"

/* A description for requests: {"term", "host", "candidate", "candidates", "standbys", "takeovers", "takeover_ms",
 * "answered_ms", "why"}: 'answered_ms' is the time since the newest answer of the store; 'standbys' is missing until it
 * is known; the others are as above. Returns a new reference, or NULL without memory.
 */
json_t *role_pg_report_new (const struct role_pg *p);

/* Milliseconds since the newest answer of the store. */
uint64_t role_pg_silent_ms (const struct role_pg *p);

#endif /* BROKER_ROLE_PG_H */
