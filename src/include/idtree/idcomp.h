/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* idcomp.h - distributed id compressor: small integers for the UUIDs of one document
 *
 * A session makes version 4 UUIDs without asking anybody and works with 64-bit integers instead:
 *   local id   -1, -2, ...  the first, second, ... id of its session; means something there only
 *   final id   0, 1, ...    means the same for everybody in the document
 * The number of an id within its session, from 1, is its generation count; a local id is its
 * negative.  The id with generation count g of session s is the UUID s + (g - 1), where addition
 * leaves out the six bits of a UUID that never change.
 *
 * Sessions announce what they made as creation ranges.  Somebody else puts the ranges of all
 * sessions into one total order, and every session finalizes them in that order, its own too.  All
 * that finalized the same ranges agree on final ids.  Finalizing sets some final ids aside for the
 * session of the range, so that it can hand them out at once (eager ids).
 *
 * Behaviour, wire form and stored form are those of Fluid Framework's id compressor 3.1.  A name in
 * parentheses is that of the original's function.
 *
 * Life cycle
 * 1. Two objects must never be the same session at the same time: they would make the same UUIDs.
 * 2. Ranges of one session must be ordered in the order in which they were taken.
 * 3. A function that fails changes nothing.  There is one exception: when idcomp_finalize () or a
 *    ghost session finds that two sessions made the same UUIDs (IDCOMP_ECOLLISION), the object is
 *    broken, and refuses all work with IDCOMP_EBROKEN until it is destroyed.  (IDCOMP_ORIGINAL adds
 *    two more: a first range out of order registers its session, and a take that is refused for its
 *    cluster size has moved on.)
 * 4. After fork () the parent goes on.  In the child, which would make the same UUIDs, all that makes
 *    ids fails with EPERM: it takes a session of its own.
 * 5. Functions that take a 'const struct idcomp *' may be called from many threads at once, as long
 *    as no thread changes the object.
 *
 * These functions use libc alone, hold no state outside of their objects and look at neither
 * locale, environment, files nor clock (but which process they are in).  None blocks.  Functions that allocate may fail
 * with ENOMEM.
 */
#ifndef IDTREE_IDCOMP_H
#define IDTREE_IDCOMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define IDCOMP_CLUSTER_SIZE_DEFAULT 512
#define IDCOMP_CLUSTER_SIZE_MAX (1 << 20)
#define IDCOMP_UUID_TEXT_LEN 36       /* characters of a UUID as text, without a NUL */
#define IDCOMP_UUID_TEXT_MAX 37       /* bytes that hold it with its NUL */
#define IDCOMP_RANGE_RUNS_MAX 1000000 /* local runs that a received range may have */

/* The largest final id and generation count: up to here JSON and the stored form are exact. */
#define IDCOMP_ID_MAX ((INT64_C (1) << 53) - 1)

struct idcomp;

/* Ids or generation counts that follow each other: 'first' and the count - 1 next ones.  A run of
 * local ids goes down: -3, -4, ...; all others go up.
 */
struct idcomp_run {
    int64_t first;
    int64_t count; /* >= 1 */
};

/* --- errors ------------------------------------------------------------------------------- */

