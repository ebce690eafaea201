/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sign_test.c - J as Flux's clients make it is accepted; an invalid part is refused by its name, and outputs are
 * unchanged
 */
#include <errno.h>
#include <string.h>

#include "libjob/sign.h"
#include "libutil/base64.h"
#include "test/tap.h"
#include "test/failing_alloc.h"

/* J that flux-core without flux-security makes from "foo" and its NUL, for user 1000. */
#define FLUX_HEADER "dmVyc2lvbgBpMQB1c2VyaWQAaTEwMDAAbWVjaGFuaXNtAHNub25lAA=="
#define FLUX_J FLUX_HEADER ".Zm9vAA==.none"

static idt_error_t error;

/* The results of unwrapping. */
struct got {
    int rc, errnum;
    char *payload;
    size_t size;
    uint32_t userid;
};

static struct got unwrap (const char *j, size_t size, size_t max)
{
    struct got g = { .size = 77, .userid = 77 };

    error.text[0] = '\0';
    errno = 0;
    g.rc = job_sign_unwrap (j, size, max, &g.payload, &g.size, &g.userid, &error);
    g.errnum = errno;
    return g;
}

static bool gave_nothing (const struct got *g)
{
    return g->rc < 0 && !g->payload && g->size == 77 && g->userid == 77;
}

static void takes (const char *j, const char *payload, size_t size, uint32_t userid)
{
    struct got g = unwrap (j, strlen (j), 100);

    ok (g.rc == 0 && g.size == size && memcmp (g.payload, payload, size) == 0 && g.payload[size] == '\0'
            && g.userid == userid,
        "the J %.80s has a payload of %zu bytes by user %u", j, size, userid);
    free (g.payload);
}

static void refuses (const char *j, int errnum, const char *sentence)
{
    struct got g = unwrap (j, strlen (j), 100);

    if (!ok (gave_nothing (&g) && g.errnum == errnum && strcmp (error.text, sentence) == 0,
             "a malformed J is refused: %s", sentence))
        diag ("rc %d, errno %d, %s", g.rc, g.errnum, error.text);
}

/* --- headers: "|" stands for NUL -------------------------------------------------------------------------- */

