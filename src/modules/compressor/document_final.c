/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document_final.c - requests for final ids, which are answered when the range with these ids is ordered */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libcompressor/space.h"
#include "modules/compressor/document_private.h"

struct document_final {
    TAILQ_ENTRY (document_final) link;
    const idt_msg_t *msg;
    int64_t last; /* waits until this many ids of the session are final */
    uint64_t deadline_ms;
    struct idcomp_run runs[2];
    int nruns;
};

static void drop_final (struct document *doc, struct document_final *final)
{
    TAILQ_REMOVE (&doc->finals, final, link);
    doc->nfinals--;
    idt_msg_unref (final->msg);
    free (final);
}

void document_fail_finals (struct document *doc, uint64_t now_ms, int errnum, const char *text)
{
    struct document_final *final;

    while ((final = TAILQ_FIRST (&doc->finals)) && final->deadline_ms <= now_ms) {
        service_respond_error (doc->service, final->msg, errnum, text);
        drop_final (doc, final);
    }
}

void document_forget_finals (struct document *doc, const idt_msg_t *disconnect)
{
    struct document_final *final, *next;

    for (final = TAILQ_FIRST (&doc->finals); final; final = next) {
        next = TAILQ_NEXT (final, link);
        if (module_same_client (final->msg, disconnect))
            drop_final (doc, final);
    }
}

/* --- answers -------------------------------------------------------------------------------------------- */

/* Append the final ids of the local ids id, id - 1, ... to 'list'. Final ids rise by one, or by more where a new
 * cluster begins. So the final ids are consecutive if and only if the last one is the first one plus count - 1;
 * otherwise the two halves are appended.
 */
static int append_final (const struct idcomp *c, struct idruns *list, int64_t id, int64_t count)
{
    int64_t first, last;

    if (idcomp_to_op (c, id, &first) < 0 || idcomp_to_op (c, id - (count - 1), &last) < 0)
        return -1;
    if (last - first == count - 1)
        return idruns_append (list, first, count);
    int64_t half = count / 2;
    return append_final (c, list, id, half) < 0 || append_final (c, list, id - half, count - half) < 0 ? -1 : 0;
}

static void answer_final (struct document *doc, const struct document_final *final)
{
    const struct idcomp *c = replica_ids (doc->session.replica);
    struct idruns list = { 0 };
    int rc = 0;

    for (int i = 0; rc == 0 && i < final->nruns; i++)
        rc = final->runs[i].first >= 0 ? idruns_append (&list, final->runs[i].first, final->runs[i].count)
                                       : append_final (c, &list, final->runs[i].first, final->runs[i].count);
    if (rc < 0)
        service_respond_error (doc->service, final->msg, errno, NULL);
    else
        module_respond_object (doc->service->h, final->msg, methods_pack_ids (c, list.v, list.n));
    idruns_fini (&list);
}

void document_answer_finals (struct document *doc)
{
    int64_t finalized = idcomp_stats (replica_ids (doc->session.replica)).finalized;
    struct document_final *final;

    while ((final = TAILQ_FIRST (&doc->finals)) && final->last <= finalized) {
        answer_final (doc, final);
        drop_final (doc, final);
    }
}

void document_await_final (struct document *doc, const idt_msg_t *msg, const struct idcomp_run *runs, int nruns)
{
    struct document_final *final = doc->nfinals < doc->service->options.max_waiting ? calloc (1, sizeof (*final))
                                                                                    : NULL;

    if (!final) {
        service_respond_error (doc->service, msg, EAGAIN,
                               "compressor.max-waiting requests wait already: try again later");
        return;
    }
    *final = (struct document_final){ .msg = idt_msg_ref (msg),
                                      .nruns = nruns,
                                      .last = idcomp_stats (replica_ids (doc->session.replica)).generated,
                                      .deadline_ms = compressor_now_ms () + doc->service->options.timeout_ms };
    memcpy (final->runs, runs, (size_t)nruns * sizeof (runs[0]));
    TAILQ_INSERT_TAIL (&doc->finals, final, link);
    doc->nfinals++;
    service_arm (doc->service);
}
