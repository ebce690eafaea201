/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rebase.h - a session loads the final space of a newer stored form */
#ifndef COMPRESSOR_REBASE_H
#define COMPRESSOR_REBASE_H

#include <idtree/idcomp.h>

/* Make a compressor that continues the session of 'mine', with all ids that it made, in the final space of a stored
 * form without local state of 'size' bytes. The caller owns it. 'mine' is unchanged, and must not make further ids.
 * Returns NULL with errno set:
 *   ESTALE         the form is older than 'mine', or has another order of ranges: ids that are
 *                  final in 'mine' would change
 *   IDCOMP_E...    the form is damaged, or has ids of this session that the session has not made
 *   ENOMEM
 */
struct idcomp *compressor_rebase (const struct idcomp *mine, const void *form, size_t size);

#endif /* COMPRESSOR_REBASE_H */
