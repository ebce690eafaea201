/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* idcomp.h - distributed id compressor: small integers for the UUIDs of one document
 *
 * A session makes version 4 UUIDs without any communication and works with 64-bit integers instead:
 *   local id   -1, -2, ...  the first, second, ... id of its session; valid only in that session
 *   final id   0, 1, ...    has the same meaning in all sessions of the document
 * The ids of a session are numbered from 1; this number is the generation count of the id. A local id is its generation
 * count with a minus sign. The id with generation count g of session s is the UUID s + (g - 1), where the addition
 * skips the six bits of a UUID that never change.
 *
 * Sessions announce the ids that they made as creation ranges. An orderer puts the ranges of all sessions into one
 * total order, and each session finalizes all ranges in that order, including its own. All sessions that finalized the
 * same ranges agree on final ids. Finalizing a range also reserves some final ids for the session that made the range.
 * That session can hand out its reserved ids immediately (eager ids).
 *
 * Behaviour, wire form and stored form are the same as in Fluid Framework's id compressor 3.1. A name in parentheses is
 * the corresponding function of the original.
 *
 * Life cycle
 * 1. Two objects must never be the same session at the same time: they would make the same UUIDs.
 * 2. Ranges of one session must be ordered in the order in which they were taken.
 * 3. A function that fails changes nothing, with one exception: if idcomp_finalize () or a ghost session finds that two
 *    sessions made the same UUIDs (IDCOMP_ECOLLISION), the object is broken: it refuses all further work with
 *    IDCOMP_EBROKEN, and can only be destroyed. (With IDCOMP_ORIGINAL there are two more exceptions. If the first range
 *    of a session is out of order, the range is refused, but the session is registered. If idcomp_take () fails because
 *    of the cluster size, the next range still begins after the ids of the refused one.)
 * 4. After fork () the parent can continue. The child would make the same UUIDs, so all functions that make ids fail in
 *    the child with EPERM: the child must make its own session.
 * 5. Functions with a 'const struct idcomp *' may be called in many threads at the same time, as long as no thread
 *    changes the object.
 *
 * These functions need only libc, have no state outside of their objects, and do not depend on locale, environment,
 * files or clock (only on the process id). They never block. Functions that allocate memory may fail with ENOMEM.
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
#pragma GCC visibility push(default)

#define IDCOMP_CLUSTER_SIZE_DEFAULT 512
#define IDCOMP_CLUSTER_SIZE_MAX (1 << 20)
#define IDCOMP_UUID_TEXT_LEN 36       /* characters of a UUID as text, without a NUL */
#define IDCOMP_UUID_TEXT_MAX 37       /* bytes of the text with its NUL */
#define IDCOMP_RANGE_RUNS_MAX 1000000 /* local runs that a received range may have */

/* The largest final id and generation count: up to this value JSON and the stored form are exact. */
#define IDCOMP_ID_MAX ((INT64_C (1) << 53) - 1)

struct idcomp;

/* Consecutive ids or generation counts: 'first' and the count - 1 values after it. A run of local ids counts down: -3,
 * -4, ... All other runs count up.
 */
struct idcomp_run {
    int64_t first;
    int64_t count; /* >= 1 */
};

/* --- errors ------------------------------------------------------------------------------- */

