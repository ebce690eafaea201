/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* instance.h - the instance that a broker belongs to
 *
 * Rank 0 reads it from its statedir, or else from its rundir, before other brokers can connect. Other ranks receive it
 * from their parent when the parent accepts them. It never changes: a rank that receives another one has joined the
 * tree of another instance.
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
    bool told;           /* received from the parent since the start */
    bool recalled;       /* read from the record of an earlier life */
    const char *own_dir; /* borrowed: the rundir with its state; NULL: it has a statedir, or no state */
};

/* Rank 0: read the state. The folder is the attribute statedir, which must hold the state of an instance, or else
 * 'rundir', where a missing state is made. Defines the attributes instance.uuid and instance.name, and fluid.epoch if
 * the folder has one. Blocks. Returns 0, or -1 with errno set and 'errp' filled; STATE_REFUSED: the folder cannot be
 * used.
 */
int instance_find (struct instance *in, struct attrs *attrs, const char *rundir, struct log *log, idt_error_t *errp);

/* Rank 0, at a normal end: remove a state that was made in 'rundir' and that no store needs. */
void instance_leave (const struct instance *in);

/* Other ranks: read the record of an earlier life, if the rank has a statedir and a module has written one. A record
 * that cannot be used is logged.
 */
void instance_recall (struct instance *in, struct attrs *attrs, uint32_t rank, struct log *log);

/* Other ranks: remove the record that was written in this life, because the parent belonged to the wrong instance. A
 * record of an earlier life, which instance_recall () has read, stays.
 */
void instance_forget (const struct instance *in, struct attrs *attrs, uint32_t rank);

/* Add the identity of '*in' to the object 'o' of a hello or its answer (NULL, or not known yet: nothing). Returns 'o'.
 */
json_t *instance_put_new (const struct instance *in, json_t *o);

/* Other ranks: take the identity that the parent sent. The first call defines the attributes. Returns 0, or -1 with
 * errno set and 'errp' filled; STATE_REFUSED: it differs from the known one.
 */
int instance_learn (struct instance *in, struct attrs *attrs, const char *uuid, const char *name, idt_error_t *errp);

#endif /* BROKER_INSTANCE_H */