/* Values of errno, above those of the system; idcomp_errno () gives the nearest one of those. */
enum {
    IDCOMP_EBASE = 0x1dc0000,
    IDCOMP_EUNKNOWN_ID,            /* no such id */
    IDCOMP_EUNKNOWN_OP_ID,         /* no such id in op space */
    IDCOMP_EUNKNOWN_SESSION,       /* nothing of this session was finalized */
    IDCOMP_EINVALID_LOCAL_ID,      /* this session did not hand out this local id */
    IDCOMP_ENOT_COMPRESSED,        /* the UUID has no id here */
    IDCOMP_ENO_ORIGIN,             /* a local id without its session has no meaning */
    IDCOMP_EHAS_LOCAL_FORM,        /* a final id was given that this session knows as a local one */
    IDCOMP_ENOT_GENERATED_YET,     /* (IDCOMP_ORIGINAL only) the UUID is reserved but was not made */
    IDCOMP_ERANGE_ORDER,           /* a gap, repeat or overlap of a session's ranges */
    IDCOMP_ERANGE_COUNT,           /* a range of less than one id */
    IDCOMP_ERANGE_NOT_GENERATED,   /* a range names ids of this session that it has not made */
    IDCOMP_ERANGE_FORM,            /* not the JSON text of a range */
    IDCOMP_ECLUSTER_SIZE_LOW,      /* below 1 */
    IDCOMP_ECLUSTER_SIZE_HIGH,     /* above IDCOMP_CLUSTER_SIZE_MAX */
    IDCOMP_ELIMIT,                 /* an id would be above IDCOMP_ID_MAX */
    IDCOMP_EGHOST_ACTIVE,          /* not while a ghost session is active */
    IDCOMP_EGHOST_NESTED,          /* a ghost session is active already */
    IDCOMP_EGHOST_KNOWN,           /* the ghost session is a real one */
    IDCOMP_ECOLLISION,             /* two sessions made the same UUIDs */
    IDCOMP_EBROKEN,                /* the object saw a collision before */
    IDCOMP_EBAD_UUID,              /* no UUID of version 4, or too near to the largest for a session */
    IDCOMP_ESESSION_ALIAS,         /* (IDCOMP_ORIGINAL only) one session under two names */
    IDCOMP_ESESSION_EXISTS,        /* a session is twice in a stored form, or loads its own summary */
    IDCOMP_EVERSION_OLD,           /* stored form 1 */
    IDCOMP_EVERSION_UNKNOWN,       /* stored form neither 1 nor 2 */
    IDCOMP_EHAS_LOCAL_STATE,       /* a stored session can't be loaded as a new one */
    IDCOMP_ENO_SESSION_ID,         /* a summary needs a new session to load it */
    IDCOMP_ECORRUPT_NO_SESSION,    /* the stored form has no session */
    IDCOMP_ECORRUPT_SESSION_INDEX, /* a cluster of no session */
    IDCOMP_ECORRUPT_LOCAL_RANGES,  /* local runs out of order */
    IDCOMP_ECORRUPT_LENGTH,        /* not a multiple of 8 bytes */
    IDCOMP_ECORRUPT_TRUNCATED,     /* the stored form ends too early */
    IDCOMP_ECORRUPT_TRAILING,      /* the stored form ends too late */
    IDCOMP_ECORRUPT_VALUE,         /* a value that no compressor writes */
    IDCOMP_ECORRUPT_BASE64,        /* not base64 */
    IDCOMP_EEND
};

/* What an errno value means, as a sentence without full stop.  Borrowed, constant. */
const char *idcomp_strerror (int errnum);

/* The symbol of an errno value of this library without IDCOMP_E, for instance "RANGE_ORDER"; NULL
 * for values of the system.  Borrowed, constant.
 */
const char *idcomp_error_name (int errnum);

/* The system's errno value nearest to one of this library.  Others are returned as they are. */
int idcomp_errno (int errnum);

/* --- UUIDs -------------------------------------------------------------------------------- */

struct idcomp_uuid {
    unsigned char bytes[16]; /* in the order of the text form */
};

/* Read a UUID from the 'len' characters at 'text' (a NUL is not needed), in upper or lower case.
 * Returns 0, or -1 with errno set, '*uuid' untouched, and the index of the first character at fault in
 * '*errpos' (which may be NULL):
 *   EMSGSIZE  'len' is not 36; '*errpos' is the smaller of 'len' and 36
 *   EINVAL    a character cannot stand where it is, that of the version (4) and of the variant (8, 9, a,
 *             b) included
 */
int idcomp_uuid_parse (const char *text, size_t len, struct idcomp_uuid *uuid, size_t *errpos);

/* Write the text form in lower case with its NUL to 'buf' of 'size' bytes.  Returns
 * IDCOMP_UUID_TEXT_LEN, or -1 with errno ENOSPC when 'size' is below IDCOMP_UUID_TEXT_MAX.
 */
int idcomp_uuid_format (const struct idcomp_uuid *uuid, char *buf, size_t size);

/* Turn 16 random bytes into a UUID of version 4, for instance for a new session. */
struct idcomp_uuid idcomp_uuid_random (const unsigned char random[16]);

/* (isStableId)  True if 'text' is the form in which compressors name ids: a UUID of version 4 with
 * the letter of its variant, but not necessarily its other letters, in lower case.
 */
bool idcomp_is_stable_id (const char *text);

/* --- life --------------------------------------------------------------------------------- */

/* Flags of a compressor, joined with |. */
enum {
    IDCOMP_STRICT = 0,
    IDCOMP_ORIGINAL = 1, /* answer as the original does where it looks accidental
                            (doc/guide/compressor.md); for comparison with it */
    IDCOMP_ORDERER = 2,  /* for who decides on the total order: a range that collides is refused and
                            changes nothing, as it is not in the order then */
};