/* errno values above those of the system; idcomp_errno () returns the nearest value of the system. */
enum {
    IDCOMP_EBASE = 0x1dc0000,
    IDCOMP_EUNKNOWN_ID,            /* no such id */
    IDCOMP_EUNKNOWN_OP_ID,         /* no such id in op space */
    IDCOMP_EUNKNOWN_SESSION,       /* no ids of this session were finalized */
    IDCOMP_EINVALID_LOCAL_ID,      /* this session did not hand out this local id */
    IDCOMP_ENOT_COMPRESSED,        /* the UUID has no id here */
    IDCOMP_ENO_ORIGIN,             /* a local id without its session is ambiguous */
    IDCOMP_EHAS_LOCAL_FORM,        /* this session knows the given final id as a local id */
    IDCOMP_ENOT_GENERATED_YET,     /* (IDCOMP_ORIGINAL only) the UUID is reserved but was not made */
    IDCOMP_ERANGE_ORDER,           /* a gap, repeat or overlap of a session's ranges */
    IDCOMP_ERANGE_COUNT,           /* a range of less than one id */
    IDCOMP_ERANGE_NOT_GENERATED,   /* a range has ids of this session that it has not made */
    IDCOMP_ERANGE_FORM,            /* not the JSON text of a range */
    IDCOMP_ECLUSTER_SIZE_LOW,      /* below 1 */
    IDCOMP_ECLUSTER_SIZE_HIGH,     /* above IDCOMP_CLUSTER_SIZE_MAX */
    IDCOMP_ELIMIT,                 /* an id would be above IDCOMP_ID_MAX */
    IDCOMP_EGHOST_ACTIVE,          /* not permitted while a ghost session is active */
    IDCOMP_EGHOST_NESTED,          /* a ghost session is active already */
    IDCOMP_EGHOST_KNOWN,           /* the ghost session is the session of a client */
    IDCOMP_ECOLLISION,             /* two sessions made the same UUIDs */
    IDCOMP_EBROKEN,                /* the object found a collision before */
    IDCOMP_EBAD_UUID,              /* not a UUID of version 4, or too close to the largest UUID */
    IDCOMP_ESESSION_ALIAS,         /* (IDCOMP_ORIGINAL only) a session has two names */
    IDCOMP_ESESSION_EXISTS,        /* a stored form has a session twice, or a session loads its own summary */
    IDCOMP_EVERSION_OLD,           /* stored form 1 */
    IDCOMP_EVERSION_UNKNOWN,       /* stored form neither 1 nor 2 */
    IDCOMP_EHAS_LOCAL_STATE,       /* a stored session cannot be loaded as a new one */
    IDCOMP_ENO_SESSION_ID,         /* loading a summary needs a new session */
    IDCOMP_ECORRUPT_NO_SESSION,    /* the stored form has no session */
    IDCOMP_ECORRUPT_SESSION_INDEX, /* a cluster without a valid session */
    IDCOMP_ECORRUPT_LOCAL_RANGES,  /* local runs out of order */
    IDCOMP_ECORRUPT_LENGTH,        /* not a multiple of 8 bytes */
    IDCOMP_ECORRUPT_TRUNCATED,     /* the stored form is truncated */
    IDCOMP_ECORRUPT_TRAILING,      /* the stored form has bytes after its end */
    IDCOMP_ECORRUPT_VALUE,         /* a value is out of range or contradicts another value */
    IDCOMP_ECORRUPT_BASE64,        /* not base64 */
    IDCOMP_EEND
};

/* The meaning of an errno value, as a sentence without a full stop. Borrowed, constant. */
const char *idcomp_strerror (int errnum);

/* The symbol of an errno value of this library without IDCOMP_E, for example "RANGE_ORDER"; NULL for values of the
 * system. Borrowed, constant.
 */
const char *idcomp_error_name (int errnum);

/* The system's errno value nearest to a value of this library. Other values are returned unchanged. */
int idcomp_errno (int errnum);

/* --- UUIDs -------------------------------------------------------------------------------- */

struct idcomp_uuid {
    unsigned char bytes[16]; /* in the order of the text form */
};

/* Read a UUID from the 'len' characters at 'text' (a NUL is not needed), in upper or lower case. Returns 0, or -1 with
 * errno set, '*uuid' untouched, and the index of the first wrong character in '*errpos' (may be NULL):
 *   EMSGSIZE  'len' is not 36; '*errpos' is the smaller of 'len' and 36
 *   EINVAL    a character is not permitted at its position, including the version (4) and the variant (8, 9,
 *             a, b)
 */
int idcomp_uuid_parse (const char *text, size_t len, struct idcomp_uuid *uuid, size_t *errpos);

/* Write the text form in lower case with its NUL to 'buf' of 'size' bytes. Returns IDCOMP_UUID_TEXT_LEN, or -1 with
 * errno ENOSPC if 'size' is below IDCOMP_UUID_TEXT_MAX.
 */
int idcomp_uuid_format (const struct idcomp_uuid *uuid, char *buf, size_t size);

/* Convert 16 random bytes to a UUID of version 4, for example for a new session. */
struct idcomp_uuid idcomp_uuid_random (const unsigned char random[16]);