static const struct {
    const char *header;
    int errnum; /* 0: valid */
    const char *sentence;
} headers[] = {
    { "version|i1|userid|i1000|mechanism|snone|", 0, NULL },
    { "mechanism|snone|userid|i1000|version|i1|", 0, NULL },
    { "version|i1|userid|i01000|mechanism|snone|", 0, NULL },
    { "", EINVAL, "J: header: version: must be the integer 1 (\"i1\"), and is missing" },
    { "version|i2|userid|i1|mechanism|snone|", EINVAL,
      "J: header: version: must be the integer 1 (\"i1\"), and is \"i2\"" },
    { "version|s1|userid|i1|mechanism|snone|", EINVAL,
      "J: header: version: must be the integer 1 (\"i1\"), and is \"s1\"" },
    { "userid|i1|mechanism|snone|", EINVAL, "J: header: version: must be the integer 1 (\"i1\"), and is missing" },
    { "version|i1|mechanism|snone|", EINVAL,
      "J: header: userid: must be an integer (\"i\" and a number from 0 to 4294967294), and is missing" },
    { "version|i1|userid|i-1|mechanism|snone|", EINVAL,
      "J: header: userid: must be an integer (\"i\" and a number from 0 to 4294967294), and is \"i-1\"" },
    { "version|i1|userid|i 1|mechanism|snone|", EINVAL,
      "J: header: userid: must be an integer (\"i\" and a number from 0 to 4294967294), and is \"i 1\"" },
    { "version|i1|userid|i|mechanism|snone|", EINVAL,
      "J: header: userid: must be an integer (\"i\" and a number from 0 to 4294967294), and is \"i\"" },
    { "version|i1|userid|s1|mechanism|snone|", EINVAL,
      "J: header: userid: must be an integer (\"i\" and a number from 0 to 4294967294), and is \"s1\"" },
    { "version|i1|userid|i4294967295|mechanism|snone|", EINVAL,
      "J: header: userid: must be an integer (\"i\" and a number from 0 to 4294967294), and is \"i4294967295\"" },
    { "version|i1|userid|i4294968296|mechanism|snone|", EINVAL,
      "J: header: userid: must be an integer (\"i\" and a number from 0 to 4294967294), and is \"i4294968296\"" },
    { "version|i1|userid|i99999999999999999999999|mechanism|snone|", EINVAL,
      "J: header: userid: must be an integer (\"i\" and a number from 0 to 4294967294), and is "
      "\"i99999999999999999999999\"" },
    { "version|i1|userid|i1000|", EINVAL, "J: header: mechanism: must be a string (\"snone\"), and is missing" },
    { "version|i1|userid|i1000|mechanism|inone|", EINVAL,
      "J: header: mechanism: must be a string (\"snone\"), and is \"inone\"" },
    { "version|i1|userid|i1000|mechanism|smunge|", ENOTSUP, "J: header: mechanism: must be none, and is munge" },
    { "version|i1|userid|i1000|mechanism|scurve|curve.ctime|t5|", ENOTSUP,
      "J: header: mechanism: must be none, and is curve" },
    { "version|i1|userid|i1000|mechanism|s\x1b[2J|", ENOTSUP, "J: header: mechanism: must be none, and is ?[2J" },
    { "version|i1|userid|i1000|mechanism|snone|foo|i0|", EINVAL, "J: header: foo: is not a key of the mechanism none" },
    { "version|i1|userid|i1000|userid|i0|mechanism|snone|", EINVAL, "J: header: userid: must appear only once" },
    { "version|i1|version|i1|userid|i0|mechanism|snone|", EINVAL, "J: header: version: must appear only once" },
    { "version|i1|userid|i1000|mechanism|snone", EINVAL,
      "J: header: must be pairs of a key and a typed value, each ended by a NUL" },
    { "version|i1|userid|i1000|mechanism|", EINVAL,
      "J: header: must be pairs of a key and a typed value, each ended by a NUL" },
    { "|version|i1|userid|i1000|mechanism|snone|", EINVAL,
      "J: header: must be pairs of a key and a typed value, each ended by a NUL" },
    { "version||userid|i1000|mechanism|snone|", EINVAL,
      "J: header: must be pairs of a key and a typed value, each ended by a NUL" },
};

static void test_headers (void)
{
    for (size_t i = 0; i < sizeof (headers) / sizeof (headers[0]); i++) {
        char plain[200], j[400];

        strcpy (plain, headers[i].header);
        size_t len = strlen (plain);
        for (size_t c = 0; c < len; c++)
            plain[c] = plain[c] == '|' ? '\0' : plain[c];
        strcpy (j + base64_encode (plain, len, j), ".Zm9v.none");
        if (headers[i].errnum == 0)
            takes (j, "foo", 3, 1000);
        else
            refuses (j, headers[i].errnum, headers[i].sentence);
    }
}

/* --- the rest --------------------------------------------------------------------------------------------- */

static void test_parts (void)
{
    static const char *const parts = "J: must be HEADER.PAYLOAD.SIGNATURE, three parts separated by two periods";

    takes (FLUX_J, "foo", 4, 1000);
    takes (FLUX_HEADER "..none", "", 0, 1000);
    refuses ("", EINVAL, parts);
    refuses ("none", EINVAL, parts);
    refuses (FLUX_HEADER ".none", EINVAL, parts);
    refuses (FLUX_J ".", EINVAL, parts);
    refuses (FLUX_HEADER ".Zm9v.", EINVAL, "J: signature: must be none");
    refuses (FLUX_HEADER ".Zm9v.None", EINVAL, "J: signature: must be none");
    refuses (FLUX_HEADER ".Zm9v.none ", EINVAL, "J: signature: must be none");
    refuses ("%" FLUX_J, EINVAL, "J: header: must be base64");
    refuses (FLUX_HEADER ".%m9v.none", EINVAL, "J: payload: must be base64");
    refuses (FLUX_HEADER ".Zm9.none", EINVAL, "J: payload: must be base64");
    refuses (FLUX_HEADER ".=.none", EINVAL, "J: payload: must be base64");
    refuses (FLUX_HEADER ".====.none", EINVAL, "J: payload: must be base64");
    struct got g = unwrap (FLUX_J "\0", sizeof (FLUX_J), 100);
    ok (gave_nothing (&g) && g.errnum == EINVAL, "a NUL after the text of J counts as part of the signature");
}

