/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* attr_test.c - attributes: which calls may set them, and the syntax of numbers */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "broker/base/attr.h"
#include "libutil/errprintf.h"
#include "test/tap.h"

static void test_define (void)
{
    struct attrs *a = attrs_create ();
    idt_error_t err;
    int flags = -1;

    ok (!attr_get (a, "x", &flags) && errno == ENOENT && flags == -1,
        "a request for an attribute that does not exist fails with ENOENT");
    ok (attr_define (a, "x", "1", ATTR_IMMUTABLE, &err) == 0 && strcmp (attr_get (a, "x", &flags), "1") == 0
            && flags == ATTR_IMMUTABLE,
        "a defined attribute has its default and its flags");
    ok (attr_define (a, "x", "2", 0, &err) < 0 && errno == EEXIST, "a second definition of an attribute is refused");
    attr_give (a, "y", "one", NULL);
    attr_give (a, "y", "two", NULL);
    ok (attr_define (a, "y", "default", 0, &err) == 0 && strcmp (attr_get (a, "y", NULL), "two") == 0,
        "if the command line sets an attribute several times, the last value overrides the default");
    attr_give (a, "rank", "7", NULL);
    ok (attr_define (a, "rank", "0", ATTR_IMMUTABLE, &err) < 0 && errno == EINVAL && strstr (err.text, "rank"),
        "an immutable attribute of the broker cannot be set on the command line");
    ok (attr_define (a, "none", NULL, 0, &err) == 0 && !attr_get (a, "none", NULL),
        "an attribute without a default stays undefined");
    ok (attr_give (a, "", "1", NULL) < 0 && errno == EINVAL, "an attribute with an empty name is refused");
    attrs_destroy (a);
    attrs_destroy (NULL);
}

static void test_check (void)
{
    static const struct {
        const char *name, *value, *text; /* 'text' is a part of the error text; NULL: the value is accepted */
    } cases[] = {
        { "a", "", NULL },
        { "a.b-c_9", "caf\xc3\xa9 = \"x\"", NULL },
        { "", "1", "the name of an attribute is missing" },
        { "a b", "1", "attribute a b: byte 2 of the name is not printable ASCII" },
        { "\xff", "1", "attribute ?: byte 1 of the name is not printable ASCII" },
        { "a", "caf\xe9", "attribute a: byte 4 of its value (0xe9) is not UTF-8" },
        { "a", "1\n", "attribute a: byte 2 of its value (0x0a) is a control character" },
        { "a", "\x7f", "attribute a: byte 1 of its value (0x7f) is a control character" },
        { "a", "\xc2\x9b", "attribute a: byte 1 of its value (0xc2) is a control character" },
    };
    struct attrs *a;
    char *big = malloc (ATTR_VALUE_MAX + 2);
    idt_error_t err;

    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
        const char *name = cases[i].name, *value = cases[i].value, *text = cases[i].text;
        bool fine = text == NULL;

        a = attrs_create ();
        attr_define (a, "set", "1", ATTR_SETTABLE, &err);
        ok ((attr_give (a, name, value, &err) == 0) == fine && (fine || strcmp (err.text, text) == 0),
            "value of a broker, case %zu: %s", i, fine ? "accepted" : err.text);
        ok ((attr_default (a, name, value, NULL) != NULL) == fine && (attr_update (a, name, value, NULL) == 0) == fine,
            "a malformed value is refused by each function that sets values");
        if (*name == 'a')
            ok ((attr_set (a, "set", value, NULL) == 0) == (fine || strcmp (value, "1") == 0),
                "a malformed value of a client is refused");
        attrs_destroy (a);
    }
    a = attrs_create ();
    attr_define (a, "set", "1", ATTR_SETTABLE, &err);
    ok (attr_define (a, "fact", "\xff", ATTR_IMMUTABLE, &err) < 0 && errno == EINVAL && strstr (err.text, "fact"),
        "a broker refuses to set an attribute to a value that no response can carry: %s", err.text);
    memset (big, 'x', ATTR_VALUE_MAX + 1);
    big[ATTR_VALUE_MAX + 1] = '\0';
    ok (attr_give (a, "big", big, NULL) < 0 && attr_set (a, "set", big, &err) < 0 && errno == EINVAL
            && strstr (err.text, "65537"),
        "a value that is too long is refused: %s", err.text);
    ok (attr_give (a, "big", big + 1, NULL) == 0 && attr_define (a, "list", big, 0, &err) == 0,
        "a client may set a value of the largest size; the broker may set a longer one");
    free (big);
    attrs_destroy (a);
}