/* (isStableId) Whether 'text' has the form in which compressors write ids: a UUID of version 4 whose variant digit is
 * in lower case; its other letters may be in any case.
 */
bool idcomp_is_stable_id (const char *text);

/* --- life --------------------------------------------------------------------------------- */

/* Flags of a compressor, joined with |. */
enum {
    IDCOMP_STRICT = 0,
    IDCOMP_ORIGINAL = 1, /* copies accidents of the original, too; for comparisons (doc/guide/compressor.md) */
    IDCOMP_ORDERER = 2,  /* for the orderer: a range that collides is refused and changes nothing */
};

/* Make a compressor for a new session named by the UUID 'session'. The caller owns it. Returns NULL with errno set:
 *   IDCOMP_EBAD_UUID  'session' is not a UUID, or is closer than 2^53 to the largest UUID
 */
struct idcomp *idcomp_create (const char *session, int flags);

/* Free a compressor. NULL is allowed; keeps errno. */
void idcomp_destroy (struct idcomp *c);

/* The local session as text.  Borrowed, valid until idcomp_destroy (). */
const char *idcomp_session (const struct idcomp *c);

/* Request 'size' reserved final ids with each range taken from now on (IDCOMP_CLUSTER_SIZE_DEFAULT at first, also after
 * loading). Returns 0, or -1 with errno set:
 *   IDCOMP_ECLUSTER_SIZE_LOW, IDCOMP_ECLUSTER_SIZE_HIGH
 */
int idcomp_set_cluster_size (struct idcomp *c, int64_t size);

/* --- making ids --------------------------------------------------------------------------- */

/* Make an id, in session space.  Returns 0, or -1 with errno set and '*id' untouched:
 *   IDCOMP_ELIMIT     this session made IDCOMP_ID_MAX ids
 *   IDCOMP_ECOLLISION a ghost session made a UUID that another session made
 *   IDCOMP_EBROKEN
 *   EPERM             this is a child process, and the session is its parent's
 */
int idcomp_generate (struct idcomp *c, int64_t *id);

/* Make 'count' (>= 1) ids, the same ids that 'count' calls of idcomp_generate () would make. Returns the number of runs
 * that they form, 1 or 2; or -1 with errno as for idcomp_generate (), and then no id was made.
 */
int idcomp_generate_runs (struct idcomp *c, int64_t count, struct idcomp_run runs[2]);

/* (generateDocumentUniqueId) Make an id that has the same meaning in the whole document from now on. If '*id' is then
 * final (>= 0), use '*id'; otherwise use the UUID that is stored in '*uuid'. Returns 0, or -1 with errno as for
 * idcomp_generate ().
 */
int idcomp_generate_unique (struct idcomp *c, int64_t *id, struct idcomp_uuid *uuid);

/* --- creation ranges ---------------------------------------------------------------------- */

struct idcomp_range {
    char session[IDCOMP_UUID_TEXT_MAX];
    bool has_ids;            /* false: an empty range; the members below are not valid */
    int64_t first;           /* generation count of its first id */
    int64_t count;           /* >= 1 */
    int64_t cluster_size;    /* reserved ids requested, 1 ... IDCOMP_CLUSTER_SIZE_MAX */
    struct idcomp_run *runs; /* generation counts of local ids; not used for finalizing */
    size_t nruns;
};

/* Free the memory that take and parse functions allocated in a range, and make the range empty. */
void idcomp_range_fini (struct idcomp_range *range);

/* Take the ids made since the last take as a range, which all sessions must finalize. The caller owns the range
 * (idcomp_range_fini ()); it is empty if no ids were made. Returns 0, or -1 with errno set and '*range' untouched:
 *   IDCOMP_EGHOST_ACTIVE, IDCOMP_EBROKEN
 */
int idcomp_take (struct idcomp *c, struct idcomp_range *range);

/* If ranges were lost, take all ids that are not finalized as one range. The caller must be certain that none of the
 * ranges taken before will ever be ordered. Returns as idcomp_take ().
 */
int idcomp_take_unfinalized (struct idcomp *c, struct idcomp_range *range);

/* (resetUnfinalizedCreationRange) Let the next idcomp_take () begin with the first id that is not finalized. The caller
 * must be certain that none of the ranges taken before will ever be ordered. Returns 0, or -1 with errno as idcomp_take
 * ().
 */
