/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lines_test.c - functions for many ids write and read the same as those for single ids, up to the end of the space or
 * the first invalid line
 */
#include <errno.h>
#include <string.h>

#include "idtree/flax.h"
#include "idtree/fluid.h"
#include "idtree/sno.h"
#include "idtree/uid.h"
#include "test/tap.h"

#define IDS 5
#define TEXT_MAX (IDS * FLUID_TEXT_MAX)

/* A number of ids of a kind, and their texts, written one by one. */
struct list {
    union {
        fluid_t fluid[IDS];
        flax_t flax[IDS];
        sno_t sno[IDS];
        struct uid uid[IDS];
    };
    char text[TEXT_MAX];
    size_t begin[IDS + 1]; /* where each line begins, and the end of the last line */
};

struct kind {
    const char *name;
    void (*make) (struct list *list, int i, uint64_t bits);
    int (*write) (const struct list *list, int i, char *buf, size_t size);
    int (*write_lines) (const struct list *list, size_t *count, char *buf, size_t size, size_t *len);
    int (*read_lines) (struct list *list, const char *text, size_t len, size_t *count, size_t *pos);
    bool (*same) (const struct list *a, const struct list *b, int i);
};

static void fluid_make (struct list *list, int i, uint64_t bits)
{
    list->fluid[i] = bits >> i * 8;
}

static int fluid_write (const struct list *list, int i, char *buf, size_t size)
{
    return fluid_format (list->fluid[i], FLUID_F58, buf, size);
}

static int fluid_write_lines (const struct list *list, size_t *count, char *buf, size_t size, size_t *len)
{
    return fluid_format_lines (list->fluid, count, FLUID_F58, buf, size, len);
}

static int fluid_read_lines (struct list *list, const char *text, size_t len, size_t *count, size_t *pos)
{
    return fluid_parse_lines (text, len, list->fluid, count, pos);
}

static bool fluid_same (const struct list *a, const struct list *b, int i)
{
    return a->fluid[i] == b->fluid[i];
}

static void flax_make (struct list *list, int i, uint64_t bits)
{
    flax_join (&(struct flax_fields){ .ms = bits >> 30, .random = bits >> 10 }, &list->flax[i]);
}

static int flax_write (const struct list *list, int i, char *buf, size_t size)
{
    return flax_format (&list->flax[i], buf, size);
}

static int flax_write_lines (const struct list *list, size_t *count, char *buf, size_t size, size_t *len)
{
    return flax_format_lines (list->flax, count, buf, size, len);
}

static int flax_read_lines (struct list *list, const char *text, size_t len, size_t *count, size_t *pos)
{
    return flax_parse_lines (text, len, list->flax, count, pos);
}

static bool flax_same (const struct list *a, const struct list *b, int i)
{
    return flax_compare (&a->flax[i], &b->flax[i]) == 0;
}

static void sno_make (struct list *list, int i, uint64_t bits)
{
    sno_join (&(struct sno_fields){ .unit = bits >> 30, .sequence = bits & 0xffff }, &list->sno[i]);
}

static int sno_write (const struct list *list, int i, char *buf, size_t size)
{
    return sno_format (&list->sno[i], buf, size);
}

static int sno_write_lines (const struct list *list, size_t *count, char *buf, size_t size, size_t *len)
{
    return sno_format_lines (list->sno, count, buf, size, len);
}

static int sno_read_lines (struct list *list, const char *text, size_t len, size_t *count, size_t *pos)
{
    return sno_parse_lines (text, len, list->sno, count, pos);
}

static bool sno_same (const struct list *a, const struct list *b, int i)
{
    return sno_compare (&a->sno[i], &b->sno[i]) == 0;
}

/* Make local and global uids in turn, because their lengths differ. */
static void uid_make_one (struct list *list, int i, uint64_t bits)
{
    uid_make ((int64_t)(bits >> 20), bits & 0xffff, &list->uid[i]);
    if (i % 2 == 0)
        uid_globalize (&list->uid[i], &(struct uid_node){ .fingerprint = (uint32_t)i }, &list->uid[i]);
}

static int uid_write (const struct list *list, int i, char *buf, size_t size)
{
    return uid_format (&list->uid[i], NULL, buf, size);
}

static int uid_write_lines (const struct list *list, size_t *count, char *buf, size_t size, size_t *len)
{
    return uid_format_lines (list->uid, count, NULL, buf, size, len);
}

static int uid_read_lines (struct list *list, const char *text, size_t len, size_t *count, size_t *pos)
{
    return uid_parse_lines (text, len, NULL, list->uid, count, pos);
}

static bool uid_same (const struct list *a, const struct list *b, int i)
{
    return uid_compare (&a->uid[i], &b->uid[i]) == 0;
}

