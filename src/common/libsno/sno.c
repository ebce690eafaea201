/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sno.c - the layout of an id, and time, order, ranges and stored forms
 *
 * Invariant: bytes 0-4 are the time block (unit and tick), bytes 5-9 the payload (meta, partition, sequence), both big
 * endian, so memcmp () is the order of the ids.
 */
#include <errno.h>
#include <string.h>

#include "idtree/sno.h"
#include "libsort/radix.h"
#include "libutil/be.h"
#include "libutil/errprintf.h"

static const sno_t zero_id;

struct sno_fields sno_split (const sno_t *id)
{
    uint64_t time = get_be (id->bytes, 5);
    return (struct sno_fields){
        .unit = time >> 1,
        .tick = time & 1,
        .meta = id->bytes[5],
        .partition = (uint32_t)get_be (id->bytes + 6, 2),
        .sequence = (uint32_t)get_be (id->bytes + 8, 2),
    };
}

int sno_join (const struct sno_fields *f, sno_t *id)
{
    if (f->unit > SNO_UNIT_MAX)
        return errset (EOVERFLOW);
    if (f->tick > 1 || f->meta > SNO_META_MAX || f->partition > SNO_PARTITION_MAX || f->sequence > SNO_SEQUENCE_MAX)
        return errset (EINVAL);
    put_be (id->bytes, 5, f->unit << 1 | f->tick);
    id->bytes[5] = (uint8_t)f->meta;
    put_be (id->bytes + 6, 2, f->partition);
    put_be (id->bytes + 8, 2, f->sequence);
    return 0;
}

int64_t sno_unix_ns (const sno_t *id)
{
    return (int64_t)sno_split (id).unit * SNO_UNIT_NS + SNO_EPOCH_NS;
}

int sno_unit_at (int64_t unix_ns, uint64_t *unit)
{
    if (unix_ns < SNO_EPOCH_NS || (uint64_t)(unix_ns - SNO_EPOCH_NS) / SNO_UNIT_NS > SNO_UNIT_MAX)
        return errset (EOVERFLOW);
    *unit = (uint64_t)(unix_ns - SNO_EPOCH_NS) / SNO_UNIT_NS;
    return 0;
}

bool sno_is_zero (const sno_t *id)
{
    return !memcmp (id, &zero_id, sizeof (*id));
}

int sno_compare (const sno_t *a, const sno_t *b)
{
    int order = memcmp (a, b, sizeof (*a));
    return (order > 0) - (order < 0);
}

static inline uint64_t key_cb (const void *id, int word)
{
    const sno_t *sno = id;
    return word == 0 ? get_be (sno->bytes, 8) : get_be (sno->bytes + 8, 2);
}

static void sort_cb (void *ids, size_t count)
{
    radix_sort (ids, count, sizeof (sno_t), key_cb, sort_cb);
}

void sno_sort (sno_t *ids, size_t count)
{
    sort_cb (ids, count);
}

int sno_range (int64_t from_ns, int64_t to_ns, sno_t *lower, sno_t *upper)
{
    uint64_t from, to;

    if (sno_unit_at (from_ns, &from) < 0 || sno_unit_at (to_ns, &to) < 0)
        return -1;
    if (from_ns > to_ns)
        return errset (EINVAL);
    *lower = *upper = zero_id;
    put_be (lower->bytes, 5, from << 1);
    put_be (upper->bytes, 5, to << 1);
    return 0;
}

int sno_from_bytes (const void *bytes, size_t len, sno_t *id)
{
    if (len != SNO_SIZE)
        return errset (EMSGSIZE);
    memcpy (id, bytes, SNO_SIZE);
    return 0;
}

int sno_json_format (const sno_t *id, char *buf, size_t size)
{
    int len = sno_is_zero (id) ? 4 : SNO_TEXT_LEN + 2;

    if (size < (size_t)len + 1)
        return errset (ENOSPC);
    if (len == 4)
        memcpy (buf, "null", 4);
    else {
        sno_format (id, buf + 1, size - 1);
        buf[0] = buf[SNO_TEXT_LEN + 1] = '"';
    }
    buf[len] = '\0';
    return len;
}

int sno_json_parse (const char *token, size_t len, sno_t *id, size_t *errpos)
{
    size_t pos;

    if (len == 4 && !memcmp (token, "null", 4)) {
        *id = zero_id;
        return 0;
    }
    if (len != SNO_TEXT_LEN + 2)
        return errset_at (EMSGSIZE, len < SNO_TEXT_LEN + 2 ? len : SNO_TEXT_LEN + 2, errpos);
    if (token[0] != '"')
        return errset_at (EINVAL, 0, errpos);
    sno_t read;
    if (sno_parse (token + 1, SNO_TEXT_LEN, &read, &pos) < 0)
        return errset_at (errno, pos + 1, errpos);
    if (token[SNO_TEXT_LEN + 1] != '"')
        return errset_at (EINVAL, SNO_TEXT_LEN + 1, errpos);
    *id = read;
    return 0;
}

int sno_from_sql (enum sno_sql type, const void *data, size_t len, sno_t *id)
{
    if (type == SNO_SQL_OTHER)
        return errset (ENOTSUP);
    *id = zero_id;
    if (type == SNO_SQL_NULL || len == 0)
        return 0;
    if (type == SNO_SQL_BYTES)
        return sno_from_bytes (data, len, id);
    return sno_parse (data, len, id, NULL);
}

void sno_partitions_init (struct sno_partitions *partitions, uint64_t unit)
{
    partitions->seed = (uint32_t)((unit ^ unit >> 32) & SNO_PARTITION_MAX);
    __atomic_store_n (&partitions->dealt, 0, __ATOMIC_RELAXED);
}

int sno_partitions_deal (struct sno_partitions *partitions, uint16_t *partition)
{
    uint32_t n = __atomic_load_n (&partitions->dealt, __ATOMIC_RELAXED);
    do {
        if (n > SNO_PARTITION_MAX)
            return errset (ENOSPC);
    } while (!__atomic_compare_exchange_n (&partitions->dealt, &n, n + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    *partition = (uint16_t)(partitions->seed + n);
    return 0;
}
