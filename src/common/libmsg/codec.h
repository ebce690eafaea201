/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* codec.h - parts of messages, shared by the encodings of libmsg (protocol.md section 2.3) */
#ifndef MSG_CODEC_H
#define MSG_CODEC_H

#include <string.h>

#include "libmsg/message.h"

static inline uint32_t be32_get (const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline void be32_put (uint8_t *p, uint32_t n)
{
    p[0] = n >> 24;
    p[1] = n >> 16;
    p[2] = n >> 8;
    p[3] = n;
}

/* Bytes of a part with 'size' bytes of content, including its size field. */
static inline size_t msg_part_size (size_t size)
{
    return (size < 255 ? 1 : 5) + size;
}

/* Write a part of 'size' bytes (at most UINT32_MAX) to 'p'. Returns the address after it. */
uint8_t *msg_part_put (uint8_t *p, const void *data, size_t size);

/* Write the 20 bytes of the header to 'p'. */
void msg_header_put (const struct idt_msg *msg, uint8_t *p);

/* Write a whole message, idt_msg_encode_size () bytes, to 'p'. Returns the address after it. */
uint8_t *msg_put (uint8_t *p, const struct idt_msg *msg);

/* The same in pieces: all bytes before the payload; and the MSG_HEADER_PART_SIZE bytes after it. */
uint8_t *msg_put_head (uint8_t *p, const struct idt_msg *msg);
uint8_t *msg_put_tail (uint8_t *p, const struct idt_msg *msg);

/* Write a slice of what msg_put () writes: 'size' bytes from byte 'from' on, which must exist. */
void msg_put_slice (uint8_t *p, const struct idt_msg *msg, size_t from, size_t size);

/* Make the message of the parts that were written to msg_bytes (), 'size' bytes in all. Returns NULL on success, else a
 * constant text that describes the error; then only idt_msg_unref () may be called on the message.
 */
const char *msg_parse (struct idt_msg *msg, size_t size);

/* As idt_msg_decode (), with memory of 'pool' (may be NULL). On EPROTO '*why' ('why' may be NULL) is a constant text
 * that describes the error.
 */
idt_msg_t *msg_decode (struct msg_pool *pool, const void *buf, size_t size, const char **why);

/* Return a message that the caller may change (steals the reference): the message itself if the caller has its only
 * reference, else a copy. NULL with errno ENOMEM.
 */
idt_msg_t *msg_own (const idt_msg_t *msg);

#endif /* MSG_CODEC_H */
