/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_pmi.c - arbitrary data of brokers for the launcher over PMI
 *
 * The first byte is the number of pieces into which the rest is cut. The ranks send the pieces in turn. Each answer
 * must be one line, and must be sent to an existing rank.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "libpmi/pmi_server.h"
#include "libpmi/pmi_wire.h"

#define RANKS 3

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

static void send_cb (void *arg, int rank, const char *line)
{
    size_t len = strlen (line);

    assert (rank >= 0 && rank < RANKS);
    assert (len > 0 && len < PMI_LINE_MAX && strchr (line, '\n') == line + len - 1);
}

static int make_secret_cb (void *arg, int rank, char *buf, size_t size)
{
    snprintf (buf, size, "secret-%d", rank);
    return 0;
}

static void finalized_cb (void *arg, int rank)
{
    assert (rank >= 0 && rank < RANKS);
}

static int line_cb (void *arg, int rank, const char *line)
{
    return strncmp (line, "cmd=ours", 8) == 0 ? 0 : -1;
}

static const struct pmi_server_ops ops = { send_cb, make_secret_cb, finalized_cb, line_cb };

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    struct pmi_server *s = pmi_server_create (RANKS, "kvs", &ops, NULL);
    size_t pieces = size > 0 ? 1 + data[0] % 16 : 1, done = size > 0 ? 1 : 0;

    for (size_t i = 0; s && i < pieces; i++) {
        size_t n = (size - done) / (pieces - i);

        if (pmi_server_input (s, i % RANKS, (const char *)data + done, n, NULL) < 0)
            pmi_server_reset (s, i % RANKS);
        done += n;
    }
    pmi_server_destroy (s);
    return 0;
}
