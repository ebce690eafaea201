/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* page_client.h - a client's page: how the client gets it from its broker
 *
 * The broker listens at RUNDIR/page-RANK (SOCK_SEQPACKET), beside its local-RANK. To each process that connects, the
 * broker sends one message (struct call_answer). It contains an errno. If the errno is 0, it also contains the broker's
 * clocks and the descriptors of the page. Then the broker closes the connection.
 */
#ifndef LIBPAGE_PAGE_CLIENT_H
#define LIBPAGE_PAGE_CLIENT_H

#include "libpage/page.h"
#include "libutil/clock.h"

/* The page of a client; its members are for libpage and tests. */
struct idt_page {
    struct page *page;  /* the part with the word */
    struct page *terms; /* the part that only the broker writes */
    uint32_t generator; /* this and the rest are copies: another process may overwrite the page */
    int64_t epoch_ms;
    char instance[40];
};

/* --- whether two processes read the same clocks ----------------------------------------------------
 *
 * The times in a page are of CLOCK_BOOTTIME and CLOCK_MONOTONIC. Each time namespace (time_namespaces (7)) has its own
 * two clocks, which may differ by seconds or years between namespaces. CLOCK_REALTIME is the same in all namespaces. So
 * two processes compare the differences between CLOCK_REALTIME and their own two clocks. These differences change only
 * when the wall clock is set.
 */

#define CLOCKS_TOGETHER_US 500 /* a reading of all three clocks that takes longer is not used */
#define CLOCKS_TRIES 20

/* CLOCK_REALTIME minus each of the two clocks. */
struct clocks {
    int64_t boot_us;
    int64_t monotonic_us;
};

/* Read the three clocks. Returns false if each of CLOCKS_TRIES readings was interrupted for too long. */
static inline bool clocks_look (struct clocks *c)
{
    for (int i = 0; i < CLOCKS_TRIES; i++) {
        uint64_t real_us = clock_us (CLOCK_REALTIME), boot_us = clock_us (CLOCK_BOOTTIME);
        uint64_t monotonic_us = clock_us (CLOCK_MONOTONIC), took_us = clock_us (CLOCK_REALTIME) - real_us;

        *c = (struct clocks){ (int64_t)(real_us - boot_us), (int64_t)(real_us - monotonic_us) };
        if (took_us < CLOCKS_TOGETHER_US) /* if the wall clock was set back meanwhile, 'took_us' is huge */
            return true;
    }
    return false;
}

/* --- request and answer ---------------------------------------------------------------------------- */

/* The descriptors of an answer: CALL_TERMS is the part that only the broker may write, which a client cannot map for
 * writing. CALL_WORD is the part with the word.
 */
enum { CALL_TERMS, CALL_WORD, CALL_FDS };

/* An answer. Its numbers are in the byte order of the host. */
struct call_answer {
    uint8_t errnum;
    struct clocks clocks;
} __attribute__ ((packed));

#define CALL_DEFAULT_URI "local:///run/idtree/local"

/* call_default_uri (): the URI of the broker if the caller names none: $IDTREE_URI, else $FLUX_URI, else
 * CALL_DEFAULT_URI. Borrowed. call_is_told (): whether one of these variables is set. The client libraries read the
 * variables only in these two functions.
 */
const char *call_default_uri (void);
bool call_is_told (void);

/* Connect to the broker. Returns a descriptor that becomes readable when the answer has arrived, or -1 with errno as
 * for idt_page_open ().
 */
int page_call (const char *uri);

/* Read the answer and close 'fd'. A page is accepted only if its broker reads the same clocks as this process. Does not
 * block. Returns NULL with errno as for idt_page_open (). With EAGAIN the answer has not arrived yet, and 'fd' stays
 * open.
 */
idt_page_t *page_answer (int fd);

#endif /* LIBPAGE_PAGE_CLIENT_H */
