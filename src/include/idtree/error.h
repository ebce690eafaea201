/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* error.h - an error text beside errno
 *
 * Functions that can fail for reasons that errno cannot express take an optional 'idt_error_t *'. On failure it holds
 * one sentence that names the object, its value, and the limit. On success it is not changed.
 */
#ifndef IDTREE_ERROR_H
#define IDTREE_ERROR_H

typedef struct {
    char text[512];
} idt_error_t;

#endif /* IDTREE_ERROR_H */
