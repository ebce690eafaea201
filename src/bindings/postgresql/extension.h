/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* extension.h - declarations that the files of the extension share
 *
 *   extension.c  settings, dates, clock, errors
 *   broker.c     ids and other data of a broker by message
 *   source.c     the source of a session's ids
 *   fluid.c      the functions in SQL
 *
 * All of it runs in a backend of PostgreSQL, which has one thread: static variables belong to its session.
 */
#ifndef POSTGRESQL_EXTENSION_H
#define POSTGRESQL_EXTENSION_H

#include "postgres.h" /* before all others */

#include <idtree/fluid.h>

_Static_assert(PG_VERSION_NUM >= 150000, "the extension idtree needs PostgreSQL 15 or later");

/* The type fluid is passed like int8 on every machine. */
#define FluidGetDatum(id) Int64GetDatum ((int64)(id))
#define DatumGetFluid(d) ((fluid_t)DatumGetInt64 (d))
#define PG_GETARG_FLUID(n) DatumGetFluid (PG_GETARG_DATUM (n))
#define PG_RETURN_FLUID(id) return FluidGetDatum (id)

struct pg_settings {
    char *uri;      /* "": as in idt_default_uri () */
    char *instance; /* the required UUID; "": any */
    char *epoch;    /* "": the instance's */
    int form;       /* enum fluid_form */
    int timeout_ms; /* how long a call waits for a broker */

    /* The UUID of the instance of this session's ids; "-": it has no UUID, "": not known yet. PostgreSQL passes all
     * settings of a leader to its parallel workers.
     */
    char *session_instance;

    int64 epoch_ms;      /* 'epoch' in Unix milliseconds */
    bool defined;        /* the others are valid: settings_need () ensures it */
    const char *refused; /* the setting whose value was refused when it was defined */
    bool moved;          /* 'uri' or 'instance' was set since source.c checked */
};
extern struct pg_settings settings;

/* Make the settings valid. Ends the query if that is impossible: in a parallel query that loads the extension, and in a
 * session that began with a value that its user may not set.
 */
void settings_need (void);

/* Pass the instance of this session to parallel workers that start later ("": it has no UUID); in a worker, get the
 * value of its leader (NULL: none).
 */
void settings_tell_workers (const char *uuid);
const char *settings_leader (void);

/* The form of ids, which is known even in those cases. */
enum fluid_form settings_form (void);

/* Find the form with a name in UTF-8. Returns false if there is no such form. */
bool form_find (const char *name, enum fluid_form *form);

/* The address of the broker: for idtree's functions (NULL is the default), and for messages. */
const char *settings_uri (void);
const char *settings_place (void);

/* Read a date of ISO 8601, to the millisecond: 2026-01-01, 2026-01-01 01:00:00.000+01, 2026-01-01T00:00:00Z. Without a
 * zone it is UTC. No setting of a session (timezone, DateStyle) changes the result. Returns false for other texts.
 */
bool date_read (const char *text, int64 *unix_ms);

int64 now_ms (void); /* CLOCK_MONOTONIC, with a resolution of a few milliseconds, because it is read for each id */

/* Sleep for 'ms', or less if an event arrives. If the query is cancelled, this throws the error. */
void pause_ms (long ms);

/* End the query with 'sentence', and a hint for that errno. */
__attribute__ ((noreturn)) void complain (int errnum, const char *sentence); /* PostgreSQL 18 has no macro for it */

/* --- broker.c: ids and other data of a broker by message --------------------------------------------
 *
 * A call waits for at most idtree.timeout. If the query is cancelled meanwhile, the call ends within a second, and the
 * connection stays usable.
 */

/* The behaviour of a call without a broker. */
enum need {
    NEED_NOT, /* the call soon returns false */
    NEED,     /* the query ends with an error */
    NEED_WAIT /* like NEED, but the broker was there before, so the call waits for it */
};

/* Get up to 'n' ids in increasing order, as many as are available. '*asked_ms' is when they were requested: now, or at
 * broker_ask_ahead (n), if that was the last call of this file. Returns their number; 0: none.
 */
uint32 broker_ids (uint32 n, fluid_t *ids, int64 *asked_ms, enum need need);

/* Request 'n' ids in advance, after broker_ids () got some: they arrive while those are used. */
void broker_ask_ahead (uint32 n);

/* Whether the broker answers now; then its instance is known. */
bool broker_is_there (void);

/* The number of generators of the broker (fluid.lanes); 0: there was no broker. */
int broker_lanes (void);

/* The epoch of the instance as text, which the caller must pfree (). 'need' must not be NEED_NOT. */
char *broker_epoch (enum need need);

/* The UUID of the instance; "": it has none. Borrowed until session_leave (). */
const char *broker_instance (void);

/* Close the connection, if there is one. */
void session_leave (void);

/* --- source.c: the source of a session's ids ---------------------------------------------------------
 *
 * If the broker shares its page, ids come from the page one by one, so each is above all earlier ids. Otherwise they
 * come from a block that is requested by message, and which grows while blocks are used up fast. Blocks are also used
 * if the ids of the page's generator in a millisecond are used up and the broker has more generators (fluid.lanes).
 */

/* A new id, above all that this session got before. */
fluid_t source_next (void);

/* If a broker is there, learn its instance when a query is planned, before the workers of the query need it. */
void source_prepare (void);

/* The epoch of the instance in Unix milliseconds: idtree.epoch, or the broker's, which is asked once. */
int64 source_epoch_ms (void);

#endif /* POSTGRESQL_EXTENSION_H */
