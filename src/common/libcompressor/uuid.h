/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uuid.h - UUIDs as numbers
 *
 * Six of the 128 bits of a version 4 UUID never change: the version nibble and the two bits of the variant. The other
 * 122 bits are a number, the numeric form of the UUID. The ids of a session count up from the numeric form of the
 * session, so carries skip the omitted bits. Numbers do not wrap around: the id after the largest UUID is 2^122, which
 * has no UUID of its own.
 */
#ifndef COMPRESSOR_UUID_H
#define COMPRESSOR_UUID_H

#include <idtree/idcomp.h>

__extension__ typedef unsigned __int128 u128;

#define UUIDNUM_BITS 122
#define UUIDNUM_END ((u128)1 << UUIDNUM_BITS)

/* Make a numeric form of its upper and lower 64 bits. */
static inline u128 uuidnum_join (uint64_t high, uint64_t low)
{
    return (u128)high << 64 | low;
}

/* Whether 'uuid' has version 4 and the RFC 4122 variant. */
bool uuid_is_v4 (const struct idcomp_uuid *uuid);

/* The numeric form of a UUID. Version and variant are not checked. */
u128 uuidnum_from_uuid (const struct idcomp_uuid *uuid);

/* The UUID of a numeric form, modulo 2^122. */
struct idcomp_uuid uuidnum_to_uuid (u128 num);

/* Read the numeric form of a UUID from a text with a NUL. With 'lenient' the function reads the text like the original:
 * it skips hyphens at any place, reads the rest as a hexadecimal number of 1 to 32 digits, and does not check version
 * and variant. Returns 0, or -1 with errno IDCOMP_EBAD_UUID.
 */
int uuidnum_of_text (const char *text, bool lenient, u128 *num);

#endif /* COMPRESSOR_UUID_H */
