/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* scheme.h - the schemes of ids, as commands use them: bytes that sort, texts, fields
 *
 * Values and rules of the schemes are in <idtree/fluid.h>, flax.h, sno.h and uid.h.  This file is a common interface to
 * them.
 */
#ifndef CMD_SCHEME_H
#define CMD_SCHEME_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <idtree/flax.h>
#include <idtree/fluid.h>
#include <idtree/sno.h>
#include <idtree/uid.h>

/* An id in its stored form, big endian, so that ids of the same scheme and size sort by memcmp (). */
struct ident {
    union {
        uint8_t bytes[12];
        flax_t flax;
        sno_t sno;
    };
    uint8_t size; /* bytes: fluid 8, flax 12, sno 10, uid 8 (local) or 12 (global) */
};

/* Convert a fluid to its stored form, and back. */
struct ident ident_of_fluid (fluid_t id);
fluid_t ident_fluid (const struct ident *id);

#define SCHEME_TEXT_MAX 64 /* bytes that hold the longest text with its NUL */
#define SCHEME_COUNT 4

/* The parameters of a key, besides its time. */
struct scheme_key {
    int64_t epoch_ms;   /* epoch of a fluid's instance: ms since 1970 */
    int drift;          /* drift of a uid: UID_DRIFT_MIN ... UID_DRIFT_MAX */
    enum uid_kind kind; /* kind of a uid */
};

struct scheme {
    const char *name;
    const char *const *forms; /* names, ended by NULL */
    int usual;                /* number of the form that is printed by default */

    /* Parse a text of any form: the 'len' bytes at 's', which a NUL follows.  Returns 0, or -1 with errno EINVAL (not
     * an id of this scheme) or ERANGE (a number that is too large).
     */
    int (*read) (const char *s, size_t len, struct ident *id);

    /* Write form number 'form' into 'buf' with a NUL.  Returns the length. */
    int (*write) (const struct ident *id, int form, char buf[SCHEME_TEXT_MAX]);

    /* When the id was made, in ms since 1970; -1: the id has no date of its own. */
    int64_t (*unix_ms) (const struct ident *id);

    /* Return the id's other fields, a new object; NULL if out of memory.  The member is NULL for fluid, whose fields
     * show.c prints.
     */
    json_t *(*fields) (const struct ident *id, int drift);

    /* Find the keys 'lower' and 'upper' such that lower <= id < upper for the ids that were made in [from_ms, to_ms),
     * since 1970.  Returns 0, or -1 with errno EOVERFLOW (a date outside of the scheme's range) or EINVAL ('from_ms' is
     * above 'to_ms').
     */
    int (*range) (const struct scheme_key *key, int64_t from_ms, int64_t to_ms, struct ident *lower,
                  struct ident *upper);

    const char *from, *until; /* first and last date that ids can have, as text */
};

extern const struct scheme schemes[SCHEME_COUNT]; /* schemes[0] is fluid */

/* Return the scheme of that name; NULL: unknown. */
const struct scheme *scheme_find (const char *name);

/* Return the number of the form with that name; -1: the scheme has no such form. */
int scheme_form (const struct scheme *scheme, const char *name);

/* Return -1, 0 or 1 if 'a' sorts before, with or after 'b'.  Shorter ids sort first. */
int ident_compare (const struct ident *a, const struct ident *b);

/* Find the schemes that a text can belong to, and the id in each of them.
 *
 * 1. The scheme must be able to parse the text.
 * 2. The id's time must be at most a day after 'now_ms' (since 1970).
 * 3. Digits are only a fluid.  Hex digits are a fluid, or an id of the scheme whose ids have that length.
 *
 * scheme_guess () returns the number of candidates.  If it is 0, errno is ERANGE if the text is a number that is too
 * large, else EINVAL.
 */
struct candidate {
    const struct scheme *scheme;
    struct ident id;
};
int scheme_guess (const char *s, size_t len, int64_t now_ms, struct candidate candidate[SCHEME_COUNT]);

#endif /* CMD_SCHEME_H */
