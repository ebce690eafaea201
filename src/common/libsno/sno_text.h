/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sno_text.h - the ways to convert between 10 bytes and 16 characters, for sno_text.c and its test
 */
#ifndef SNO_TEXT_H
#define SNO_TEXT_H

#include "idtree/sno.h"

#pragma GCC visibility push(hidden) /* no part of libidtree.so's interface */

enum sno_path {
    SNO_PATH_SCALAR,
    SNO_PATH_SSSE3,
    SNO_PATH_AVX2,
};

#define SNO_PATH_COUNT 3

/* True when this build on this processor can take 'path'. */
bool sno_path_works (enum sno_path path);

/* sno_format and sno_parse by a path that works. */
int sno_path_format (enum sno_path path, const sno_t *id, char *buf, size_t size);
int sno_path_parse (enum sno_path path, const char *text, size_t len, sno_t *id, size_t *errpos);

#pragma GCC visibility pop

#endif /* SNO_TEXT_H */
