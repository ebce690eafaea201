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

/* sno_encode and sno_decode by a path that works. */
void sno_path_encode (enum sno_path path, const sno_t *id, char text[SNO_TEXT_SIZE + 1]);
int sno_path_decode (enum sno_path path, const char *text, size_t len, sno_t *id, size_t *errpos);

#pragma GCC visibility pop

#endif /* SNO_TEXT_H */
