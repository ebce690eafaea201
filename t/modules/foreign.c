/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* foreign.c - a module for another broker: its only symbol is the one by which Flux identifies its modules */
#include <stdlib.h>

__attribute__ ((visibility ("default"))) int mod_main (void *handle, int argc, char **argv);

/* Flux's broker would call this with a handle of Flux. */
int mod_main (void *handle, int argc, char **argv)
{
    abort ();
}