int idcomp_reset_ranges (struct idcomp *c);

/* Finalize the next range of the total order. Returns 0, or -1 with errno set:
 *   IDCOMP_ERANGE_ORDER          the range does not begin at idcomp_expected ()
 *   IDCOMP_ERANGE_COUNT, IDCOMP_ECLUSTER_SIZE_LOW, IDCOMP_ECLUSTER_SIZE_HIGH, IDCOMP_EBAD_UUID
 *   IDCOMP_ERANGE_NOT_GENERATED  the range has ids of the local session that this object has not made
 *   IDCOMP_ELIMIT                a final id or generation count would be above IDCOMP_ID_MAX
 *   IDCOMP_EGHOST_ACTIVE
 *   IDCOMP_ECOLLISION            see life cycle 3; from then on IDCOMP_EBROKEN
 */
int idcomp_finalize (struct idcomp *c, const struct idcomp_range *range);

/* The generation count at which the next range of 'session' must begin; 1 for unknown sessions. */
int64_t idcomp_expected (const struct idcomp *c, const char *session);

/* Bytes of the JSON text of a range with its NUL. */
size_t idcomp_range_format_size (const struct idcomp_range *range);

/* Write the JSON text of a range, in the form that compressors exchange, with its NUL to 'buf' of 'size' bytes. Returns
 * the length without the NUL, or -1 with errno ENOSPC and the content of 'buf' undefined if 'size' is below
 * idcomp_range_format_size ().
 */
ssize_t idcomp_range_format (const struct idcomp_range *range, char *buf, size_t size);

/* Read the JSON text of a range of 'len' bytes; members may be in any order. The caller owns the range
 * (idcomp_range_fini ()). Only idcomp_finalize () checks the numbers. Returns 0, or -1 with errno set and '*range'
 * untouched:
 *   IDCOMP_ERANGE_FORM  the text is not a range, or it has unknown members or too many runs; '*errpos' (may be
 *                       NULL) is the index of the wrong character, or the end of a truncated text
 */
int idcomp_range_parse (const char *text, size_t len, struct idcomp_range *range, size_t *errpos);

/* --- ghost sessions ----------------------------------------------------------------------- */

/* From now on until idcomp_ghost_end (), make ids for 'session'; these are final immediately. All sessions of the
 * document must begin the ghost session at the same place of the total order, with the same 'session', and make the
 * same number of ids in it. Returns 0, or -1 with errno set:
 *   IDCOMP_EGHOST_NESTED, IDCOMP_EBAD_UUID, IDCOMP_EBROKEN
 *   IDCOMP_EGHOST_KNOWN   'session' is the local session, or a session that has reserved final ids
 */
int idcomp_ghost_begin (struct idcomp *c, const char *session);

/* End the ghost session, if one is active. */
void idcomp_ghost_end (struct idcomp *c);

/* --- converting ids ------------------------------------------------------------------------ */

/* Convert an id of session space to op space, which is the form to send to others, together with the local session:
 * final if possible. Final ids are not checked. Returns 0, or -1 with errno set and '*op' untouched:
 *   IDCOMP_EINVALID_LOCAL_ID, IDCOMP_EBROKEN
 */
int idcomp_to_op (const struct idcomp *c, int64_t id, int64_t *op);

/* Convert an id received from session 'origin' to the form that this session uses. 'origin' is needed only for local
 * ids; it may be NULL if it is not known. Returns 0, or -1 with errno set and '*id' untouched:
 *   IDCOMP_EUNKNOWN_OP_ID, IDCOMP_EUNKNOWN_SESSION, IDCOMP_EBROKEN
 *   IDCOMP_ENO_ORIGIN      a local id, and 'origin' is NULL
 */
int idcomp_to_session (const struct idcomp *c, int64_t op, const char *origin, int64_t *id);

/* The UUID of an id of session space. Returns 0, or -1 with errno set and '*uuid' untouched:
 *   IDCOMP_EUNKNOWN_ID, IDCOMP_EBROKEN
 *   IDCOMP_EHAS_LOCAL_FORM  the id is a final id of op space: convert it to session space first
 */
int idcomp_decompress (const struct idcomp *c, int64_t id, struct idcomp_uuid *uuid);

