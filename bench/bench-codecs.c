/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-codecs.c - the time to write, read and sort ids in each form, compared with a goal
 *
 * Times are nanoseconds for one id (base64: for one byte of data), measured in short windows. The limit is a goal for a
 * machine at 3 GHz, or half of the time of strtoull in this run. The ids are from an instance that is some days old and
 * has 16,384 ranks.
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
#include "loops.h"
#include "timing.h"

#define IDS 500    /* ids of a round, which is so short that some rounds are not interrupted */
#define ROUNDS 160 /* rounds of a turn */
#define TURNS 16
#define SORTED 1000000
#define SORT_TURNS 6
#define SORT_GOAL_MS 40
#define BYTES 300000 /* bytes of base64 in a round */
#define BYTES_ROUNDS 12

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

static uint64_t random_bits (uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* --- FLUID --- */

static size_t fluid_write (void *arg)
{
    struct bed *bed = arg;
    size_t i = 0;

    for (; i < IDS; i++)
        bed->len[i] = fluid_format (bed->fluid[i], bed->form, bed->text[i], FLUID_TEXT_MAX);
    return i;
}

static size_t fluid_read (void *arg)
{
    struct bed *bed = arg;
    size_t done = 0;

    for (int i = 0; i < IDS; i++) {
        fluid_t id;
        done += fluid_parse (bed->text[i], bed->len[i], &id, NULL) == 0 && id == bed->fluid[i];
    }
    return done;
}

static size_t fluid_write_lines (void *arg)
{
    struct bed *bed = arg;
    size_t done = IDS;

    fluid_format_lines (bed->fluid, &done, bed->form, bed->lines, sizeof (bed->lines), &bed->lines_len);
    return done;
}

static size_t fluid_read_lines (void *arg)
{
    struct bed *bed = arg;
    size_t done = IDS;

    fluid_parse_lines (bed->lines, bed->lines_len, bed->fluid, &done, NULL);
    return done;
}

static size_t libc_write (void *arg)
{
    struct bed *bed = arg;
    size_t done = 0;

    for (int i = 0; i < IDS; i++)
        done += snprintf (bed->text[i], FLUID_TEXT_MAX, "%" PRIu64, bed->fluid[i]) > 0;
    return done;
}

static size_t libc_read (void *arg)
{
    struct bed *bed = arg;
    size_t done = 0;

    for (int i = 0; i < IDS; i++)
        done += strtoull (bed->text[i], NULL, 0) == bed->fluid[i];
    return done;
}

/* --- flax, sno, uid --- */

static size_t flax_write (void *arg)
{
    struct bed *bed = arg;
    size_t i = 0;

    for (; i < IDS; i++)
        flax_format (&bed->flax[i], bed->text[i], FLUID_TEXT_MAX);
    return i;
}

static size_t flax_read (void *arg)
{
    struct bed *bed = arg;
    size_t done = 0;

    while (done < IDS)
        done += flax_parse (bed->text[done], FLAX_TEXT_LEN, &bed->flax[done], NULL) == 0;
    return done;
}

static size_t sno_write (void *arg)
{
    struct bed *bed = arg;
    size_t i = 0;

    for (; i < IDS; i++)
        sno_format (&bed->sno[i], bed->text[i], FLUID_TEXT_MAX);
    return i;
}

static size_t sno_read (void *arg)
{
    struct bed *bed = arg;
    size_t done = 0;

    while (done < IDS)
        done += sno_parse (bed->text[done], SNO_TEXT_LEN, &bed->sno[done], NULL) == 0;
    return done;
}

static size_t uid_write (void *arg)
{
    struct bed *bed = arg;
    size_t i = 0;

    for (; i < IDS; i++)
        bed->len[i] = uid_format (&bed->uid[i], NULL, bed->text[i], FLUID_TEXT_MAX);
    return i;
}

static size_t uid_read (void *arg)
{
    struct bed *bed = arg;
    size_t done = 0;

    while (done < IDS)
        done += uid_parse (bed->text[done], UID_GLOBAL_TEXT_LEN, NULL, &bed->uid[done], NULL) == 0;
    return done;
}

/* --- base64 --- */

static size_t base64_write (void *arg)
{
    struct bed *bed = arg;
    return base64_encode (bed->data, BYTES, bed->base64) / 4 * 3;
}

static size_t base64_read (void *arg)
{
    struct bed *bed = arg;
    return base64_decode (bed->base64, sizeof (bed->base64) - 1, bed->data, BYTES);
}

/* --- all loops --- */

static void take_form (void *arg, int form)
{
    struct bed *bed = arg;

    bed->form = form;
}

/* Write the texts that the other loops read, one by one or in lines. */
static void write_ids (void *arg, int form)
{
    take_form (arg, form);
    fluid_write (arg);
    fluid_write_lines (arg);
}

static void write_flax (void *arg, int unused)
{
    flax_write (arg);
}

static void write_sno (void *arg, int unused)
{
    sno_write (arg);
}

static void write_uid (void *arg, int unused)
{
    uid_write (arg);
}

static void write_base64 (void *arg, int unused)
{
    base64_write (arg);
}

#define HALF -1 /* the limit is half of the time of strtoull */

/* Each form has four rows: write and read one id, write and read many ids. Then the other loops follow. */
static const struct {
    const char *name;
    size_t (*work) (void *bed);
    void (*prepare) (void *bed, int form);
    double limit_ns; /* 0: the time of this loop is the limit of others */
} others[] = {
    { "flax write", flax_write, NULL, 5 },
    { "flax read", flax_read, write_flax, 4 },
    { "sno write", sno_write, NULL, 3 },
    { "sno read", sno_read, write_sno, 4 },
    { "uid write, global", uid_write, NULL, 9 },
    { "uid read, global", uid_read, write_uid, 8 },
    { "base64 write, a byte", base64_write, NULL, 0.5 },
    { "base64 read, a byte", base64_read, write_base64, 0.5 },
    { "snprintf", libc_write, NULL, 0 },
    { "strtoull", libc_read, write_ids, 0 },
};

static const struct {
    double write_ns, read_ns;
} form_limits[FLUID_FORM_COUNT] = {
    [FLUID_DEC] = { 10, HALF },    [FLUID_HEX] = { 10, HALF }, [FLUID_DOTHEX] = { 8, 10 }, [FLUID_F58] = { 6, 7.5 },
    [FLUID_F58_UTF8] = { 6, 7.5 }, [FLUID_WORDS] = { 25, 50 }, [FLUID_EMOJI] = { 8, 12 },
};

static const struct {
    const char *name;
    size_t (*work) (void *bed);
    bool reads;
} ways[] = {
    { "write", fluid_write, false },
    { "read", fluid_read, true },
    { "write lines", fluid_write_lines, false },
    { "read lines", fluid_read_lines, true },
};

#define WAYS (sizeof (ways) / sizeof (ways[0]))
#define OTHERS (sizeof (others) / sizeof (others[0]))
#define LOOPS (FLUID_FORM_COUNT * WAYS + OTHERS)

struct plan {
    struct loop loop[LOOPS];
    double limit_ns[LOOPS];
    char name[LOOPS][64];
    size_t n;
};

static void add (struct plan *p, const char *name, struct loop loop, double limit_ns)
{
    snprintf (p->name[p->n], sizeof (p->name[0]), "%s", name);
    p->loop[p->n] = loop;
    p->loop[p->n].name = p->name[p->n];
    p->limit_ns[p->n++] = limit_ns;
}

static void make_plan (struct plan *p)
{
    for (int form = 0; form < FLUID_FORM_COUNT; form++)
        for (size_t i = 0; i < WAYS; i++) {
            struct loop loop = {
                .work = ways[i].work, .prepare = write_ids, .arg = form, .count = IDS, .rounds = ROUNDS
            };
            char name[64];

            snprintf (name, sizeof (name), "%s %s", fluid_form_name (form), ways[i].name);
            add (p, name, loop, ways[i].reads ? form_limits[form].read_ns : form_limits[form].write_ns);
        }
    for (size_t i = 0; i < OTHERS; i++) {
        bool bytes = others[i].work == base64_write || others[i].work == base64_read;
        struct loop loop = { .work = others[i].work, .prepare = others[i].prepare, .arg = FLUID_DEC };

        loop.count = bytes ? BYTES : IDS;
        loop.rounds = bytes ? BYTES_ROUNDS : ROUNDS;
        add (p, others[i].name, loop, others[i].limit_ns);
    }
}

static void measure_loops (struct bed *bed)
{
    struct plan *p = calloc (1, sizeof (*p));

    if (!p)
        exit (EXIT_FAILURE);
    make_plan (p);
    loops_run (p->loop, p->n, bed, TURNS);
    for (size_t i = 0; i < p->n; i++) {
        bool half = p->limit_ns[i] == HALF;
        line_print (&(struct line){
            .subject = "codecs",
            .name = p->name[i],
            .unit = "ns",
            .figures = &p->loop[i].figures,
            .limit = p->limit_ns[i],
            .bare = half ? &p->loop[p->n - 1].figures : NULL,
            .share = half ? 0.5 : 0,
            .limit_of = half ? "half of strtoull" : "goal",
            .aim = !half,
        });
    }
    for (size_t i = 0; i < p->n; i++)
        figures_fini (&p->loop[i].figures);
    free (p);
}

/* --- sorting --- */

/* fill_f makes an id from a time and random bits; sort_f sorts 'n' ids. */
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

/* Measure the milliseconds to sort SORTED ids of a day that are in random order. */
static void sorting (const char *name, size_t size, fill_f fill, sort_f sort)
{
    char *ids = malloc (SORTED * size);
    uint64_t x = UINT64_C (0x9e3779b97f4a7c15);
    struct figures f = { .warmup = 1 };

    if (!ids)
        exit (EXIT_FAILURE);
    for (int turn = -1; turn < SORT_TURNS; turn++) {
        for (size_t i = 0; i < SORTED; i++) {
            uint64_t ms = random_bits (&x) % 86400000;
            fill (ids + i * size, ms, random_bits (&x));
        }
        double start_ns = now_ns ();
        sort (ids, SORTED);
        if (turn < 0)
            continue;
        figures_add (&f, (now_ns () - start_ns) / 1e6);
        figures_end_turn (&f);
    }
    free (ids);
    line_print (&(struct line){
        .subject = "codecs",
        .name = name,
        .unit = "ms",
        .figures = &f,
        .limit = SORT_GOAL_MS,
        .limit_of = "goal",
        .aim = true,
        .size = SORTED,
        .size_of = "ids",
    });
    figures_fini (&f);
}

static void sorts (void)
{
    sorting ("flax sort", sizeof (flax_t), flax_fill, flax_order);
    sorting ("sno sort", sizeof (sno_t), sno_fill, sno_order);
    sorting ("uid sort", sizeof (struct uid), uid_fill, uid_order);
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

    measure_loops (bed);
    sorts ();
    free (bed);
    return EXIT_SUCCESS;
}
