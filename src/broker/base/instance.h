/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* instance.h - the instance that a broker belongs to
 *
 * Rank 0 reads its instance from PostgreSQL (root.store), from the statedir, or without both from its rundir, before
 * other brokers can connect.
 * Another rank receives the instance from its parent when the parent accepts it. The instance of a rank never changes:
 * if a rank receives another instance, it has joined the tree of another instance.
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
    bool told;           /* the parent has sent the identity since the start */
    bool recalled;       /* the identity was read from the record of an earlier life */
    const char *own_dir; /* borrowed: the rundir, if it has the state; NULL: a statedir has it, or there is no state */
};

/* Rank 0: read the state. The state is in the database that the attribute root.store names, or in the folder that the
 * attribute statedir names, which must already hold the state of an instance. Without these attributes the state is in
 * 'rundir', where a missing state is made. Defines the
 * attributes instance.uuid and instance.name, and fluid.epoch if the state has an epoch. Blocks. Returns 0, or -1 with
 * errno set and 'errp' filled; STATE_REFUSED: the folder or the database cannot be used.
 */
int instance_find (struct instance *in, struct attrs *attrs, const char *rundir, struct log *log, idt_error_t *errp);

/* Rank 0, at a normal end: if the state was made in 'rundir', and no module has a store there, remove the state. */
void instance_leave (const struct instance *in);

/* Other ranks: if the rank has a statedir, and a module of an earlier life has written a record there, read this
 * record. A record that cannot be used is logged.
 */
void instance_recall (struct instance *in, struct attrs *attrs, uint32_t rank, struct log *log);

/* Other ranks: remove the record that was written in this life, because the parent belonged to the wrong instance. If
 * instance_recall () has read a record of an earlier life, the record stays.
 */
void instance_forget (const struct instance *in, struct attrs *attrs, uint32_t rank);

/* Add the identity of '*in' to 'o', the object of a hello or of the answer to a hello. Does nothing if 'in' is NULL or
 * the identity is not known yet. Returns 'o'.
 */
json_t *instance_put_new (const struct instance *in, json_t *o);

/* Other ranks: take the identity that the parent sent. The first call defines the attributes. Returns 0, or -1 with
 * errno set and 'errp' filled; STATE_REFUSED: the identity differs from the known one.
 */
int instance_learn (struct instance *in, struct attrs *attrs, const char *uuid, const char *name, idt_error_t *errp);

#endif /* BROKER_INSTANCE_H */