struct owner {
    int asked;
    char took[16];
};

static int refuse_bad (const char *value, void *arg, idt_error_t *errp)
{
    ((struct owner *)arg)->asked++;
    return strcmp (value, "bad") == 0 ? errprintf (errp, "bad is bad") : 0;
}

static void take (const char *name, const char *value, void *arg)
{
    struct owner *o = arg;

    snprintf (o->took, sizeof (o->took), "%s=%s", name, value);
}

static void test_set (void)
{
    struct attrs *a = attrs_create ();
    idt_error_t err;
    struct owner owner = { 0 };

    attr_define (a, "fact", "1", ATTR_IMMUTABLE, &err);
    attr_define (a, "plain", "1", 0, &err);
    attr_define (a, "level", "1", ATTR_SETTABLE, &err);
    ok (attr_set (a, "nosuch", "1", &err) < 0 && errno == ENOENT && strcmp (err.text, "unknown attribute") == 0,
        "a client cannot set an unknown attribute");
    ok (attr_set (a, "fact", "2", &err) < 0 && errno == EINVAL && strcmp (err.text, "attribute may not be updated") == 0
            && attr_set (a, "plain", "2", &err) < 0 && errno == EINVAL,
        "a client cannot set an immutable attribute or one that only the broker sets");
    ok (attr_set (a, "level", "2", &err) == 0 && strcmp (attr_get (a, "level", NULL), "2") == 0,
        "a client can set a settable attribute");
    ok (attr_own (a, "level", refuse_bad, take, &owner, &err) == 0 && owner.asked == 1
            && !strcmp (owner.took, "level=2"),
        "a new owner of an attribute checks the present value");
    ok (attr_set (a, "level", "bad", &err) < 0 && errno == EINVAL
            && !strcmp (err.text, "attribute level=bad: bad is bad") && strcmp (attr_get (a, "level", NULL), "2") == 0
            && !strcmp (owner.took, "level=2"),
        "a value that the owner of the attribute refuses changes nothing");
    ok (attr_check (a, "level", "3", &err) == 0 && attr_check (a, "level", "bad", &err) < 0
            && attr_check (a, "fact", "3", &err) < 0 && !strcmp (owner.took, "level=2")
            && strcmp (attr_get (a, "level", NULL), "2") == 0,
        "attr_check () returns the owner's answer and does not change the attribute");
    ok (attr_set (a, "level", attr_get (a, "level", NULL), &err) == 0 && strcmp (attr_get (a, "level", NULL), "2") == 0,
        "an attribute may be set to the value that it has");
    ok (attr_update (a, "fact", "3", &err) == 0 && strcmp (attr_get (a, "fact", NULL), "3") == 0,
        "the broker may set any attribute");
    ok (attr_own (a, "nosuch", refuse_bad, take, &owner, &err) < 0 && errno == ENOENT,
        "only an attribute that exists can get an owner");
    attrs_destroy (a);
}

/* --- numbers ---------------------------------------------------------------------------------------------- */

struct number {
    const char *text;
    double value; /* negative: the text is refused */
};

static bool number_agrees (int rc, double got, const struct number *n, const char *text)
{
    return n->value < 0 ? rc < 0 && errno == EINVAL && got == -1. && strstr (text, n->text) != NULL
                        : rc == 0 && got > n->value * 0.999999 && got < n->value * 1.000001;
}

static void test_u32 (void)
{
    static const struct number numbers[] = {
        { "1", 1 },
        { "10", 10 },
        { "007", 7 },
        { "0", -1 },
        { "11", -1 },
        { "", -1 },
        { "-1", -1 },
        { "+1", -1 },
        { " 1", -1 },
        { "1 ", -1 },
        { "1x", -1 },
        { "0x1", -1 },
        { "1.0", -1 },
        { "4294967297", -1 },
        { "18446744073709551617", -1 },
        { "99999999999999999999999", -1 },
        { "one", -1 },
    };

    for (size_t i = 0; i < sizeof (numbers) / sizeof (numbers[0]); i++) {
        struct attrs *a = attrs_create ();
        uint32_t value = 0;
        idt_error_t err;
        int rc;

        attr_give (a, "n", numbers[i].text, NULL);
        rc = attr_u32 (a, "n", "5", 1, 10, &value, &err);
        ok (number_agrees (rc, rc < 0 && value == 0 ? -1. : value, &numbers[i], err.text),
            "the number '%s' for an attribute from 1 to 10 %s", numbers[i].text,
            numbers[i].value < 0 ? "is refused" : "is accepted");
        attrs_destroy (a);
    }
}

