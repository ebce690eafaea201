/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* error.c - the errors of this library: name, nearest errno value, and text of each */

#include <errno.h>
#include <string.h>

#include <idtree/idcomp.h>

struct error {
    const char *name;
    int posix;
    const char *text;
};

#define E(name, posix, text) [IDCOMP_E##name - IDCOMP_EBASE] = { #name, posix, text }

static const struct error errors[] = {
    E (UNKNOWN_ID, ENOENT, "unknown id"),
    E (UNKNOWN_OP_ID, ENOENT, "unknown op space id"),
    E (UNKNOWN_SESSION, ENOENT, "no ids of the session were finalized"),
    E (INVALID_LOCAL_ID, EINVAL, "this session did not hand out the local id"),
    E (NOT_COMPRESSED, ENOENT, "the UUID has no id in this document"),
    E (NO_ORIGIN, EINVAL, "a local id has no meaning without its session"),
    E (HAS_LOCAL_FORM, EINVAL, "the final id is in op space: convert it to session space first"),
    E (NOT_GENERATED_YET, ENOENT, "the UUID is reserved but was not made"),
    E (RANGE_ORDER, EINVAL, "range finalized out of order"),
    E (RANGE_COUNT, EINVAL, "range of less than one id"),
    E (RANGE_NOT_GENERATED, EINVAL, "range of ids that this session has not made"),
    E (RANGE_FORM, EINVAL, "the text is not the JSON form of a creation range"),
    E (CLUSTER_SIZE_LOW, EINVAL, "requested cluster size below 1"),
    E (CLUSTER_SIZE_HIGH, EINVAL, "requested cluster size above 1048576, the limit"),
    E (LIMIT, EOVERFLOW, "an id would be larger than 2^53 - 1"),
    E (GHOST_ACTIVE, EBUSY, "a ghost session is active"),
    E (GHOST_NESTED, EBUSY, "a ghost session is active already"),
    E (GHOST_KNOWN, EEXIST, "the ghost session is the session of a client"),
    E (COLLISION, EEXIST, "two sessions made the same UUIDs"),
    E (BROKEN, ENOTRECOVERABLE, "the compressor is unusable: two sessions made the same UUIDs before"),
    E (BAD_UUID, EINVAL, "not a version 4 UUID"),
    E (SESSION_ALIAS, EEXIST, "the session is registered under another name"),
    E (SESSION_EXISTS, EEXIST, "the session exists in the stored form"),
    E (VERSION_OLD, EPROTONOSUPPORT, "stored form 1 is not supported"),
    E (VERSION_UNKNOWN, EPROTONOSUPPORT, "unknown version of stored form"),
    E (HAS_LOCAL_STATE, EINVAL, "the stored form is not a summary: it has a local session"),
    E (NO_SESSION_ID, EINVAL, "the stored form is a summary: loading it needs a new session id"),
    E (CORRUPT_NO_SESSION, EBADMSG, "the stored form has no session"),
    E (CORRUPT_SESSION_INDEX, EBADMSG, "the stored form has a cluster without a valid session"),
    E (CORRUPT_LOCAL_RANGES, EBADMSG, "the stored form has local runs out of order"),
    E (CORRUPT_LENGTH, EBADMSG, "the size of the stored form is not a multiple of 8 bytes"),
    E (CORRUPT_TRUNCATED, EBADMSG, "the stored form is truncated"),
    E (CORRUPT_TRAILING, EBADMSG, "the stored form has bytes after its end"),
    E (CORRUPT_VALUE, EBADMSG, "the stored form has a value that is out of range or contradicts another one"),
    E (CORRUPT_BASE64, EINVAL, "the stored form is not base64"),
};

_Static_assert(sizeof (errors) / sizeof (errors[0]) == IDCOMP_EEND - IDCOMP_EBASE, "each error must have an entry");

static const struct error *lookup (int errnum)
{
    return errnum > IDCOMP_EBASE && errnum < IDCOMP_EEND ? &errors[errnum - IDCOMP_EBASE] : NULL;
}

const char *idcomp_strerror (int errnum)
{
    const struct error *e = lookup (errnum);

    return e ? e->text : strerror (errnum);
}

const char *idcomp_error_name (int errnum)
{
    const struct error *e = lookup (errnum);

    return e ? e->name : NULL;
}

int idcomp_errno (int errnum)
{
    const struct error *e = lookup (errnum);

    return e ? e->posix : errnum;
}
