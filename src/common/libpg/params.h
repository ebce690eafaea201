/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* params.h - the parameters of a statement: numbers, texts, bytes, and arrays of them
 *
 * Values are borrowed until the statement has ended, except numbers and the content of arrays. Memory that is short is
 * noted, and pg_run () then fails with ENOMEM; so the functions return nothing.
 */
#ifndef PG_PARAMS_H
#define PG_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PG_PARAMS_MAX 16

/* The types of PostgreSQL, by their fixed numbers. */
enum pg_type { PG_BOOL = 16, PG_BYTEA = 17, PG_INT8 = 20, PG_TEXT = 25 };

struct pg_params {
    int count;
    const char *value[PG_PARAMS_MAX];
    int size[PG_PARAMS_MAX];
    int binary[PG_PARAMS_MAX];
    unsigned type[PG_PARAMS_MAX];
    char number[PG_PARAMS_MAX][24];
    bool failed; /* memory was short, or there were too many parameters, or one of 2 GiB or more */
};

void pg_put_int (struct pg_params *p, int64_t value);
void pg_put_text (struct pg_params *p, const char *text); /* NULL: the SQL value NULL */
void pg_put_bytes (struct pg_params *p, const void *bytes, size_t size);

/* An array of one dimension. */
struct pg_array {
    char *data;
    size_t size, capacity;
    uint32_t count;
    enum pg_type type;
    bool failed;
};

void pg_array_init (struct pg_array *a, enum pg_type type);
void pg_array_int (struct pg_array *a, int64_t value); /* of PG_INT8 or PG_BOOL */
void pg_array_bytes (struct pg_array *a, const void *bytes, size_t size);
void pg_array_null (struct pg_array *a);
void pg_array_fini (struct pg_array *a);

/* The array is borrowed, and must not change until the statement has ended. */
void pg_put_array (struct pg_params *p, struct pg_array *a);

#endif /* PG_PARAMS_H */
