/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* scheme.h - the schemes of ids, as commands use them: bytes that sort, texts, fields
 *
 * Values and rules are in <idtree/fluid.h>, flax.h, sno.h and uid.h; this is a common interface to them.
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

#define SCHEME_TEXT_MAX 64 /* bytes that hold any text with its NUL */
#define SCHEME_COUNT 4

/* The parameters of a key besides the time. */
struct scheme_key {
    int64_t epoch_ms;   /* fluid: since 1970 */
    int drift;          /* uid: UID_DRIFT_MIN ... UID_DRIFT_MAX */
    enum uid_kind kind; /* uid */
};

struct scheme {
    const char *name;
    const char *const *forms; /* names, ended by NULL */
    int usual;                /* the default form for output */

    /* Parse a text of any form, 's' of 'len' bytes followed by a NUL.  Returns 0, or -1 with errno EINVAL (not an id of
     * this scheme) or ERANGE (a number that is too large).
     */
    int (*read) (const char *s, size_t len, struct ident *id);

    /* Write form number 'form' into 'buf' with a NUL.  Returns the length. */
    int (*write) (const struct ident *id, int form, char buf[SCHEME_TEXT_MAX]);

    /* When the id was made, in milliseconds since 1970; -1: the id does not contain a date. */
    int64_t (*unix_ms) (const struct ident *id);

    /* Its other fields: a new object, NULL if out of memory.  NULL: shown elsewhere (fluid). */
    json_t *(*fields) (const struct ident *id, int drift);

    /* The keys of the ids of [from_ms, to_ms), since 1970: lower <= id < upper.  Returns 0, or -1 with errno EOVERFLOW
     * (a date outside of the scheme's range) or EINVAL ('from_ms' is above 'to_ms').
     */
    int (*range) (const struct scheme_key *key, int64_t from_ms, int64_t to_ms, struct ident *lower,
                  struct ident *upper);

    const char *from, *until; /* the range of its dates */
};

extern const struct scheme schemes[SCHEME_COUNT]; /* fluid first */

/* The scheme of that name; NULL: unknown. */
const struct scheme *scheme_find (const char *name);

/* The number of the form with that name; -1: the scheme has no such form. */
int scheme_form (const struct scheme *scheme, const char *name);

/* Returns -1, 0, 1 if 'a' sorts before, with, after 'b'; shorter ones are first. */
int ident_compare (const struct ident *a, const struct ident *b);

/* Find the schemes that a text can belong to, and for each the id.
 *
 * 1. The scheme can parse it.
 * 2. The id's time is at most a day after 'now_ms' (since 1970).
 * 3. Digits are a fluid; hex is one, too, or of the scheme whose ids have that length.
 *
 * scheme_guess () returns the number of candidates; 0 with errno ERANGE if the text is a number that is too large, else
 * EINVAL.
 */
struct candidate {
    const struct scheme *scheme;
    struct ident id;
};
int scheme_guess (const char *s, size_t len, int64_t now_ms, struct candidate candidate[SCHEME_COUNT]);

#endif /* CMD_SCHEME_H */