/* Make a compressor for a new session named by the UUID 'session'.  It belongs to the caller.
 * Returns NULL with errno set:
 *   IDCOMP_EBAD_UUID  'session' is no UUID, or nearer than 2^53 to the largest one
 */
struct idcomp *idcomp_create (const char *session, int flags);

/* Free a compressor.  Takes NULL; keeps errno. */
void idcomp_destroy (struct idcomp *c);

/* The local session as text.  Borrowed, valid until idcomp_destroy (). */
const char *idcomp_session (const struct idcomp *c);

/* Ask for 'size' spare final ids with each range taken from now on (IDCOMP_CLUSTER_SIZE_DEFAULT at
 * first, also after loading).  Returns 0, or -1 with errno set:
 *   IDCOMP_ECLUSTER_SIZE_LOW, IDCOMP_ECLUSTER_SIZE_HIGH
 */
int idcomp_set_cluster_size (struct idcomp *c, int64_t size);

/* --- making ids --------------------------------------------------------------------------- */

/* Make an id, in session space.  Returns 0, or -1 with errno set and '*id' untouched:
 *   IDCOMP_ELIMIT     this session made IDCOMP_ID_MAX ids
 *   IDCOMP_ECOLLISION in a ghost session
 *   IDCOMP_EBROKEN
 *   EPERM             this is a child process, and the session is its parent's
 */
int idcomp_generate (struct idcomp *c, int64_t *id);

/* Make 'count' (>= 1) ids at once, the same as that many calls of idcomp_generate ().  Returns the
 * number of runs that they form, 1 or 2, or -1 with errno as above and no id made.
 */
int idcomp_generate_runs (struct idcomp *c, int64_t count, struct idcomp_run runs[2]);

/* (generateDocumentUniqueId)  Make an id that means the same in the whole document from now on:
 * '*id' if it is final (>= 0), else the UUID stored in '*uuid'.  Returns 0, or -1 with errno as
 * above.
 */
int idcomp_generate_unique (struct idcomp *c, int64_t *id, struct idcomp_uuid *uuid);

/* --- creation ranges ---------------------------------------------------------------------- */

struct idcomp_range {
    char session[IDCOMP_UUID_TEXT_MAX];
    bool has_ids;            /* false: an empty range, what follows has no meaning */
    int64_t first;           /* generation count of its first id */
    int64_t count;           /* >= 1 */
    int64_t cluster_size;    /* spare ids asked for, 1 ... IDCOMP_CLUSTER_SIZE_MAX */
    struct idcomp_run *runs; /* counts handed out as local ids; not used for finalizing */
    size_t nruns;
};

/* Free what take and decode functions allocated in a range and make it empty. */
void idcomp_range_fini (struct idcomp_range *range);

/* Take the ids made since the last take as a range, to be finalized by everybody.  The range
 * belongs to the caller (idcomp_range_fini ()); it is empty if there are none.  Returns 0, or -1
 * with errno set and '*range' untouched:
 *   IDCOMP_EGHOST_ACTIVE, IDCOMP_EBROKEN
 */
int idcomp_take (struct idcomp *c, struct idcomp_range *range);

/* The same with all ids that are not finalized, for ranges that were lost.  Ranges taken before
 * must be certain never to be ordered.
 */
int idcomp_take_unfinalized (struct idcomp *c, struct idcomp_range *range);

/* (resetUnfinalizedCreationRange)  Let the next take start with the first id that is not finalized,
 * on the same condition.
 */
int idcomp_reset_ranges (struct idcomp *c);

/* Finalize the next range of the total order.  Returns 0, or -1 with errno set:
 *   IDCOMP_ERANGE_ORDER          it does not start at idcomp_expected ()
 *   IDCOMP_ERANGE_COUNT, IDCOMP_ECLUSTER_SIZE_LOW, IDCOMP_ECLUSTER_SIZE_HIGH, IDCOMP_EBAD_UUID
 *   IDCOMP_ERANGE_NOT_GENERATED  it names ids of the local session that were not made here
 *   IDCOMP_ELIMIT                a final id or generation count would be above IDCOMP_ID_MAX
 *   IDCOMP_EGHOST_ACTIVE
 *   IDCOMP_ECOLLISION            see life cycle 3; from then on IDCOMP_EBROKEN
 */
