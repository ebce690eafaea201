/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pool.h - memory that small messages leave to those who come after them
 *
 * A message goes back to where it came from, in whatever thread it ends: modules have threads, and so has ZeroMQ.  Who
 * finds the pool in use by another thread does not wait, but allocates, or frees.
 */
#ifndef MSG_POOL_H
#define MSG_POOL_H

#include <stddef.h>

#define MSG_POOL_BLOCK 512                 /* bytes of a message that comes from there, with all that it is */
#define MSG_POOL_BYTES ((size_t)256 << 10) /* that are kept at most */

struct msg_pool;

struct msg_pool *msg_pool_create (void); /* NULL with errno ENOMEM */

/* Its owner needs it no more: it goes with the last of its messages.  NULL is fine. */
void msg_pool_let_go (struct msg_pool *pool);

/* A block of MSG_POOL_BLOCK bytes.  NULL with errno ENOMEM. */
void *msg_pool_get (struct msg_pool *pool);
void msg_pool_put (struct msg_pool *pool, void *block);

#endif /* MSG_POOL_H */