static void test_size (void)
{
    static const struct number numbers[] = {
        { "4096", 4096 }, { "4k", 4096 }, { "4K", 4096 },  { "1.5M", 1572864 }, { "1G", 1073741824. }, { "2G", -1 },
        { "1", -1 },      { "4 k", -1 },  { "4kB", -1 },   { "-4k", -1 },       { "nan", -1 },         { "inf", -1 },
        { "", -1 },       { "k", -1 },    { "1e400", -1 }, { "0x10000", -1 },
    };

    for (size_t i = 0; i < sizeof (numbers) / sizeof (numbers[0]); i++) {
        struct attrs *a = attrs_create ();
        uint64_t value = 0;
        idt_error_t err;
        int rc;

        attr_give (a, "n", numbers[i].text, NULL);
        rc = attr_size (a, "n", "8k", 4096, 1 << 30, &value, &err);
        ok (number_agrees (rc, rc < 0 && value == 0 ? -1. : (double)value, &numbers[i], err.text), "the size '%s' %s",
            numbers[i].text, numbers[i].value < 0 ? "is refused" : "is accepted");
        attrs_destroy (a);
    }
}

static void test_seconds (void)
{
    static const struct number numbers[] = {
        { "1", 1 },   { "1s", 1 },    { "500ms", .5 }, { "0.5s", .5 }, { "2m", 120 }, { "1h", 3600 },
        { "2h", -1 }, { "50ms", -1 }, { "-1s", -1 },   { "1d", -1 },   { "nan", -1 }, { "infinity", -1 },
        { "", -1 },   { "s", -1 },    { "1S", -1 },    { "0x1", -1 },  { ".5s", -1 },
    };

    for (size_t i = 0; i < sizeof (numbers) / sizeof (numbers[0]); i++) {
        struct attrs *a = attrs_create ();
        double value = -1.;
        idt_error_t err;
        int rc;

        attr_give (a, "n", numbers[i].text, NULL);
        rc = attr_seconds (a, "n", "5s", .1, 3600., &value, &err);
        ok (number_agrees (rc, value, &numbers[i], err.text), "the time '%s' %s", numbers[i].text,
            numbers[i].value < 0 ? "is refused" : "is accepted");
        attrs_destroy (a);
    }
}

static void test_absent (void)
{
    struct attrs *a = attrs_create ();
    uint32_t n = 0;
    uint64_t size = 0;
    double t = 0.;

    ok (attr_u32 (a, "x", "5", 1, 9, &n, NULL) == 0 && n == 5 && attr_size (a, "y", "6", 1, 9, &size, NULL) == 0
            && size == 6 && attr_seconds (a, "z", "7s", 1, 9, &t, NULL) == 0 && t > 6.9,
        "an attribute of type number that is not set has its default");
    ok (strcmp (attr_get (a, "z", NULL), "7s") == 0 && !attr_unclaimed (a, NULL, NULL),
        "an attribute with a default exists, and is claimed");
    attrs_destroy (a);
}

static void test_switches (void)
{
    struct attrs *a = attrs_create ();
    idt_error_t err;
    bool on = false;

    ok (attr_switch (a, "not", "true", &on, &err) == 0 && on,
        "an attribute of type switch that is not set has its default");
    attr_give_at (a, "x", "no", "FILE:3", &err);
    ok (attr_switch (a, "x", "true", &on, &err) == 0 && !on, "an attribute of type switch may be set to no");
    attr_give_at (a, "x", "maybe", "FILE:4", &err);
    ok (attr_switch (a, "x", "true", &on, &err) < 0 && errno == EINVAL && !on
            && strcmp (err.text, "FILE:4: attribute x=maybe: must be true or false (on, off, yes, no, 1 and 0 are "
                                 "taken, too)")
                   == 0,
        "the error for an unknown word names the word and the line of the word: %s", err.text);
    attrs_destroy (a);
}