static void test_long_header (void)
{
    char *j = malloc (10000);

    memset (j, 'A', 9000);
    strcpy (j + 5000, ".Zm9v.none");
    refuses (j, EINVAL, "J: header: must have at most 3072 bytes");
    free (j);
}

static void test_limit (void)
{
    char text[64];
    bool good = true;

    for (size_t size = 0; size < 40; size++) {
        memset (text, 'x', sizeof (text));
        char *j = job_sign_wrap (text, size, 5);
        struct got g = unwrap (j, strlen (j), size);
        good &= g.rc == 0 && g.size == size;
        free (g.payload);
        if (size > 0) {
            g = unwrap (j, strlen (j), size - 1);
            good &= gave_nothing (&g) && g.errnum == EMSGSIZE;
        }
        free (j);
    }
    ok (good,
        "payloads of 0 to 39 bytes are accepted with a limit of their size, and fail with EMSGSIZE with a lower limit");
    ok (strcmp (error.text, "J: payload: must have at most 38 bytes, and has 39") == 0,
        "the error for a payload over the limit has the size: %s", error.text);
}

static void test_wrap (void)
{
    static const uint32_t users[] = { 0, 1, 1000, 65534, UINT32_MAX - 1 };
    char *j = job_sign_wrap ("foo", 4, 1000);
    bool good = true;

    ok (strcmp (j, FLUX_J) == 0, "signing gives the same J as Flux");
    free (j);
    for (size_t i = 0; i < sizeof (users) / sizeof (users[0]); i++) {
        j = job_sign_wrap ("{}", 2, users[i]);
        struct got g = unwrap (j, strlen (j), 2);
        good &= g.rc == 0 && g.userid == users[i] && strcmp (g.payload, "{}") == 0;
        free (g.payload);
        free (j);
    }
    ok (good, "the J of any user is read as a J of that user");
}

/* A truncated or changed J is refused with outputs unchanged, or unwraps to what it contains. */
static void test_changed (void)
{
    bool cut = true, changed = true;
    char j[] = FLUX_J;

    for (size_t size = 0; size < sizeof (FLUX_J) - 1; size++) {
        struct got g = unwrap (j, size, 100);
        cut &= gave_nothing (&g) && g.errnum == EINVAL && strncmp (error.text, "J: ", 3) == 0;
    }
    ok (cut, "a J that is truncated at any byte is refused");
    for (size_t i = 0; i < sizeof (FLUX_J) - 1; i++) {
        char before = j[i];
        for (int c = 0; c < 256; c++) {
            j[i] = (char)c;
            struct got g = unwrap (j, sizeof (FLUX_J) - 1, 100);
            changed &= g.rc == 0 ? g.size <= 6 : gave_nothing (&g) && strncmp (error.text, "J: ", 3) == 0;
            free (g.payload);
        }
        j[i] = before;
    }
    ok (changed,
        "a J with any changed byte is refused with an error that names a part, or has another payload or user");
}

static void test_memory (void)
{
    countdown = 0;
    char *j = job_sign_wrap ("foo", 4, 1000);
    countdown = -1;
    ok (!j && errno == ENOMEM, "signing without memory fails with ENOMEM");
    countdown = 0;
    struct got g = unwrap (FLUX_J, sizeof (FLUX_J) - 1, 100);
    countdown = -1;
    ok (gave_nothing (&g) && g.errnum == ENOMEM, "reading a J without memory fails with ENOMEM: %s", error.text);
}

int main (int argc, char *argv[])
{
    test_parts ();
    test_headers ();
    test_long_header ();
    test_limit ();
    test_wrap ();
    test_changed ();
    test_memory ();
    return done_testing ();
}
