/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-codecs.c - what each way to write, read and sort ids costs, beside what it may cost
 *
 * Prints one JSON object a line: nanoseconds for one id (of base64: for one byte of data), the best of ROUNDS short
 * windows; the limit, which is a goal for a machine at 3 GHz, or a share of what libc takes for the same in this
 * run; and the ratio to it, above 1 when it is missed.  Ids are those of an instance of some days and 16384 ranks.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "idtree/flax.h"
#include "idtree/fluid.h"
#include "idtree/sno.h"
#include "idtree/uid.h"
#include "libutil/base64.h"
#include "timing.h"

#define IDS 500 /* in a round: short enough to be left alone by the scheduler now and then */
#define ROUNDS 1600
#define SORTED 1000000
#define SORT_ROUNDS 5
#define BYTES 300000 /* of base64 in a round */
#define BYTES_ROUNDS 200

struct bed {
    enum fluid_form form;
    fluid_t fluid[IDS];
    flax_t flax[IDS];
    sno_t sno[IDS];
    struct uid uid[IDS];
    char text[IDS][FLUID_TEXT_MAX];
    size_t len[IDS];
    char lines[IDS * FLUID_TEXT_MAX];
    size_t lines_len;
    uint8_t data[BYTES];
    char base64[BASE64_ENCODED_SIZE (BYTES) + 1];
};

typedef size_t (*work_f) (struct bed *bed); /* returns how much it has done */

