/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* foreign.c - what is built for another broker: it has the symbol by which Flux knows its modules, and no other */
#include <stdlib.h>

int mod_main (void *handle, int argc, char **argv);

/* With a handle that is not Flux's. */
int mod_main (void *handle, int argc, char **argv)
{
    abort ();
}