static void test_blamed (void)
{
    struct attrs *a = attrs_create ();

    attr_give_at (a, "x", "5", "FILE:3", NULL);
    attr_give_at (a, "x.y", "6", "FILE:4", NULL);
    attr_give (a, "z", "7", NULL);
    ok (strcmp (attr_blamed (a, "x.y=6: must be 7"), "FILE:4") == 0
            && strcmp (attr_blamed (a, "x=5: bad"), "FILE:3") == 0,
        "attr_blamed () finds the attribute at the beginning of an error text, and returns the line that set it");
    ok (!*attr_blamed (a, "z=7: bad") && !*attr_blamed (a, "x=6: bad") && !*attr_blamed (a, "x is bad")
            && !*attr_blamed (a, ""),
        "attr_blamed () returns no line for an attribute that no file set, or that has another value than the error "
        "text");
    attrs_destroy (a);
}

/* --- all of them ------------------------------------------------------------------------------------------ */

static void append (const char *name, const char *value, void *arg)
{
    strcat (arg, name);
    strcat (arg, value);
}

static void test_foreach (void)
{
    struct attrs *a = attrs_create ();
    char text[64] = "";

    attr_define (a, "c", "3", 0, NULL);
    attr_define (a, "a", "1", 0, NULL);
    attr_define (a, "b", "2", 0, NULL);
    attr_foreach (a, append, text);
    ok (strcmp (text, "a1b2c3") == 0, "attributes are listed in the order of their names");
    attr_give (a, "given", "x", NULL);
    ok (strcmp (attr_default (a, "given", "y", NULL), "x") == 0 && strcmp (attr_default (a, "new", "y", NULL), "y") == 0
            && strcmp (attr_default (a, "new", "z", NULL), "y") == 0 && !attr_unclaimed (a, NULL, NULL),
        "a default applies to an attribute that is not set, and cannot be changed later");
    ok (attr_set (a, "new", "z", NULL) < 0 && errno == EINVAL, "a default does not make an attribute settable");
    attrs_destroy (a);
}

static void test_unclaimed (void)
{
    struct attrs *a = attrs_create ();

    ok (!attr_unclaimed (a, NULL, NULL), "no attribute is unclaimed if the command line sets no attribute");
    attr_give (a, "defined", "1", NULL);
    attr_give (a, "asked", "1", NULL);
    attr_give (a, "misspelt", "1", NULL);
    attr_define (a, "defined", "0", 0, NULL);
    attr_get (a, "asked", NULL);
    ok (attr_unclaimed (a, NULL, NULL) && strcmp (attr_unclaimed (a, NULL, NULL), "misspelt") == 0,
        "an attribute of the command line that is neither defined nor read is reported");
    attr_get (a, "misspelt", NULL);
    ok (!attr_unclaimed (a, NULL, NULL), "an attribute is claimed when it is defined or read");
    attrs_destroy (a);
}

struct reader {
    struct attrs *a;
    bool good, told;
};

static void *read_all (void *arg)
{
    struct reader *r = arg;

    while (!__atomic_load_n (&r->told, __ATOMIC_RELAXED)) {
        char *value = attr_read (r->a, "x");
        char name[16];

        r->good = r->good && value && strlen (value) == 3 && value[0] == value[2];
        free (value);
        snprintf (name, sizeof (name), "n%d", rand () % 1000);
        r->good = r->good && attr_default (r->a, name, "1", NULL);
    }
    return NULL;
}

/* Another thread reads and defines attributes while this thread changes values. */
static void test_threads (void)
{
    struct reader r = { .a = attrs_create (), .good = true };
    pthread_t thread;
    char value[4];
    int n = 0;

    attr_define (r.a, "x", "aaa", ATTR_SETTABLE, NULL);
    if (pthread_create (&thread, NULL, read_all, &r) != 0)
        bail_out ("cannot make a thread");
    while (n < 20000 && attr_get (r.a, "x", NULL)) {
        memset (value, 'a' + n++ % 26, 3);
        value[3] = '\0';
        if (attr_set (r.a, "x", value, NULL) < 0)
            break;
    }
    __atomic_store_n (&r.told, true, __ATOMIC_RELAXED);
    pthread_join (thread, NULL);
    ok (n == 20000 && r.good,
        "another thread reads whole values while the broker changes them and defines other attributes");
    ok (!attr_read (r.a, "nosuch") && errno == ENOENT,
        "a request of another thread for an attribute that does not exist fails with ENOENT");
    attrs_destroy (r.a);
}

int main (void)
{
    test_define ();
    test_check ();
    test_set ();
    test_u32 ();
    test_switches ();
    test_blamed ();
    test_size ();
    test_seconds ();
    test_absent ();
    test_foreach ();
    test_unclaimed ();
    test_threads ();
    return done_testing ();
}
