/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document.h - an id compressor in a document that the instance shares
 *
 * A document is a name under which any number of sessions, in any processes on any ranks, make UUIDs and write them as
 * small integers (idcomp.h). An open document is a session with a compressor in this process: making and converting ids
 * needs no message and never waits. While the reactor of the handle runs, the document announces new ids to rank 0.
 * Rank 0 puts the announcements of all sessions into one order, and the document finalizes the ordered ranges. The
 * module "compressor" must be loaded at rank 0.
 *
 *     idt_document_t *d = idt_document_open (h, "drawing", 5000, &error);
 *     idcomp_generate (idt_document_ids (d), &id);          use 'id' here immediately
 *     idcomp_to_op (idt_document_ids (d), id, &op);         send 'op', with idcomp_session ()
 *     idt_document_settle (d, 5000);                        'op' is now final for all sessions
 *
 * 1. An open document belongs to the thread of its handle, and keeps the reactor of the handle running.
 * 2. Ids never change, even across lost events, lost connections and restarts of brokers. Once an id is final, all
 *    other sessions know it, and it outlives this process.
 * 3. The document repeats an announcement until it appears in the order. Rank 0 orders each announcement once.
 * 4. A document survives the loss of its connection and continues to make ids. It synchronizes again when its handle
 *    reconnects (IDT_O_RECONNECT, handle.h), or after idt_document_attach () to another handle.
 * 5. A document that receives contradictory data is broken permanently: other sessions will never know its ids that are
 *    not final. Open the document again, as a new session.
 * 6. A document that is renamed continues under its new name. A document that is deleted is broken, even if another
 *    document takes its name.
 * 7. If an older copy of the document was restored at rank 0, idt_document_errnum () is ENOTRECOVERABLE, because rank 0
 *    may give final ids another meaning. The document continues by itself when the newer copy is restored at rank 0. If
 *    that will not happen, close the document.
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
#pragma GCC visibility push(default)

#define IDT_DOCUMENT_NAME_MAX 100 /* characters: A-Z a-z 0-9 . _ -, not starting with . or - */

typedef struct idt_document idt_document_t;

/* Open document 'name' as a new session; a missing document is created. Waits for each answer at most 'timeout_ms'
 * (negative: no limit). Returns a document for idt_document_close (), or NULL with errno set and a sentence in 'errp'
 * (may be NULL):
 *   EINVAL       the name is malformed
 *   ENOSYS       the module "compressor" is loaded neither at this handle's broker nor at an ancestor
 *   EPERM        this user is neither the owner of the instance nor a member of access.group
 *   ETIMEDOUT, EDQUOT (too many documents), EDEADLK (an inline module may not wait),
 *   EPROTO (an answer that is not understood), ENOMEM, or the reason why the connection was lost
 */
idt_document_t *idt_document_open (idt_t *h, const char *name, double timeout_ms, idt_error_t *errp);

/* Close the document without waiting. Other sessions will never know ids that are not final yet. Call this function
 * before idt_close (). NULL is allowed; errno is preserved.
 */
void idt_document_close (idt_document_t *d);

/* The document's compressor, which makes and converts ids. Callers must not take or finalize ranges, begin ghost
 * sessions or set the cluster size. The pointer is borrowed until the reactor runs again, because the document may then
 * replace the compressor by another object, in which all ids are the same, to load missed ranges.
 */
struct idcomp *idt_document_ids (const idt_document_t *d);

/* --- state ---------------------------------------------------------------------------------- */

const char *idt_document_name (const idt_document_t *d); /* the name may change; borrowed until the reactor runs */

/* The UUID of the document. A later document of the same name has another UUID. Borrowed. */
const char *idt_document_uuid (const idt_document_t *d);

/* The number of ranges of the document's order that are finalized here. */
int64_t idt_document_seq (const idt_document_t *d);

/* True if this session knows that all ids it has made are final. */
bool idt_document_settled (const idt_document_t *d);

/* 0: no error. EPIPE: the document is broken permanently. Other values: the last attempt to reach rank 0 failed with
 * that error and will be repeated. idt_document_error () returns the error as a sentence, or NULL if there is no error;
 * borrowed until the reactor runs.
 */
int idt_document_errnum (const idt_document_t *d);
const char *idt_document_error (const idt_document_t *d);

/* Call 'cb' from the reactor after ranges were finalized, and when idt_document_errnum () changed. 'cb' may make ids,
 * and must not close or attach documents. NULL removes the callback.
 */
typedef void (*idt_document_f) (idt_document_t *d, void *arg);
void idt_document_set_changed (idt_document_t *d, idt_document_f cb, void *arg);

/* --- waiting ---------------------------------------------------------------------------------- */

/* Run the reactor of the handle until idt_document_settled (), at most 'timeout_ms' (negative: no limit). Returns 0, or
 * -1 with errno set:
 *   ETIMEDOUT  some ids are not final yet
 *   EPIPE      the document is broken
 *   EDEADLK    called from a callback of the handle
 *   ENOTCONN   the document is attached to no handle
 *   ECONNRESET, ... the connection was lost, or the reactor was stopped with an error
 */
int idt_document_settle (idt_document_t *d, double timeout_ms);

/* As idt_document_settle (), but run the reactor until all ranges that were ordered before this call are finalized
 * here. ETIMEDOUT: some are not finalized yet.
 */
int idt_document_sync (idt_document_t *d, double timeout_ms);

/* --- another connection ----------------------------------------------------------------------- */

/* After the previous connection is lost, continue with handle 'h' of the same instance. 'h' NULL only detaches the
 * document, for instance before idt_close () of the old handle. Does not wait: while the reactor runs, the document
 * fetches missed ranges and repeats announcements that are not in the order yet. Returns 0; or -1 with errno ENOMEM,
 * EMFILE, ... (no reactor), and then the document is attached to no handle.
 */
int idt_document_attach (idt_document_t *d, idt_t *h);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* IDTREE_DOCUMENT_H */
