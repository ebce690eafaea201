/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pool.h - blocks of memory that small messages reuse
 *
 * A message returns its block to its pool, in any thread: modules have threads, and so has ZeroMQ. A thread that finds
 * the pool in use by another thread does not wait, but calls malloc () or free ().
 */
#ifndef MSG_POOL_H
#define MSG_POOL_H

#include <stddef.h>

#define MSG_POOL_BLOCK 512                 /* bytes of a block: the message with its contents */
#define MSG_POOL_BYTES ((size_t)256 << 10) /* maximum of unused bytes that a pool keeps */

struct msg_pool;

struct msg_pool *msg_pool_create (void); /* NULL with errno ENOMEM */

/* The owner no longer needs the pool. It is freed together with the last of its messages. NULL is allowed. */
void msg_pool_let_go (struct msg_pool *pool);

/* A block of MSG_POOL_BLOCK bytes.  NULL with errno ENOMEM. */
void *msg_pool_get (struct msg_pool *pool);
void msg_pool_put (struct msg_pool *pool, void *block);

#endif /* MSG_POOL_H */
