/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uuid_text.h - the ways to convert between 16 bytes and 36 characters, for uuid_text.c and its
 * test
 */
#ifndef COMPRESSOR_UUID_TEXT_H
#define COMPRESSOR_UUID_TEXT_H

#include <idtree/idcomp.h>

enum uuid_path {
    UUID_PATH_SCALAR,
    UUID_PATH_SSSE3,
};

#define UUID_PATH_COUNT 2

/* True when this build on this processor can take 'path'. */
bool uuid_path_works (enum uuid_path path);

/* Read 36 characters by a path that works: true if hyphens are where they belong and all others are
 * hex digits in either case, else '*uuid' is what it was or something else.  Version and variant
 * are not looked at.
 */
bool uuid_path_read (enum uuid_path path, const char *text, struct idcomp_uuid *uuid);

/* idcomp_uuid_format by a path that works. */
void uuid_path_write (enum uuid_path path, const struct idcomp_uuid *uuid,
                      char text[IDCOMP_UUID_TEXT]);

#endif /* COMPRESSOR_UUID_TEXT_H */
