/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* keyring_test.c - keys are found by rank and by key, and each is sent once to a broker above that does not know it */
#include <stdio.h>
#include <string.h>

#include "broker/overlay/link.h"
#include "test/tap.h"

#define PARENT "aaaaaaaa-0000-4000-8000-000000000000"
#define ANCESTOR "bbbbbbbb-0000-4000-8000-000000000000"

static struct control_key key_of (uint32_t rank, uint8_t version)
{
    struct control_key key = { .rank = rank };

    for (int i = 0; i < CONTROL_KEY_SIZE; i++)
        key.key[i] = (uint8_t)(rank >> (i % 4 * 8)) + version;
    return key;
}

static bool put (struct keyring *kr, uint32_t rank, uint8_t version)
{
    struct control_key key = key_of (rank, version);

    return keyring_put (kr, &key);
}

static uint32_t find (const struct keyring *kr, uint32_t rank, uint8_t version)
{
    struct control_key key = key_of (rank, version);

    return keyring_find (kr, key.key);
}

static void take_key (const struct control_key *key, void *arg)
{
    keyring_put (arg, key);
}

/* Put all new keys of 'kr' into 'above' (may be NULL).  Returns their number. */
static uint64_t pass_on (struct keyring *kr, struct keyring *above)
{
    uint64_t before = keyring_sent (kr);
    idt_msg_t *msg;

    while ((msg = keyring_take_news (kr))) {
        if (above && control_decode_keys (msg, take_key, above) < 0)
            bail_out ("malformed");
        idt_msg_unref (msg);
    }
    return keyring_sent (kr) - before;
}

static void test_once (void)
{
    struct keyring *kr = keyring_create ();

    keyring_join (kr, PARENT);
    ok (pass_on (kr, NULL) == 0, "an empty keyring has no new keys");
    put (kr, 1, 0);
    put (kr, 2, 0);
    ok (pass_on (kr, NULL) == 2 && pass_on (kr, NULL) == 0, "a keyring sends each key up once");
    ok (keyring_pending (kr) == 2, "a key is pending until it has arrived");
    ok (put (kr, 2, 1) && !put (kr, 2, 1) && pass_on (kr, NULL) == 1, "a keyring sends a changed key up again");
    keyring_arrived (kr);
    ok (keyring_pending (kr) == 0, "no key is pending when all sent keys have arrived");
    keyring_join (kr, PARENT);
    ok (pass_on (kr, NULL) == 0, "after a reconnection to the same parent, keys that had arrived are not sent again");
    put (kr, 3, 0);
    ok (pass_on (kr, NULL) == 1, "after a reconnection to the same parent, new keys are sent");
    keyring_join (kr, PARENT);
    ok (pass_on (kr, NULL) == 1,
        "after a reconnection to the same parent, keys that did not arrive on the previous connection are sent again");
    keyring_arrived (kr);
    keyring_join (kr, ANCESTOR);
    ok (pass_on (kr, NULL) == 3, "when a keyring joins another broker, all keys are sent to that broker");
    keyring_arrived (kr);
    keyring_join (kr, PARENT);
    put (kr, 4, 0);
    ok (pass_on (kr, NULL) == 1, "when a keyring returns to its parent, only the keys that changed meanwhile are sent");
    keyring_arrived (kr);
    keyring_join (kr, ANCESTOR);
    ok (pass_on (kr, NULL) == 1,
        "when a keyring returns to another broker, only the keys that changed meanwhile are sent");
    keyring_destroy (kr);
}

/* A key that already belongs to one rank is reported for another rank. */
static void test_taken (void)
{
    struct keyring *kr = keyring_create ();
    struct control_key lie = key_of (1, 0);

    keyring_join (kr, PARENT);
    put (kr, 1, 0);
    put (kr, 2, 0);
    pass_on (kr, NULL);
    lie.rank = 2;
    ok (!keyring_put (kr, &lie) && find (kr, 1, 0) == 1 && find (kr, 2, 0) == 2,
        "a key that belongs to another rank is refused, and both ranks keep their keys");
    lie.rank = 3;
    ok (!keyring_put (kr, &lie) && find (kr, 1, 0) == 1 && keyring_count (kr) == 2,
        "a key that belongs to another rank is refused for a rank without a key, too");
    ok (pass_on (kr, NULL) == 0, "no key that was refused is sent up");
    ok (put (kr, 1, 1) && keyring_put (kr, &lie) && find (kr, 1, 0) == 3,
        "a key that its rank has replaced may become another rank's key");
    keyring_destroy (kr);
}

