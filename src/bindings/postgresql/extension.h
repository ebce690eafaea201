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

#include "postgres.h" /* must be included first */

#include <idtree/fluid.h>

_Static_assert(PG_VERSION_NUM >= 150000, "the extension idtree needs PostgreSQL 15 or later");

/* The type fluid is passed by value, like int8, if the machine passes int8 by value. */
#define FluidGetDatum(id) Int64GetDatum ((int64)(id))
#define DatumGetFluid(d) ((fluid_t)DatumGetInt64 (d))
#define PG_GETARG_FLUID(n) DatumGetFluid (PG_GETARG_DATUM (n))
#define PG_RETURN_FLUID(id) return FluidGetDatum (id)

struct pg_settings {
    char *uri;      /* "": the default of idt_default_uri () */
    char *instance; /* the UUID that the instance must have; "": any instance */
    char *epoch;    /* "": the epoch of the instance */
    int form;       /* enum fluid_form */
    int timeout_ms; /* how long a call waits for the broker */

    /* The UUID of the instance whose ids this session has; "-": the instance has no UUID; "": not known yet. It is a
     * setting, because PostgreSQL passes all settings of a leader to its parallel workers.
     */
    char *session_instance;

    int64 epoch_ms;      /* 'epoch' in Unix milliseconds */
    bool defined;        /* the settings were defined, so their values are valid: see settings_need () */
    const char *refused; /* a setting whose value was refused when it was defined; NULL: none */
    bool moved;          /* 'uri' or 'instance' was set after source.c used it last */
};
extern struct pg_settings settings;

/* Make the settings valid. Ends the query if that is impossible: in a parallel query that loads the extension, and in a
 * session that began with a value that its user may not set.
 */
void settings_need (void);

/* settings_tell_workers (): pass the instance of this session to parallel workers that start later ("": it has no
 * UUID). settings_leader (): in a worker, return the value that its leader has passed (NULL: none).
 */
void settings_tell_workers (const char *uuid);
const char *settings_leader (void);

/* Return the form of ids. It is known even if settings_need () would end the query. */
enum fluid_form settings_form (void);

/* Find the form that has this name, a text in UTF-8. Returns false if there is no such form. */
bool form_find (const char *name, enum fluid_form *form);

/* The address of the broker: settings_uri () for idtree's functions (NULL is the default), settings_place () for
 * messages.
 */
const char *settings_uri (void);
const char *settings_place (void);

/* Read a date of ISO 8601, to the millisecond: 2026-01-01, 2026-01-01 01:00:00.000+01, 2026-01-01T00:00:00Z. A date
 * without a zone is in UTC. No setting of a session (timezone, DateStyle) changes the result. Returns false if the text
 * is not such a date.
 */
bool date_read (const char *text, int64 *unix_ms);

int64 now_ms (void); /* CLOCK_MONOTONIC; read for each id, so its resolution is only a few milliseconds */

/* Sleep for 'ms', or until an event arrives. If the query is cancelled, this throws the error. */
void pause_ms (long ms);

/* End the query with the error 'sentence', and with a hint for 'errnum'. */
__attribute__ ((noreturn)) void complain (int errnum,
                                          const char *sentence); /* PostgreSQL 18 has no macro for noreturn */

/* --- broker.c: ids and other data of a broker by message --------------------------------------------
 *
 * A call waits for at most idtree.timeout. If the query is cancelled meanwhile, the call ends within a second, and the
 * connection stays usable.
 */

/* The behaviour of a call if there is no broker. */
enum need {
    NEED_NOT, /* the call soon returns without a result */
    NEED,     /* the query soon ends with an error */
    NEED_WAIT /* the broker was there before: the query waits for it, then ends with an error */
};

/* Get up to 'n' ids in increasing order, as many as are available. '*asked_ms' is the time when these ids were
 * requested: now, or at broker_ask_ahead (n) if no other function of this file was called since. Returns the number of
 * ids; 0: none.
 */
uint32 broker_ids (uint32 n, fluid_t *ids, int64 *asked_ms, enum need need);

/* Request 'n' ids in advance, after broker_ids () got some. They arrive while the present ones are used. */
void broker_ask_ahead (uint32 n);

/* Whether the broker answers now. If it does, its instance is known afterwards. */
bool broker_is_there (void);

/* Return the number of the broker's generators (fluid.lanes); 0: no broker answered yet. */
int broker_lanes (void);

/* Return the epoch of the instance as text, which the caller must pfree (). 'need' must not be NEED_NOT. */
char *broker_epoch (enum need need);

/* Return the UUID of the instance; "": the instance has none. Borrowed until session_leave (). */
const char *broker_instance (void);

/* Close the connection, if there is one. */
void session_leave (void);

/* --- source.c: the source of a session's ids -----------------
 *
 * If the broker shares its page, ids come from the page one by one, so each is above all earlier ids. Otherwise ids
 * come from a block, which is requested by message. Blocks grow while they are used up fast. A session with a page uses
 * blocks, too, if it has used all ids that the page's generator may make in a millisecond, and the broker has more
 * generators (fluid.lanes).
 */

/* Return a new id, above all ids that this session got before. */
fluid_t source_next (void);

/* If a broker is there, learn its instance. This is called when a query is planned, because workers of the query need
 * the instance.
 */
void source_prepare (void);

/* Return the epoch of the instance in Unix milliseconds: idtree.epoch, or the broker's epoch, which is requested only
 * once.
 */
int64 source_epoch_ms (void);

#endif /* POSTGRESQL_EXTENSION_H */