/* The id of a UUID, in session space.  Returns 0, or -1 with errno set and '*id' untouched:
 *   IDCOMP_ENOT_COMPRESSED, IDCOMP_EBROKEN
 *   IDCOMP_EBAD_UUID   not version 4 of the RFC 4122 variant
 */
int idcomp_recompress (const struct idcomp *c, const struct idcomp_uuid *uuid, int64_t *id);

/* As idcomp_recompress (), for a UUID as text. */
int idcomp_recompress_text (const struct idcomp *c, const char *text, int64_t *id);

/* --- stored form -------------------------------------------------------------------------- */

enum idcomp_state {
    IDCOMP_WITHOUT_LOCAL, /* a summary, for loading by other, new sessions */
    IDCOMP_WITH_LOCAL,    /* all state, from which this session may be resumed later, once */
};

/* Bytes of the stored form (version 2). */
size_t idcomp_save_size (const struct idcomp *c, enum idcomp_state state);

/* Write the stored form to 'buf' of 'size' bytes. Returns the number of bytes, or -1 with errno set and 'buf'
 * untouched:
 *   ENOSPC  'size' is below idcomp_save_size ()
 *   IDCOMP_EGHOST_ACTIVE, IDCOMP_EBROKEN
 */
ssize_t idcomp_save (const struct idcomp *c, enum idcomp_state state, void *buf, size_t size);

/* Make a compressor from a stored form. If the form is a summary, 'session' is the new session that loads it. If the
 * form has local state, 'session' is NULL. The caller owns the compressor. Returns NULL with errno set:
 *   IDCOMP_EVERSION_..., IDCOMP_ECORRUPT_...
 *   IDCOMP_EHAS_LOCAL_STATE, IDCOMP_ENO_SESSION_ID  'session' must be NULL for a form with
 *                                                  local state, and must not be NULL for a summary
 *   IDCOMP_ESESSION_EXISTS, IDCOMP_EBAD_UUID
 */
struct idcomp *idcomp_load (const void *data, size_t size, const char *session, int flags);

/* Bytes of the base64 text of 'len' bytes of data, with its NUL. */
#define IDCOMP_BASE64_TEXT_SIZE(len) (((len) + 2) / 3 * 4 + 1)

/* Write 'len' bytes of data as base64 text (RFC 4648 section 4, padded, one line), with its NUL, to 'buf' of 'size'
 * bytes. Stored forms are exchanged as such texts. Returns the length without the NUL, or -1 with errno ENOSPC if
 * 'size' is below IDCOMP_BASE64_TEXT_SIZE (len).
 */
ssize_t idcomp_base64_format (const void *data, size_t len, char *buf, size_t size);

/* Read 'len' characters of base64 into 'bytes' of 'size' bytes; len / 4 * 3 bytes are always enough. Returns the number
 * of bytes, or -1 with errno set and the content of 'bytes' undefined:
 *   IDCOMP_ECORRUPT_BASE64  a character, length or padding is wrong; '*errpos' (may be NULL) is the index
 *                           of the wrong character, or the end of a truncated text
 *   ENOSPC                  'size' is too small
 */
ssize_t idcomp_base64_parse (const char *text, size_t len, void *bytes, size_t size, size_t *errpos);

/* --- inspection ---------------------------------------------------------------------------- */

/* Whether 'a' and 'b' have equal sessions and clusters. With IDCOMP_WITH_LOCAL they must also have the same local
 * session, in the same state. Sessions without ids are compared only with IDCOMP_WITH_LOCAL.
 */
bool idcomp_equal (const struct idcomp *a, const struct idcomp *b, enum idcomp_state state);

struct idcomp_stats {
    int64_t generated;        /* ids that this session made */
    int64_t finalized;        /* how many of the generated ids are finalized */
    int64_t next_range_first; /* generation count at which the next range begins */
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
    IDCOMP_STATUS,            /* a local range was finalized: eager, local since the last event */
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

/* (the telemetry of the original) Set a callback; NULL: no callback. The function that causes an event calls it. The
 * callback must not call functions of this library with the compressor.
 */
void idcomp_set_event_cb (struct idcomp *c, idcomp_event_f cb, void *arg);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* IDTREE_IDCOMP_H */
