/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rebase.h - a session that takes over the final space of a newer stored form */
#ifndef COMPRESSOR_REBASE_H
#define COMPRESSOR_REBASE_H

#include <idtree/idcomp.h>

/* Make a compressor that is the session of 'mine', with all the ids that it made, in the final space of a
 * stored form without local state of 'size' bytes.  It belongs to the caller; 'mine' stays as it is, and
 * must not be used to make ids any more.  Returns NULL with errno set:
 *   ESTALE         the form is older than 'mine', or of another order of ranges: something that is
 *                  final in 'mine' would change
 *   IDCOMP_E...    the form is damaged, or names ids of this session that it has not made
 *   ENOMEM
 */
struct idcomp *compressor_rebase (const struct idcomp *mine, const void *form, size_t size);

#endif /* COMPRESSOR_REBASE_H */
