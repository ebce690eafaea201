/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* extension.h - what the parts of the extension share: settings, clock, and how an error is told
 *
 * All of it runs in a backend of PostgreSQL, which is one thread: what is static here is that session's.
 */
#ifndef POSTGRESQL_EXTENSION_H
#define POSTGRESQL_EXTENSION_H

#include "postgres.h" /* before all else */

#include <idtree/fluid.h>

_Static_assert(PG_VERSION_NUM >= 150000, "the extension idtree needs PostgreSQL 15 or later");

/* The type fluid is passed as int8 is, whatever machine it is. */
#define FluidGetDatum(id) Int64GetDatum ((int64)(id))
#define DatumGetFluid(d) ((fluid_t)DatumGetInt64 (d))
#define PG_GETARG_FLUID(n) DatumGetFluid (PG_GETARG_DATUM (n))
#define PG_RETURN_FLUID(id) return FluidGetDatum (id)

struct pg_settings {
    char *uri;      /* "": as idt_default_uri () says */
    char *instance; /* the UUID that it must have; "": any */
    char *epoch;    /* "": the instance's */
    int form;       /* enum fluid_form */
    int timeout_ms; /* how long a call waits for a broker */

    /* The UUID of the instance whose ids this session has, "-": it has none, "": it is not known yet.  PostgreSQL tells
     * parallel workers all settings of their leader.
     */
    char *session_instance;

    int64 epoch_ms;      /* what 'epoch' says, in Unix milliseconds */
    bool defined;        /* the others are of use: settings_need () sees to it */
    const char *refused; /* the setting whose value was refused when it was defined */
    bool moved;          /* 'uri' or 'instance' was set since source.c looked */
};
extern struct pg_settings settings;

/* Let the settings be of use.  Ends the query where they can't be: in a parallel query that loads us in its midst, and
 * in a session that began with a value which its user may not set.
 */
void settings_need (void);

/* Tell parallel workers that begin later the instance of this session ("": it has no UUID); in a worker, get what its
 * leader told it, NULL: nothing.
 */
void settings_tell_workers (const char *uuid);
const char *settings_leader (void);

/* How ids are written, which can be told even there. */
enum fluid_form settings_form (void);

/* The form of that name, in UTF-8; false: there is none. */
bool form_find (const char *name, enum fluid_form *form);

/* Where the broker is: for idtree's calls, where NULL is the default, and for a person. */
const char *settings_uri (void);
const char *settings_place (void);

int64 now_ms (void); /* CLOCK_MONOTONIC, to a few milliseconds: it is read for each id */

/* Sleep so long, or less if something happens; a query that is cancelled ends here. */
void pause_ms (long ms);

/* End the query with a sentence, and what may help against an error of that errno. */
__attribute__ ((noreturn)) void complain (int errnum, const char *sentence); /* PostgreSQL 18 has its word no more */

#endif /* POSTGRESQL_EXTENSION_H */
