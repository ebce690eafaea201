/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* foreign.c - a module for another broker: it has the symbol by which Flux identifies its modules, and no other */
#include <stdlib.h>

__attribute__ ((visibility ("default"))) int mod_main (void *handle, int argc, char **argv);

/* Called with a handle that is not of Flux. */
int mod_main (void *handle, int argc, char **argv)
{
    abort ();
}