static uint64_t random_bits (uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* Nanoseconds for one of 'count', best of 'rounds'.  Ends the program when the work is not done. */
static double measure (work_f work, struct bed *bed, size_t count, int rounds)
{
    double best = 1e18;

    for (int round = 0; round < rounds; round++) {
        double start_ns = now_ns ();
        size_t done = work (bed);
        double ns = (now_ns () - start_ns) / count;

        if (done != count)
            exit (EXIT_FAILURE);
        best = ns < best ? ns : best;
    }
    return best;
}

/* A limit of 0 is none: what others are compared with. */
static void report (const char *what, const char *which, double ns, double limit_ns)
{
    printf ("{\"bench\":\"codec\",\"what\":\"%s\",\"form\":\"%s\",\"ns\":%.2f", what, which, ns);
    if (limit_ns > 0)
        printf (",\"limit_ns\":%.2f,\"ratio\":%.2f", limit_ns, ns / limit_ns);
    puts ("}");
    fflush (stdout);
}

/* --- FLUID --- */

static size_t fluid_write (struct bed *bed)
{
    size_t i = 0;

    for (; i < IDS; i++)
        bed->len[i] = fluid_format (bed->fluid[i], bed->form, bed->text[i], FLUID_TEXT_MAX);
    return i;
}

static size_t fluid_read (struct bed *bed)
{
    size_t done = 0;

    for (int i = 0; i < IDS; i++) {
        fluid_t id;
        done += fluid_parse (bed->text[i], bed->len[i], &id, NULL) == 0 && id == bed->fluid[i];
    }
    return done;
}

static size_t fluid_write_lines (struct bed *bed)
{
    size_t done = IDS;

    fluid_format_lines (bed->fluid, &done, bed->form, bed->lines, sizeof (bed->lines), &bed->lines_len);
    return done;
}

static size_t fluid_read_lines (struct bed *bed)
{
    size_t done = IDS;

    fluid_parse_lines (bed->lines, bed->lines_len, bed->fluid, &done, NULL);
    return done;
}

static size_t libc_write (struct bed *bed)
{
    size_t done = 0;

    for (int i = 0; i < IDS; i++)
        done += snprintf (bed->text[i], FLUID_TEXT_MAX, "%" PRIu64, bed->fluid[i]) > 0;
    return done;
}

static size_t libc_read (struct bed *bed)
{
    size_t done = 0;

    for (int i = 0; i < IDS; i++)
        done += strtoull (bed->text[i], NULL, 0) == bed->fluid[i];
    return done;
}

/* Limits of 0 are half of what strtoull takes. */
static const struct {
    double encode_ns, parse_ns;
} fluid_limits[FLUID_FORM_COUNT] = {
    [FLUID_DEC] = { 10, 0 },       [FLUID_HEX] = { 10, 0 },    [FLUID_DOTHEX] = { 8, 10 }, [FLUID_F58] = { 6, 7.5 },
    [FLUID_F58_UTF8] = { 6, 7.5 }, [FLUID_WORDS] = { 25, 50 }, [FLUID_EMOJI] = { 8, 12 },
};

static void fluid_forms (struct bed *bed)
{
    report ("snprintf", "dec", measure (libc_write, bed, IDS, ROUNDS), 0);
    report ("strtoull", "dec", measure (libc_read, bed, IDS, ROUNDS), 0);
    for (int form = 0; form < FLUID_FORM_COUNT; form++) {
        bed->form = form;
        report ("fluid encode", fluid_form_name (form), measure (fluid_write, bed, IDS, ROUNDS),
                fluid_limits[form].encode_ns);
        double limit_ns = fluid_limits[form].parse_ns;
        if (limit_ns == 0)
            limit_ns = measure (libc_read, bed, IDS, ROUNDS) / 2;
        report ("fluid parse", fluid_form_name (form), measure (fluid_read, bed, IDS, ROUNDS), limit_ns);
        double write_ns = measure (fluid_write_lines, bed, IDS, ROUNDS);
        double read_ns = measure (fluid_read_lines, bed, IDS, ROUNDS);
        report ("fluid encode lines", fluid_form_name (form), write_ns, fluid_limits[form].encode_ns);
        report ("fluid parse lines", fluid_form_name (form), read_ns, limit_ns);
    }
}

/* --- flax, sno, uid --- */

static size_t flax_write (struct bed *bed)
{
    size_t i = 0;

    for (; i < IDS; i++)
        flax_format (&bed->flax[i], bed->text[i], FLUID_TEXT_MAX);
    return i;
}

static size_t flax_read (struct bed *bed)
{
    size_t done = 0;

    while (done < IDS)
        done += flax_parse (bed->text[done], FLAX_TEXT_LEN, &bed->flax[done], NULL) == 0;
    return done;
}

static size_t sno_write (struct bed *bed)
{
    size_t i = 0;

    for (; i < IDS; i++)
        sno_format (&bed->sno[i], bed->text[i], FLUID_TEXT_MAX);
    return i;
}

static size_t sno_read (struct bed *bed)
{
    size_t done = 0;

    while (done < IDS)
        done += sno_parse (bed->text[done], SNO_TEXT_LEN, &bed->sno[done], NULL) == 0;
    return done;
}

static size_t uid_write (struct bed *bed)
{
    size_t i = 0;

    for (; i < IDS; i++)
        bed->len[i] = uid_format (&bed->uid[i], NULL, bed->text[i], FLUID_TEXT_MAX);
    return i;
}

static size_t uid_read (struct bed *bed)
{
    size_t done = 0;

    while (done < IDS)
        done += uid_parse (bed->text[done], UID_GLOBAL_TEXT_LEN, NULL, &bed->uid[done], NULL) == 0;
    return done;
}

static void others (struct bed *bed)
{
    report ("flax encode", "text", measure (flax_write, bed, IDS, ROUNDS), 5);
    report ("flax parse", "text", measure (flax_read, bed, IDS, ROUNDS), 4);
    report ("sno encode", "text", measure (sno_write, bed, IDS, ROUNDS), 3);
    report ("sno parse", "text", measure (sno_read, bed, IDS, ROUNDS), 4);
    report ("uid encode", "global", measure (uid_write, bed, IDS, ROUNDS), 9);
    report ("uid parse", "global", measure (uid_read, bed, IDS, ROUNDS), 8);
}

/* --- sorting --- */

/* Makes the i-th id of a list. */
typedef void (*fill_f) (void *id, uint64_t ms, uint64_t bits);
typedef void (*sort_f) (void *ids, size_t count);

static void flax_fill (void *id, uint64_t ms, uint64_t bits)
{
    flax_join (&(struct flax_fields){ .ms = ms, .random = bits & FLAX_RANDOM_MAX }, id);
}

static void sno_fill (void *id, uint64_t ms, uint64_t bits)
{
    sno_join (&(struct sno_fields){ .unit = ms / 4, .partition = bits & 0xff, .sequence = bits >> 8 & 0xffff }, id);
}

static void uid_fill (void *id, uint64_t ms, uint64_t bits)
{
    struct uid local;

    uid_make ((int64_t)ms * 1000 + INT64_C (1600000000000000), bits >> 8, &local);
    uid_globalize (&local, &(struct uid_node){ .fingerprint = bits & 0xff }, id);
}

static void flax_order (void *ids, size_t count)
{
    flax_sort (ids, count);
}

static void sno_order (void *ids, size_t count)
{
    sno_sort (ids, count);
}

static void uid_order (void *ids, size_t count)
{
    uid_sort (ids, count);
}

/* Milliseconds for SORTED ids of a day in no order, best of SORT_ROUNDS. */
static void sorting (const char *what, size_t size, fill_f fill, sort_f sort)
{
    char *ids = malloc (SORTED * size);
    uint64_t x = UINT64_C (0x9e3779b97f4a7c15);
    double best_ms = 1e18;

    if (!ids)
        exit (EXIT_FAILURE);
    for (int round = 0; round < SORT_ROUNDS; round++) {
        for (size_t i = 0; i < SORTED; i++) {
            uint64_t ms = random_bits (&x) % 86400000;
            fill (ids + i * size, ms, random_bits (&x));
        }
        double start_ns = now_ns ();
        sort (ids, SORTED);
        double ms = (now_ns () - start_ns) / 1e6;
        best_ms = ms < best_ms ? ms : best_ms;
    }
    free (ids);
    printf ("{\"bench\":\"codec\",\"what\":\"%s\",\"ids\":%d,\"ms\":%.1f,\"limit_ms\":40,\"ratio\":%.2f}\n", what,
            SORTED, best_ms, best_ms / 40);
}

static void sorts (void)
{
    sorting ("flax sort", sizeof (flax_t), flax_fill, flax_order);
    sorting ("sno sort", sizeof (sno_t), sno_fill, sno_order);
    sorting ("uid sort", sizeof (struct uid), uid_fill, uid_order);
}

/* --- base64 --- */

static size_t base64_write (struct bed *bed)
{
    return base64_encode (bed->data, BYTES, bed->base64) / 4 * 3;
}

static size_t base64_read (struct bed *bed)
{
    return base64_decode (bed->base64, sizeof (bed->base64) - 1, bed->data, BYTES);
}

static void bytes (struct bed *bed)
{
    report ("base64 encode", "a byte", measure (base64_write, bed, BYTES, BYTES_ROUNDS), 0.15);
    report ("base64 decode", "a byte", measure (base64_read, bed, BYTES, BYTES_ROUNDS), 0.15);
}

static struct bed *bed_create (void)
{
    struct bed *bed = calloc (1, sizeof (*bed));
    uint64_t x = UINT64_C (0x9e3779b97f4a7c15);

    if (!bed)
        exit (EXIT_FAILURE);
    for (int i = 0; i < IDS; i++) {
        uint64_t bits[2] = { random_bits (&x), random_bits (&x) };
        bed->fluid[i] = random_bits (&x) >> 11;
        memcpy (&bed->flax[i], bits, FLAX_SIZE);
        memcpy (&bed->sno[i], bits, SNO_SIZE);
        uid_from_bytes (bits, UID_GLOBAL_SIZE, NULL, &bed->uid[i]);
        bed->uid[i].b %= UID_B_MAX + 1;
        bed->uid[i].c %= UID_C_MAX + 1;
    }
    for (int i = 0; i < BYTES; i++)
        bed->data[i] = random_bits (&x) & 0xff;
    return bed;
}

int main (void)
{
    struct bed *bed = bed_create ();

    fluid_forms (bed);
    others (bed);
    sorts ();
    bytes (bed);
    free (bed);
    return EXIT_SUCCESS;
}