/* If the link does not take some keys, these are not lost. */
static void test_again (void)
{
    struct keyring *kr = keyring_create ();

    keyring_join (kr, PARENT);
    put (kr, 1, 0);
    pass_on (kr, NULL);
    keyring_arrived (kr);
    for (uint32_t i = 0; i < 2 * KEYRING_MESSAGE; i++)
        put (kr, 2 + i, 0);
    idt_msg_unref (keyring_take_news (kr));
    keyring_again (kr);
    keyring_arrived (kr);
    ok (pass_on (kr, NULL) == 2 * KEYRING_MESSAGE,
        "keys that could not be sent are sent later, together with all that have not arrived");
    keyring_destroy (kr);
}

/* When the keyring has forgotten a broker, this broker gets all keys again. */
static void test_forgotten (void)
{
    struct keyring *kr = keyring_create ();
    char uuid[] = PARENT;

    put (kr, 1, 0);
    for (int i = 0; i < 9; i++) {
        uuid[0] = (char)('a' + i);
        keyring_join (kr, uuid);
        if (pass_on (kr, NULL) != 1)
            break;
        keyring_arrived (kr);
    }
    ok (uuid[0] == 'a' + 8, "a keyring sends its key to nine parents, one after the other");
    keyring_join (kr, uuid);
    ok (pass_on (kr, NULL) == 0, "a keyring knows that the last of nine parents has the key");
    uuid[0] = 'a';
    keyring_join (kr, uuid);
    ok (pass_on (kr, NULL) == 1, "a keyring has forgotten the first of nine parents, and sends the key again");
    keyring_destroy (kr);
}

static void test_many (void)
{
    struct keyring *kr = keyring_create (), *above = keyring_create ();
    uint32_t n = 5000, wrong = 0;
    idt_msg_t *msg;

    keyring_join (kr, PARENT);
    for (uint32_t i = 0; i < n; i++)
        put (kr, i * 7, 0);
    msg = keyring_take_news (kr);
    idt_msg_unref (msg);
    ok (keyring_sent (kr) == KEYRING_MESSAGE, "a message has at most %d keys", KEYRING_MESSAGE);
    put (kr, 0, 1);     /* this key was already passed on */
    put (kr, 34993, 1); /* this key was not passed on yet */
    put (kr, 1, 0);     /* this key is new */
    keyring_join (kr, ANCESTOR);
    ok (pass_on (kr, above) == n + 1 && keyring_count (above) == n + 1, "a keyring sends up %d keys", (int)n + 1);
    for (uint32_t i = 1; i < n; i++)
        wrong += find (above, i * 7, i * 7 == 34993) != i * 7;
    ok (wrong == 0 && find (above, 0, 1) == 0 && find (above, 1, 0) == 1, "each of many keys is found by its bytes");
    ok (find (above, 34993, 0) == TOPO_NONE && find (kr, 34993, 0) == TOPO_NONE,
        "a key that was replaced is no longer found");
    keyring_destroy (kr);
    keyring_destroy (above);
}

/* Keys change while the keyring passes keys on.  A changed key is sent again if it was sent before, and no key is left
 * out.
 */
static void test_midst (void)
{
    struct keyring *kr = keyring_create (), *above = keyring_create ();
    uint32_t n = 3 * KEYRING_MESSAGE, wrong = 0;

    keyring_join (kr, PARENT);
    for (uint32_t i = 0; i < n; i++)
        put (kr, i, 0);
    for (uint32_t i = 0; i < 50; i++) {
        idt_msg_t *msg = keyring_take_news (kr);

        if (msg && control_decode_keys (msg, take_key, above) < 0)
            bail_out ("malformed");
        idt_msg_unref (msg);
        put (kr, i * 97 % n, 1);
        put (kr, n + i, 0);
    }
    pass_on (kr, above);
    ok (pass_on (kr, above) == 0 && keyring_count (above) == keyring_count (kr),
        "all keys of a keyring arrive at the keyring above");
    for (uint32_t i = 0; i < n; i++)
        wrong += find (above, i, find (kr, i, 1) == i) != i || (find (kr, i, 1) != i && find (kr, i, 0) != i);
    ok (wrong == 0 && find (above, 97, 1) == 97 && find (above, 97, 0) == TOPO_NONE,
        "the keyring above has the last version of each key");
    ok (keyring_sent (kr) <= n + 100, "a keyring sends only changed keys a second time");
    keyring_destroy (kr);
    keyring_destroy (above);
}

int main (void)
{
    test_once ();
    test_taken ();
    test_again ();
    test_forgotten ();
    test_many ();
    test_midst ();
    return done_testing ();
}
