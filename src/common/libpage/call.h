/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* call.h - how a client gets the page from its broker
 *
 * The broker listens at RUNDIR/page-RANK (SOCK_SEQPACKET), beside its local-RANK. It sends one message (struct
 * call_answer) to each process that connects: an errno, and if that is 0 its clocks and the descriptors of the page.
 * Then it closes the connection.
 */
#ifndef LIBPAGE_CALL_H
#define LIBPAGE_CALL_H

#include <stdbool.h>

#include <idtree/page.h>

#include "libpage/clocks.h"

/* The descriptors of an answer: the part that only the broker may write, which cannot be mapped for writing; and the
 * part with the word.
 */
enum { CALL_TERMS, CALL_WORD, CALL_FDS };

/* In the byte order of the host. */
struct call_answer {
    uint8_t errnum;
    struct clocks clocks;
} __attribute__ ((packed));

#define CALL_DEFAULT_URI "local:///run/idtree/local"

/* call_default_uri (): the broker's URI if the caller has none: $IDTREE_URI, else $FLUX_URI, else CALL_DEFAULT_URI.
 * Borrowed. call_is_told (): whether one of these variables is set. The client libraries read the variables only here.
 */
const char *call_default_uri (void);
bool call_is_told (void);

/* Connect to the broker. Returns a descriptor that becomes readable when the answer has arrived, or -1 with errno as
 * for idt_page_open ().
 */
int page_call (const char *uri);

/* Read the answer and close 'fd'. A page is accepted only if its broker reads the same clocks as this process. Does not
 * block. Returns NULL with errno as for idt_page_open (); with EAGAIN the answer has not arrived, and 'fd' stays open.
 */
idt_page_t *page_answer (int fd);

#endif /* LIBPAGE_CALL_H */
