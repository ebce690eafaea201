/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_keyring.c - keys that arrive, are searched and passed on in any order, compared with a plain table
 *
 * There are few ranks and keys, so that keys collide. A parent broker receives the keys that are passed on. In the end
 * it must know the same keys.
 */
#include "broker/overlay/link.h"
#include "fuzz.h"

#define RANKS 16

static void set_key (struct control_key *k, uint32_t rank, uint8_t x)
{
    memset (k, 0, sizeof (*k));
    k->rank = rank;
    k->key[0] = x;
    k->key[CONTROL_KEY_SIZE - 1] = (uint8_t)~x;
}

static void take_key (const struct control_key *key, void *arg)
{
    keyring_put (arg, key);
}

static void pass_on (struct keyring *kr, struct keyring *above)
{
    idt_msg_t *msg;

    while ((msg = keyring_take_news (kr))) {
        must (control_decode_keys (msg, take_key, above) == 0);
        idt_msg_unref (msg);
    }
}

/* Check the result of a search: a rank that has the key, or no rank if none has it. */
static void check_found (uint32_t found, const int *table, int x)
{
    bool any = false;

    for (int i = 0; i < RANKS; i++)
        any = any || table[i] == x;
    must (found == TOPO_NONE ? !any : found < RANKS && table[found] == x);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    struct keyring *kr = keyring_create (), *above = keyring_create ();
    int table[RANKS];
    struct control_key k;

    must (kr && above);
    for (int i = 0; i < RANKS; i++)
        table[i] = -1;
    for (size_t i = 0; i + 1 < size; i += 2) {
        uint32_t rank = data[i] % RANKS;

        set_key (&k, rank, data[i + 1]);
        if (data[i] & 0x80)
            pass_on (kr, above);
        else if (data[i] & 0x40)
            check_found (keyring_find (kr, k.key), table, data[i + 1]);
        else {
            must (keyring_put (kr, &k) == (table[rank] != data[i + 1]));
            table[rank] = data[i + 1];
        }
    }
    pass_on (kr, above);
    for (int x = 0; x < 256; x++) {
        set_key (&k, 0, (uint8_t)x);
        check_found (keyring_find (above, k.key), table, x);
    }
    keyring_destroy (kr);
    keyring_destroy (above);
    return 0;
}
