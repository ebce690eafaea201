/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* idtree.h - all of libidtree */
#ifndef IDTREE_IDTREE_H
#define IDTREE_IDTREE_H

#include <idtree/document.h>
#include <idtree/error.h>
#include <idtree/flax.h>
#include <idtree/fluid.h>
#include <idtree/generate.h>
#include <idtree/handle.h>
#include <idtree/idcomp.h>
#include <idtree/module.h>
#include <idtree/msg.h>
#include <idtree/reactor.h>
#include <idtree/rpc.h>
#include <idtree/sno.h>
#include <idtree/uid.h>

#endif /* IDTREE_IDTREE_H */
