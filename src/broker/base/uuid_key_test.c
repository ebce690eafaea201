/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uuid_key_test.c - UUIDs are random and have the form of RFC 9562 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "test/tap.h"
#include "broker/base/uuid_key.h"

#define COUNT 10000

static bool has_form (const char *s)
{
    for (int i = 0; i < UUID_KEY_LEN; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (dash ? s[i] != '-' : !s[i] || !strchr ("0123456789abcdef", s[i]))
            return false;
    }
    return s[UUID_KEY_LEN] == '\0';
}

static int compare (const void *a, const void *b)
{
    return strcmp (a, b);
}

int main (void)
{
    char (*uuid)[UUID_KEY_LEN + 1] = calloc (COUNT, sizeof (*uuid));
    int made = 0, formed = 0, random = 0, alike = 0, seen[128] = { 0 }, digits = 0;

    if (!uuid)
        bail_out ("out of memory");
    for (int i = 0; i < COUNT; i++) {
        made += uuid_make (uuid[i]) == 0;
        formed += has_form (uuid[i]);
        random += uuid[i][14] == '4' && uuid[i][19] && strchr ("89ab", uuid[i][19]) != NULL;
        for (int j = 0; j < UUID_KEY_LEN; j++)
            seen[j] |= j == 14 ? 1 << 4 : 1 << (strtol ((char[]){ uuid[i][j], '\0' }, NULL, 16));
    }
    qsort (uuid, COUNT, sizeof (uuid[0]), compare);
    for (int i = 1; i < COUNT; i++)
        alike += strcmp (uuid[i], uuid[i - 1]) == 0;
    for (int j = 0; j < UUID_KEY_LEN; j++)
        digits += seen[j] == 0xffff;
    ok (made == COUNT && formed == COUNT, "a UUID has five groups of lower-case digits");
    ok (random == COUNT, "a UUID has version 4 and variant 10");
    ok (alike == 0, "%d UUIDs are all different", COUNT);
    ok (digits == 30, "each digit of a UUID outside of version and variant takes all sixteen values (%d)", digits);
    free (uuid);
    return done_testing ();
}