int idcomp_finalize (struct idcomp *c, const struct idcomp_range *range);

/* The generation count at which the next range of 'session' must start; 1 for unknown sessions. */
int64_t idcomp_expected (const struct idcomp *c, const char *session);

/* Bytes of the JSON text of a range with its NUL. */
size_t idcomp_range_format_size (const struct idcomp_range *range);

/* Write the JSON text of a range, as other compressors exchange it, with its NUL to 'buf' of 'size'
 * bytes.  Returns the length without the NUL, or -1 with errno ENOSPC, and the content of 'buf'
 * undefined, when 'size' is below idcomp_range_format_size ().
 */
ssize_t idcomp_range_format (const struct idcomp_range *range, char *buf, size_t size);

/* Read the JSON text of a range of 'len' bytes; members may come in any order.  The range belongs
 * to the caller (idcomp_range_fini ()).  Numbers are not judged here but by idcomp_finalize ().
 * Returns 0, or -1 with errno set and '*range' untouched:
 *   IDCOMP_ERANGE_FORM  anything else, also unknown members, and too many runs; '*errpos' (may be
 *                       NULL) is the index of what cannot stand there, or where the text ends too early
 */
int idcomp_range_parse (const char *text, size_t len, struct idcomp_range *range, size_t *errpos);

/* --- ghost sessions ----------------------------------------------------------------------- */

/* From now to idcomp_ghost_end () ids are made for 'session' and are final at once.  Every session
 * of the document must do this at the same place of the total order, with the same session and
 * number of ids.  Returns 0, or -1 with errno set:
 *   IDCOMP_EGHOST_NESTED, IDCOMP_EBAD_UUID, IDCOMP_EBROKEN
 *   IDCOMP_EGHOST_KNOWN   it is the local session, or one that has spare final ids
 */
int idcomp_ghost_begin (struct idcomp *c, const char *session);

/* End it.  Does nothing if there is none. */
void idcomp_ghost_end (struct idcomp *c);

/* --- converting ids ------------------------------------------------------------------------ */

/* Turn an id of session space into its most final form, to be sent along with the local session.
 * Final ids are not checked.  Returns 0, or -1 with errno set and '*op' untouched:
 *   IDCOMP_EINVALID_LOCAL_ID, IDCOMP_EBROKEN
 */
int idcomp_to_op (const struct idcomp *c, int64_t id, int64_t *op);

/* Turn an id received from session 'origin' into the form that this session uses.  'origin' is
 * looked at for local ids only and may be NULL if it was lost.  Returns 0, or -1 with errno set and
 * '*id' untouched:
 *   IDCOMP_EUNKNOWN_OP_ID, IDCOMP_EUNKNOWN_SESSION, IDCOMP_EBROKEN
 *   IDCOMP_ENO_ORIGIN      a local id, and 'origin' is NULL
 */
int idcomp_to_session (const struct idcomp *c, int64_t op, const char *origin, int64_t *id);

/* The UUID of an id of session space.  Returns 0, or -1 with errno set and '*uuid' untouched:
 *   IDCOMP_EUNKNOWN_ID, IDCOMP_EBROKEN
 *   IDCOMP_EHAS_LOCAL_FORM  a final id that was not turned into session space
 */
int idcomp_decompress (const struct idcomp *c, int64_t id, struct idcomp_uuid *uuid);

/* The id of a UUID, in session space.  Returns 0, or -1 with errno set and '*id' untouched:
 *   IDCOMP_ENOT_COMPRESSED, IDCOMP_EBROKEN
 *   IDCOMP_EBAD_UUID   not version 4 of the RFC 4122 variant
 */
int idcomp_recompress (const struct idcomp *c, const struct idcomp_uuid *uuid, int64_t *id);

/* The same for a UUID as text. */
int idcomp_recompress_text (const struct idcomp *c, const char *text, int64_t *id);

/* --- stored form -------------------------------------------------------------------------- */

enum idcomp_state {
    IDCOMP_WITHOUT_LOCAL, /* a summary, to be loaded by other, new sessions */
    IDCOMP_WITH_LOCAL,    /* everything, to resume this session later, once */
};

/* Bytes of the stored form (version 2). */
size_t idcomp_save_size (const struct idcomp *c, enum idcomp_state state);

