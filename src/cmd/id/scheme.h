/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* scheme.h - the kinds of ids as commands see them: bytes that sort, texts, fields
 *
 * Values and rules are those of <idtree/fluid.h>, flax.h, sno.h and uid.h; here they get one face.
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

/* An id in its stored form, big endian, so that ids of one scheme and size sort by memcmp (). */
struct ident {
    union {
        uint8_t bytes[12];
        flax_t flax;
        sno_t sno;
    };
    uint8_t size; /* bytes: fluid 8, flax 12, sno 10, uid 8 (local) or 12 (global) */
};

/* A fluid as its stored form, and back. */
struct ident ident_of_fluid (fluid_t id);
fluid_t ident_fluid (const struct ident *id);

#define SCHEME_TEXT_MAX 64 /* bytes that hold any text with its NUL */
#define SCHEME_COUNT 4

/* What else the meaning of a key depends on. */
struct scheme_key {
    int64_t epoch_ms;   /* fluid: since 1970 */
    int drift;          /* uid: UID_DRIFT_MIN ... UID_DRIFT_MAX */
    enum uid_kind kind; /* uid */
};

struct scheme {
    const char *name;
    const char *const *forms; /* names, ended by NULL */
    int usual;                /* the form that is written where no other is asked for */

    /* Read a text of any form, 's' of 'len' bytes with a NUL behind.  Returns 0, or -1 with errno EINVAL (no such id)
     * or ERANGE (a number that is too large).
     */
    int (*read) (const char *s, size_t len, struct ident *id);

    /* Write form number 'form' into 'buf' with a NUL.  Returns the length. */
    int (*write) (const struct ident *id, int form, char buf[SCHEME_TEXT_MAX]);

    /* When it was made, milliseconds since 1970; -1: the id does not tell. */
    int64_t (*unix_ms) (const struct ident *id);

    /* What else it holds: a new object, NULL without memory.  NULL: shown elsewhere (fluid). */
    json_t *(*fields) (const struct ident *id, int drift);

    /* The keys of the ids of [from_ms, to_ms), since 1970: lower <= id < upper.  Returns 0, or -1 with errno EOVERFLOW
     * (a date that the scheme does not reach) or EINVAL ('from_ms' is above 'to_ms').
     */
    int (*range) (const struct scheme_key *key, int64_t from_ms, int64_t to_ms, struct ident *lower,
                  struct ident *upper);

    const char *from, *until; /* the dates that it reaches */
};

/* The scheme of that name, NULL: there is none. / All, fluid first. */
const struct scheme *scheme_find (const char *name);
const struct scheme *scheme_at (int i);

/* The number of a form of that name; -1: the scheme has none. */
int scheme_form (const struct scheme *scheme, const char *name);

/* -1, 0, 1 as 'a' sorts before, with, behind 'b'; shorter ones first. */
int ident_compare (const struct ident *a, const struct ident *b);

/* Which schemes a text can be of.  1. A scheme can read it.  2. The id's time is at most a day after 'now_ms' (since
 * 1970).
 * 3. Digits are a fluid; hex is one, too, or of the scheme whose ids have that length.  Returns the number of
 *    candidates,
 * with the id that each would be; 0 with errno ERANGE where it is a number that is too large, else EINVAL.
 */
struct candidate {
    const struct scheme *scheme;
    struct ident id;
};
int scheme_guess (const char *s, size_t len, int64_t now_ms, struct candidate candidate[SCHEME_COUNT]);

#endif /* CMD_SCHEME_H */