static const struct kind kinds[] = {
    { "fluid", fluid_make, fluid_write, fluid_write_lines, fluid_read_lines, fluid_same },
    { "flax", flax_make, flax_write, flax_write_lines, flax_read_lines, flax_same },
    { "sno", sno_make, sno_write, sno_write_lines, sno_read_lines, sno_same },
    { "uid", uid_make_one, uid_write, uid_write_lines, uid_read_lines, uid_same },
};

static void make (const struct kind *kind, struct list *list)
{
    uint64_t bits = UINT64_C (0x7a3d5c9b1f8e2046);

    memset (list, 0, sizeof (*list));
    for (int i = 0; i < IDS; i++) {
        char *line = list->text + list->begin[i];

        kind->make (list, i, bits *= UINT64_C (6364136223846793005));
        size_t n = kind->write (list, i, line, FLUID_TEXT_MAX);
        strcpy (line + n, "\n");
        list->begin[i + 1] = list->begin[i] + n + 1;
    }
}

/* Write to buffers of each size. The lines that fit with a NUL must be written, and nothing behind them. */
static bool writes (const struct kind *kind, const struct list *list)
{
    bool good = true;

    for (size_t size = 0; size <= list->begin[IDS] + 1; size++) {
        char buf[TEXT_MAX];
        size_t count = IDS, len = 77, fit = 0;

        memset (buf, 'x', sizeof (buf));
        while (fit < IDS && list->begin[fit + 1] < size)
            fit++;
        int rc = kind->write_lines (list, &count, buf, size, &len);
        good &= rc == (fit < IDS ? -1 : 0) && (rc == 0 || errno == ENOSPC);
        good &= count == fit && len == list->begin[fit] && memcmp (buf, list->text, len) == 0;
        good &= buf[size] == 'x' && (size == 0 || buf[len] == '\0');
    }
    return good;
}

/* Read into arrays of each size. The ids that fit must be read, and the position of the next line returned. */
static bool reads (const struct kind *kind, const struct list *list, size_t len)
{
    bool good = true;

    for (size_t room = 0; room <= IDS + 1; room++) {
        struct list back = { 0 };
        size_t count = room, pos = 77, want = room < IDS ? room : IDS;
        int rc = kind->read_lines (&back, list->text, len, &count, &pos);

        good &= rc == (room < IDS ? -1 : 0) && (rc == 0 || errno == ENOSPC) && count == want;
        good &= pos == (want < IDS ? list->begin[want] : len);
        for (size_t i = 0; i < want; i++)
            good &= kind->same (list, &back, i);
    }
    return good;
}

/* Replace each character, except the ends of lines, by a character that no form has. The text must be refused. */
static bool refuses (const struct kind *kind, const struct list *list)
{
    bool good = true;

    for (size_t line = 0; line < IDS; line++)
        for (size_t at = list->begin[line]; at < list->begin[line + 1] - 1; at++) {
            struct list back = *list;
            size_t count = IDS, pos = 77;

            back.text[at] = '*';
            good &= kind->read_lines (&back, back.text, list->begin[IDS], &count, &pos) < 0 && errno == EINVAL;
            good &= count == line && pos == at;
        }
    return good;
}

/* An empty line between two ids must be refused. */
static bool refuses_short (const struct kind *kind, const struct list *list)
{
    struct list back = *list;
    size_t count = IDS, pos = 77, second = list->begin[1];

    memmove (back.text + second + 1, list->text + second, list->begin[IDS] - second);
    back.text[second] = '\n';
    return kind->read_lines (&back, back.text, list->begin[IDS] + 1, &count, &pos) < 0 && count == 1 && pos == second;
}

int main (void)
{
    for (size_t i = 0; i < sizeof (kinds) / sizeof (kinds[0]); i++) {
        const struct kind *kind = &kinds[i];
        struct list list;

        make (kind, &list);
        ok (writes (kind, &list), "%s: the lines that fit into a buffer are written, for each size of the buffer",
            kind->name);
        ok (reads (kind, &list, list.begin[IDS]),
            "%s: the ids that fit into an array are read, for each size of the array", kind->name);
        ok (reads (kind, &list, list.begin[IDS] - 1), "%s: the last line needs no line break", kind->name);
        ok (refuses (kind, &list),
            "%s: a wrong character is reported with its position, and the ids before it are read", kind->name);
        ok (refuses_short (kind, &list), "%s: an empty line is refused", kind->name);
    }
    size_t count = 1, len;
    ok (fluid_format_lines (&(fluid_t){ 7 }, &count, 99, (char[99]){ 0 }, 99, &len) < 0 && errno == EINVAL
            && count == 0,
        "reading lines in an invalid form fails with EINVAL");
    count = 0;
    ok (fluid_parse_lines ("", 0, NULL, &count, NULL) == 0 && count == 0, "an empty text has no ids");
    return done_testing ();
}
