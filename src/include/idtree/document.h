/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document.h - a compressor of one's own in a document that the instance shares
 *
 * A document is a name under which any number of sessions, in any processes on any ranks, make UUIDs and
 * write them as small integers (idcomp.h).  An open document is a session with a compressor in this
 * process: making and converting ids costs no message and never waits.  While the reactor of the handle
 * runs, what was made is announced to rank 0, which puts the announcements of all sessions into one
 * order; what it ordered is finalized here.  The module "compressor" must be loaded at rank 0.
 *
 *     idt_document_t *d = idt_document_open (h, "drawing", 5000, &error);
 *     idcomp_generate (idt_document_ids (d), &id);          use 'id' here at once
 *     idcomp_to_op (idt_document_ids (d), id, &op);         send 'op', with idcomp_session ()
 *     idt_document_settle (d, 5000);                        'op' is final for all from now on
 *
 * 1. An open document belongs to the thread of its handle, and keeps the reactor of the handle running.
 * 2. Ids that were made stay what they are, also over lost events, lost connections and restarts of
 *    brokers.  They are known to others, and outlive this process, once they are final.
 * 3. Announcements are repeated until they are seen in the order, and ordered once.
 * 4. When a connection is lost the document is there all the same and makes ids.  It goes on when its handle has another
 *    (IDT_O_RECONNECT, handle.h), or after idt_document_attach () to another handle.
 * 5. A document that was told what can't be is broken, for good: it makes no ids that others will know.
 *    Open it again, which is a new session.
 * 6. One that is renamed goes on under its new name.  One that is deleted is broken, whatever has its name now.
 * 7. Where an older copy of the document was put in place at rank 0, idt_document_errnum () is ENOTRECOVERABLE: what is final
 *    here may come to mean something else there.  It goes on by itself when the newer copy is back; else close it.
 */
#ifndef IDTREE_DOCUMENT_H
#define IDTREE_DOCUMENT_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/handle.h>
#include <idtree/idcomp.h>

#ifdef __cplusplus
extern "C" {
#endif

#define IDT_DOCUMENT_NAME_MAX 100 /* characters: A-Z a-z 0-9 . _ -, not . or - at the beginning */

typedef struct idt_document idt_document_t;

/* Open document 'name', which is made if there is none, as a new session.  Waits for the answers at most
 * 'timeout_ms' each (negative: for ever).  Returns a document for idt_document_close (), or NULL with errno
 * set and a sentence in 'errp' (may be NULL):
 *   EINVAL       the name is malformed
 *   ENOSYS       the module "compressor" is loaded neither here nor above
 *   ETIMEDOUT, EPERM (not the owner), EDQUOT (too many documents), EDEADLK (an inline module may not wait),
 *   EPROTO (an answer that is not understood), ENOMEM, or why the connection was lost
 */
idt_document_t *idt_document_open (idt_t *h, const char *name, double timeout_ms, idt_error_t *errp);

/* Close it without waiting: ids that are not settled are never known to others.  Before idt_close ().
 * NULL is fine; keeps errno.
 */
void idt_document_close (idt_document_t *d);

/* Its compressor, to make and convert ids with; functions that take or finalize ranges, begin ghost
 * sessions or set the cluster size are not for users.  Borrowed until the reactor runs again: what was
 * missed may be loaded into another object then, in which all ids are what they were.
 */
struct idcomp *idt_document_ids (const idt_document_t *d);

/* --- what goes on --------------------------------------------------------------------------- */

const char *
idt_document_name (const idt_document_t *d); /* its name, which may change; borrowed until the reactor runs */

/* The UUID of the document: one of the same name that is made anew has another.  Borrowed. */
const char *idt_document_uuid (const idt_document_t *d);

/* How many ranges of the document's order are finalized here. */
int64_t idt_document_seq (const idt_document_t *d);

/* True if all ids that were made are final, as seen here. */
bool idt_document_settled (const idt_document_t *d);

/* 0: nothing is wrong; EPIPE: it is broken, for good; any other: the last try to reach rank 0 failed so, and
 * will be repeated.  The second tells it as a sentence, or NULL; borrowed until the reactor runs.
 */
int idt_document_errnum (const idt_document_t *d);
const char *idt_document_error (const idt_document_t *d);

/* Call 'cb' from the reactor each time that ranges were finalized, and when idt_document_errnum () changed.
 * It may make ids; it must not close or attach documents.  NULL: nobody.
 */
typedef void (*idt_document_f) (idt_document_t *d, void *arg);
void idt_document_set_changed (idt_document_t *d, idt_document_f cb, void *arg);

/* --- waiting ---------------------------------------------------------------------------------- */

/* Run the reactor of the handle until idt_document_settled (), at most 'timeout_ms' (negative: for ever).
 * Returns 0, or -1 with errno set:
 *   ETIMEDOUT  not yet
 *   EPIPE      it is broken
 *   EDEADLK    called from a callback of the handle
 *   ENOTCONN   it is attached to no handle
 *   ECONNRESET, ... the connection was lost, or the reactor was stopped with an error
 */
int idt_document_settle (idt_document_t *d, double timeout_ms);

/* The same, until all that was ordered before this call is finalized here. */
int idt_document_sync (idt_document_t *d, double timeout_ms);

/* --- another connection ----------------------------------------------------------------------- */

/* Go on with handle 'h' of the same instance, when the connection of the one before is lost; NULL: with none,
 * for instance before idt_close () of that one.  Does not wait: what was missed is fetched, and what was not
 * seen in the order is announced again, while the reactor runs.  Returns 0, or -1 with errno ENOMEM, EMFILE, ...
 * (no reactor), and the document attached to no handle.
 */
int idt_document_attach (idt_document_t *d, idt_t *h);

#ifdef __cplusplus
}
#endif

#endif /* IDTREE_DOCUMENT_H */
