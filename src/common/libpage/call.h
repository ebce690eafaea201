/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* call.h - how a page comes from a broker to a client
 *
 * The broker listens at RUNDIR/page-RANK (SOCK_SEQPACKET), beside its local-RANK, and sends who connects one message
 * (struct call_answer): an errno (0: none), and with that its clocks and the descriptors of the page; then it hangs up.
 */
#ifndef LIBPAGE_CALL_H
#define LIBPAGE_CALL_H

#include <stdbool.h>

#include <idtree/page.h>

#include "libpage/clocks.h"

/* The descriptors of an answer: what only the broker may write, which cannot be mapped to be written; the word. */
enum { CALL_TERMS, CALL_WORD, CALL_FDS };

/* In the byte order of the host. */
struct call_answer {
    uint8_t errnum;
    struct clocks clocks;
} __attribute__ ((packed));

#define CALL_DEFAULT_URI "local:///run/idtree/local"

/* Where the broker is if nobody says it: $IDTREE_URI, else $FLUX_URI, else CALL_DEFAULT_URI.  Borrowed.  / Whether the
 * environment says it.  Here and nowhere else a client's libraries read that.
 */
const char *call_default_uri (void);
bool call_is_told (void);

/* Begin.  Returns a descriptor that becomes readable when the answer is there, or -1 with errno as for
 * idt_page_open ().
 */
int page_call (const char *uri);

/* Take the answer, and close 'fd' with it.  A page is taken where its broker reads the clocks that we read.  Does not
 * block.  NULL with errno as for idt_page_open (); EAGAIN: it is not there yet, and 'fd' is open.
 */
idt_page_t *page_answer (int fd);

#endif /* LIBPAGE_CALL_H */
