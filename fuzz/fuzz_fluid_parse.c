/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_fluid_parse.c - each text is an id or an error, and an id can be converted to every form and back
 *
 * Numbers are also read with strtoull, and digit by digit. The results must be the same.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libfluid/digits.c" /* included, because both ways to read digits are tested */

int LLVMFuzzerTestOneInput (const unsigned char *data, size_t size);

#define UNTOUCHED UINT64_C (0x0123456789abcdef)

static void require (int good)
{
    if (!good)
        abort ();
}

static void round_trip (fluid_t id)
{
    for (int form = 0; form < FLUID_FORM_COUNT; form++) {
        char buf[FLUID_TEXT_MAX];
        fluid_t back = ~id;
        int n = fluid_format (id, form, buf, sizeof (buf));

        require (n > 0 && (size_t)n == strlen (buf));
        require (fluid_parse (buf, n, &back, NULL) == 0 && back == id);
    }
}

/* If 's' has only digits (hex digits after 0x), strtoull () must find the same number, or ERANGE. 'errnum' is the error
 * of fluid_parse (); 0: it returned 'id'.
 */
static void compare_number (const char *s, int errnum, fluid_t id)
{
    int base = strncmp (s, "0x", 2) == 0 ? 16 : 10;
    const char *digits = base == 16 ? "0123456789abcdefABCDEF" : "0123456789";
    const char *start = base == 16 ? s + 2 : s;

    if (*start == '\0' || start[strspn (start, digits)] != '\0')
        return;
    errno = 0;
    unsigned long long expected = strtoull (s, NULL, base);
    require (errnum == errno && (errnum != 0 || id == expected));
}

/* Read digits many at a time and one by one. The results must be the same. */
static void compare_ways (const char *s, size_t len)
{
    static const struct {
        form_decode_f decode;
        unsigned base;
        const uint8_t *value;
    } ways[] = {
        { form_dec_decode, 10, decimal_value },
        { form_hex_decode, 16, hex_value },
        { form_f58_decode, 58, base58_value },
    };

    for (size_t i = 0; i < sizeof (ways) / sizeof (ways[0]); i++) {
        fluid_t id = UNTOUCHED, plain = UNTOUCHED;
        size_t pos = SIZE_MAX, plain_pos = SIZE_MAX;
        int rc = ways[i].decode (s, 0, len, &id, &pos);

        require (decode_any (s, 0, len, ways[i].base, ways[i].value, &plain, &plain_pos) == rc);
        require (id == plain && pos == plain_pos);
    }
}

static void parse (const char *s, size_t len)
{
    fluid_t id = UNTOUCHED;
    size_t pos = SIZE_MAX;
    int errnum = fluid_parse (s, len, &id, &pos) < 0 ? errno : 0;

    compare_ways (s, len);
    if (strlen (s) == len)
        compare_number (s, errnum, id);
    if (errnum == 0)
        round_trip (id);
    else
        require ((errnum == EINVAL || errnum == ERANGE) && id == UNTOUCHED && pos <= len);
}

int LLVMFuzzerTestOneInput (const unsigned char *data, size_t size)
{
    char *s = malloc (size + 1);
    fluid_t id;

    if (!s)
        return 0;
    memcpy (s, data, size);
    s[size] = '\0';
    parse (s, size);
    free (s);

    if (size >= sizeof (id)) {
        memcpy (&id, data, sizeof (id));
        round_trip (id);
    }
    return 0;
}
