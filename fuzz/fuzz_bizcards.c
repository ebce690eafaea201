/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_bizcards.c - a launcher that sends arbitrary data at boot: bizcards, keys, mappings
 *
 * The input is what boot reads from the PMI-1 connection. At the end of the input the connection is closed.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker/boot/boot.h"
#include "fuzz.h"

/* Send one line as one packet. Boot reads an answer of one line, and the next line only after its next request. */
static void fill (int fd, const uint8_t *data, size_t size)
{
    while (size > 0) {
        const uint8_t *end = memchr (data, '\n', size);
        size_t n = end ? (size_t)(end - data) + 1 : size;

        if (send (fd, data, n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
            return; /* boot never sends more requests */
        data += n;
        size -= n;
    }
}

static void check_bizcard (const struct bizcard *bizcard)
{
    must (memchr (bizcard->endpoint, '\0', sizeof (bizcard->endpoint))
          && memchr (bizcard->host, '\0', sizeof (bizcard->host)));
    must (bizcard->endpoint[0] && bizcard->host[0]);
}

static void check_family (struct boot *b, uint32_t rank)
{
    idt_error_t err;
    const char *old = boot_old_endpoint (b, rank);
    const struct bizcard *ancestors = boot_ancestors (b, rank, &err);
    struct bizcard *children = boot_children (b, rank, &err);
    char public_key[BOOT_KEY_TEXT], secret_key[BOOT_KEY_TEXT];

    must (ancestors && children && (!old || *old));
    for (uint32_t i = 0; i < topo_level (b->topo, rank); i++)
        check_bizcard (&ancestors[i]);
    for (uint32_t i = 0; i < topo_child_count (b->topo, rank); i++)
        check_bizcard (&children[i]);
    must (boot_keys (b, rank, public_key, secret_key, &err) == 0 && strlen (public_key) == 40
          && strlen (secret_key) == 40);
    free (children);
}

static void check (struct boot *b)
{
    for (uint32_t i = 0; i < b->count; i++)
        check_family (b, boot_rank (b, i));
    must (b->hosts || boot_rank (b, 0) > 0);
    if (b->hosts) {
        char *text = hostlist_text (b->hosts);

        must (text && *text);
        for (const char *p = text; *p; p++)
            must (*p > ' ' && *p <= '~');
        free (text);
    }
}

static bool tell (struct boot *b)
{
    static const char key[] = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";
    idt_error_t err;

    for (uint32_t i = 0; i < b->count; i++)
        if (boot_tell (b, boot_rank (b, i), "tcp://127.0.0.1:1", key, &err) < 0)
            return false;
    return true;
}

static void boot (int fd, uint32_t rank)
{
    const struct boot_conf conf = {
        .method = &boot_pmi, .pmi_fd = fd, .pmi_rank = rank, .size = 4, .topology = "kary:2"
    };
    idt_error_t err = { "" };
    struct boot *b = boot_create (&conf, &err);

    if (!b) {
        must (err.text[0] != '\0');
        return;
    }
    if (tell (b) && boot_exchange (b, &err) == 0)
        check (b);
    boot_ready (b);
    boot_destroy (b);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    int fd[2];

    if (size == 0)
        return 0;
    must (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) == 0);
    fill (fd[0], data + 1, size - 1);
    shutdown (fd[0], SHUT_WR);
    boot (fd[1], data[0] % 4);
    close (fd[1]); /* boot owns the other end, and may have closed it */
    close (fd[0]);
    return 0;
}
