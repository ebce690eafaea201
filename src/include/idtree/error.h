/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* error.h - a text beside errno, for a person
 *
 * Functions that can fail for reasons that errno cannot tell take an optional 'idt_error_t *'.  On failure
 * it holds one sentence that names the object, its value, and the limit; on success it is untouched.
 */
#ifndef IDTREE_ERROR_H
#define IDTREE_ERROR_H

typedef struct {
    char text[256];
} idt_error_t;

#endif /* IDTREE_ERROR_H */
