/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* instance.h - which instance a broker belongs to
 *
 * Rank 0 finds it in its state folder, before it does anything; the others are told by their parent when that takes
 * them in.  It never changes: who hears of another one is on another instance's tree.
 */
#ifndef BROKER_INSTANCE_H
#define BROKER_INSTANCE_H

#include <jansson.h>

#include "broker/base/attr.h"
#include "broker/base/log.h"
#include "libstate/statefile.h"

struct instance {
    char uuid[STATE_UUID_SIZE]; /* "": not known yet */
    char name[STATE_NAME_SIZE];
    bool told;           /* by the parent, in this life */
    bool recalled;       /* from an earlier life */
    const char *own_dir; /* borrowed: the rundir that its state is in; NULL: it has a statedir, or none */
};

/* Rank 0: look at its state folder: that of the attribute statedir, which must hold the state of an instance, else
 * 'rundir', where that is made if there is none.  Defines the attributes instance.uuid and instance.name, and
 * fluid.epoch where the folder has one.  Blocks.  Returns 0, or -1 with errno set and 'errp' filled; STATE_REFUSED: the
 * folder is not what it should be.
 */
int instance_find (struct instance *in, struct attrs *attrs, const char *rundir, struct log *log, idt_error_t *errp);

/* Rank 0's good end: a file that was made in 'rundir' and that no store needed is removed. */
void instance_leave (const struct instance *in);

/* Others: what the rank remembers of an earlier life, where it has a statedir and a module remembered something there.
 * Returns 0, or -1 with errno set and 'errp' filled.
 */
int instance_recall (struct instance *in, struct attrs *attrs, uint32_t rank, struct log *log, idt_error_t *errp);

/* Others: what the parent told, and a module remembered since, was wrong. */
void instance_forget (const struct instance *in, struct attrs *attrs, uint32_t rank);

/* What a hello and its answer tell of it: '*in' (NULL, or not known yet: nothing) is added to the object 'o', which is
 * returned.
 */
json_t *instance_put_new (const struct instance *in, json_t *o);

/* Others: the parent says which it is.  Defines the attributes at the first time.  Returns 0, or -1 with errno set and
 * 'errp' filled; STATE_REFUSED: it is another one than before.
 */
int instance_learn (struct instance *in, struct attrs *attrs, const char *uuid, const char *name, idt_error_t *errp);

#endif /* BROKER_INSTANCE_H */