/* Write the stored form to 'buf' of 'size' bytes.  Returns the number of bytes, or -1 with errno
 * set and 'buf' untouched:
 *   ENOSPC  'size' is below idcomp_save_size ()
 *   IDCOMP_EGHOST_ACTIVE, IDCOMP_EBROKEN
 */
ssize_t idcomp_save (const struct idcomp *c, enum idcomp_state state, void *buf, size_t size);

/* Make a compressor from a stored form.  'session' names the new session that loads a summary; it
 * is NULL for a form with local state.  The compressor belongs to the caller.  Returns NULL with
 * errno set:
 *   IDCOMP_EVERSION_..., IDCOMP_ECORRUPT_...
 *   IDCOMP_EHAS_LOCAL_STATE, IDCOMP_ENO_SESSION_ID  'session' does not fit to the form
 *   IDCOMP_ESESSION_EXISTS, IDCOMP_EBAD_UUID
 */
struct idcomp *idcomp_load (const void *data, size_t size, const char *session, int flags);

/* Bytes of base64 text with its NUL for 'len' bytes of data. */
#define IDCOMP_BASE64_TEXT_SIZE(len) (((len) + 2) / 3 * 4 + 1)

/* Write 'len' bytes of data as base64 (RFC 4648 section 4, padded, one line), as stored forms are
 * exchanged, with its NUL to 'buf' of 'size' bytes.  Returns the length without the NUL, or -1 with
 * errno ENOSPC when 'size' is below IDCOMP_BASE64_TEXT_SIZE (len).
 */
ssize_t idcomp_base64_format (const void *data, size_t len, char *buf, size_t size);

/* Read 'len' characters of base64 into 'bytes', which has room for 'size'; len / 4 * 3 are always
 * enough.  Returns the number of bytes, or -1 with errno set and the content of 'bytes' undefined:
 *   IDCOMP_ECORRUPT_BASE64  any character, length or padding that is not written so; '*errpos' (may be
 *                           NULL) is the index of what cannot stand there, or where the text ends too
 *                           early
 *   ENOSPC                  'size' is too small
 */
ssize_t idcomp_base64_parse (const char *text, size_t len, void *bytes, size_t size, size_t *errpos);

/* --- looking at it ------------------------------------------------------------------------- */

/* True if both have equal sessions, clusters and, for IDCOMP_WITH_LOCAL, the same local session in
 * the same state.  Sessions without ids count only for IDCOMP_WITH_LOCAL.
 */
bool idcomp_equal (const struct idcomp *a, const struct idcomp *b, enum idcomp_state state);

struct idcomp_stats {
    int64_t generated;        /* ids that this session made */
    int64_t finalized;        /* of them, how many are finalized */
    int64_t next_range_first; /* generation count at which the next range starts */
    int64_t allocated_finals; /* final ids in use or reserved, by all sessions */
    int64_t eager;            /* eager ids since the last IDCOMP_STATUS event */
    int64_t local;            /* local ids since the last IDCOMP_STATUS event */
    uint32_t sessions;
    uint32_t clusters;
    size_t local_runs;
    size_t memory; /* bytes in use for sessions, clusters and local runs */
    bool ghost;    /* a ghost session is active */
    bool broken;
};

struct idcomp_stats idcomp_stats (const struct idcomp *c);

enum idcomp_event_type {
    IDCOMP_FIRST_CLUSTER,     /* of the local session */
    IDCOMP_CLUSTER_EXPANSION, /* of the local session: previous_capacity, new_capacity, overflow */
    IDCOMP_NEW_CLUSTER,       /* of the local session */
    IDCOMP_STATUS,            /* a local range was finalized: eager, local since the last time */
    IDCOMP_SAVED,             /* size in bytes, clusters, sessions */
};

struct idcomp_event {
    enum idcomp_event_type type;
    const char *session; /* the local session; borrowed */
    int64_t previous_capacity;
    int64_t new_capacity;
    int64_t overflow; /* ids that did not fit */
    int64_t eager;
    int64_t local;
    size_t size;
    uint32_t clusters;
    uint32_t sessions;
};

typedef void (*idcomp_event_f) (const struct idcomp_event *event, void *arg);

/* (the telemetry of the original)  Have 'cb' called for each event, by the function that caused it;
 * NULL for none.  It must not call functions of this library on the compressor.
 */
void idcomp_set_event_cb (struct idcomp *c, idcomp_event_f cb, void *arg);

#ifdef __cplusplus
}
#endif

#endif /* IDTREE_IDCOMP_H */
