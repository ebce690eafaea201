/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pmi_client.c - the client side of PMI-1, used by one rank
 *
 * Only one request is outstanding at a time, and its answer is one line. So the only data to read is this answer. The
 * cmd of each answer is checked. So if the server is out of step, this is reported as an error, and its answer is not
 * taken for a wrong bizcard.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libpmi/pmi_client.h"
#include "libpmi/pmi_wire.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

struct pmi_client {
    int fd;
    int rank;
    int size;
    uint64_t deadline_ms; /* 0: no deadline */
    int keylen_max;
    int vallen_max;
    char kvsname[PMI_KVSNAME_MAX];
    struct pmi_lines lines;
};

/* The time until the deadline, in the form that poll () expects. */
static int left_ms (const struct pmi_client *c)
{
    int64_t left = (int64_t)(c->deadline_ms - clock_ms (CLOCK_MONOTONIC));

    return c->deadline_ms == 0 ? -1 : left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

static int wait_for (struct pmi_client *c, short events)
{
    for (;;) {
        struct pollfd pfd = { .fd = c->fd, .events = events };
        int n = poll (&pfd, 1, left_ms (c));

        if (n > 0)
            return 0;
        if (n == 0)
            return errset (ETIMEDOUT);
        if (errno != EINTR)
            return -1;
    }
}

/* Write so that no SIGPIPE is raised if the server has closed the connection. send () fails if PMI_FD is a pipe or a
 * terminal, so write () is used for these.
 */
static ssize_t write_quietly (int fd, const char *data, size_t size)
{
    ssize_t n = send (fd, data, size, MSG_NOSIGNAL);

    return n < 0 && errno == ENOTSOCK ? write (fd, data, size) : n;
}

static int write_all (struct pmi_client *c, const char *data, size_t size)
{
    while (size > 0) {
        if (wait_for (c, POLLOUT) < 0)
            return -1;
        ssize_t n = write_quietly (c->fd, data, size);
        if (n < 0 && errno == EPIPE)
            errno = ECONNRESET;
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return -1;
        if (n > 0) {
            data += n;
            size -= n;
        }
    }
    return 0;
}

/* Read the next line, borrowed until the next call. NULL with errno set. */
static const char *read_line (struct pmi_client *c)
{
    for (;;) {
        char buf[PMI_LINE_MAX];

        if (wait_for (c, POLLIN) < 0)
            return NULL;
        ssize_t n = read (c->fd, buf, sizeof (buf));
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n < 0)
            return NULL;
        if (n == 0)
            return errset_null (ECONNRESET);
        const char *data = buf;
        size_t size = n;
        const char *line = pmi_lines_add (&c->lines, &data, &size);
        if (line && size == 0)
            return line;
        if (line || errno != EAGAIN) { /* more than one line, or a malformed line */
            return errset_null (EPROTO);
        }
    }
}

static int failed (struct pmi_client *c, int errnum, const char *what, idt_error_t *errp)
{
    return errsetf (errp, errnum, "PMI %s of rank %d of %d: %s", what, c->rank, c->size,
                    errnum == EPROTO       ? "the server's answer makes no sense"
                    : errnum == ECONNRESET ? "the launcher closed the connection"
                    : errnum == ETIMEDOUT  ? "the launcher does not answer"
                                           : strerror (errnum));
}

/* Send 'request' (a line without its newline) and return the line of the answer. The cmd of the answer must be
 * 'answer'. NULL with errno set.
 */
static const char *ask (struct pmi_client *c, const char *request, const char *answer)
{
    char out[PMI_LINE_MAX];
    int n = snprintf (out, sizeof (out), "%s\n", request);
    const char *line;

    if (n >= (int)sizeof (out))
        return errset_null (EINVAL);
    if (write_all (c, out, n) < 0 || !(line = read_line (c)))
        return NULL;
    if (!pmi_is (line, answer))
        return errset_null (EPROTO);
    return line;
}

/* The rc of an answer. If the answer has no rc (Hydra sometimes leaves it out), it is a success. */
static int result (const char *line)
{
    int rc = 0;

    return pmi_word_int (line, "rc", &rc) < 0 && errno != ENOENT ? -1 : rc;
}

static int say_hello (struct pmi_client *c, idt_error_t *errp)
{
    const char *line;
    int version;

    if (!(line = ask (c, "cmd=init pmi_version=1 pmi_subversion=1", "response_to_init")))
        return failed (c, errno, "init", errp);
    if (pmi_word_int (line, "pmi_version", &version) < 0 || version != 1 || result (line) != 0)
        return errsetf (errp, EPROTO, "PMI init of rank %d: the server does not speak version 1", c->rank);
    return 0;
}

static int ask_limits (struct pmi_client *c, idt_error_t *errp)
{
    const char *line;

    if (!(line = ask (c, "cmd=get_maxes", "maxes")))
        return failed (c, errno, "get_maxes", errp);
    if (pmi_word_int (line, "keylen_max", &c->keylen_max) < 0 || pmi_word_int (line, "vallen_max", &c->vallen_max) < 0
        || c->keylen_max < 1 || c->vallen_max < 1)
        return failed (c, EPROTO, "get_maxes", errp);
    return 0;
}

static int ask_kvsname (struct pmi_client *c, idt_error_t *errp)
{
    const char *line;

    if (!(line = ask (c, "cmd=get_my_kvsname", "my_kvsname")))
        return failed (c, errno, "get_my_kvsname", errp);
    if (pmi_word (line, "kvsname", c->kvsname, sizeof (c->kvsname)) < 0 || !pmi_key_valid (c->kvsname))
        return failed (c, EPROTO, "get_my_kvsname", errp);
    return 0;
}

static int check_key (struct pmi_client *c, const char *key, idt_error_t *errp)
{
    if (pmi_key_valid (key) && strlen (key) < (size_t)c->keylen_max)
        return 0;
    return errsetf (errp, EINVAL, "PMI key '%s' is empty, holds blanks or '=', or has %d bytes or more", key,
                    c->keylen_max);
}

static int check_value (struct pmi_client *c, const char *key, const char *value, idt_error_t *errp)
{
    if (pmi_value_valid (value) && strlen (value) < (size_t)c->vallen_max)
        return 0;
    return errsetf (errp, EINVAL, "PMI value of key '%s' holds a newline or has %d bytes or more", key, c->vallen_max);
}

void pmi_client_destroy (struct pmi_client *c)
{
    int saved_errno = errno;

    if (c) {
        close (c->fd);
        explicit_bzero (c, sizeof (*c)); /* a secret may have passed through it */
        free (c);
    }
    errno = saved_errno;
}

struct pmi_client *pmi_client_create (int fd, int rank, int size, uint64_t deadline_ms, idt_error_t *errp)
{
    struct pmi_client *c = calloc (1, sizeof (*c));

    if (!c) {
        errprintf (errp, "out of memory");
        return NULL;
    }
    c->fd = fd;
    c->rank = rank;
    c->size = size;
    c->deadline_ms = deadline_ms;
    if (fcntl (fd, F_SETFD, FD_CLOEXEC) < 0) {
        errprintf (errp, "PMI_FD %d: %s", fd, strerror (errno));
        goto error;
    }
    if (say_hello (c, errp) < 0 || ask_limits (c, errp) < 0 || ask_kvsname (c, errp) < 0)
        goto error;
    return c;
error:
    free (c);
    return NULL;
}

void pmi_client_set_deadline (struct pmi_client *c, uint64_t deadline_ms)
{
    c->deadline_ms = deadline_ms;
}

const char *pmi_client_kvsname (const struct pmi_client *c)
{
    return c->kvsname;
}

int pmi_client_fd (const struct pmi_client *c)
{
    return c->fd;
}

int pmi_client_put (struct pmi_client *c, const char *key, const char *value, idt_error_t *errp)
{
    char request[PMI_LINE_MAX];
    const char *line;

    if (check_key (c, key, errp) < 0 || check_value (c, key, value, errp) < 0)
        return -1;
    snprintf (request, sizeof (request), "cmd=put kvsname=%s key=%s value=%s", c->kvsname, key, value);
    if (!(line = ask (c, request, "put_result")))
        return failed (c, errno, "put", errp);
    if (result (line) != 0)
        return errsetf (errp, EEXIST, "PMI put of rank %d of %d: the server refused key '%s'", c->rank, c->size, key);
    return 0;
}

int pmi_client_barrier (struct pmi_client *c, idt_error_t *errp)
{
    if (!ask (c, "cmd=barrier_in", "barrier_out"))
        return errno != ETIMEDOUT
                   ? failed (c, errno, "barrier", errp)
                   : errsetf (errp, ETIMEDOUT, "rank %d of %d waited for others that did not join", c->rank, c->size);
    return 0;
}

/* If 'text' ends with 'end', remove that and return true. */
static bool cut_end (char *text, const char *end)
{
    size_t len = strlen (text), end_len = strlen (end);

    if (len < end_len || strcmp (text + len - end_len, end) != 0)
        return false;
    text[len - end_len] = '\0';
    return true;
}

/* Copy the value of an answer to get. Fails with ENOENT if the key does not exist. The value is the last word of the
 * answer and may contain blanks. But Hydra of MPICH 4.2 and newer appends a word that says whether the key exists.
 */
static int found_value (const char *line, char *buf, size_t size)
{
    char value[PMI_LINE_MAX];

    if (result (line) != 0)
        return errset (ENOENT);
    if (pmi_word (line, "value", value, sizeof (value)) < 0)
        return errset (errno == ENOENT ? EPROTO : errno);
    if (cut_end (value, " found=FALSE"))
        return errset (ENOENT);
    cut_end (value, " found=TRUE");
    if (strlen (value) >= size)
        return errset (EOVERFLOW);
    strcpy (buf, value);
    return 0;
}

int pmi_client_get (struct pmi_client *c, const char *key, char *buf, size_t size, idt_error_t *errp)
{
    char request[PMI_LINE_MAX];
    const char *line;

    if (check_key (c, key, errp) < 0)
        return -1;
    snprintf (request, sizeof (request), "cmd=get kvsname=%s key=%s", c->kvsname, key);
    if (!(line = ask (c, request, "get_result")))
        return failed (c, errno, "get", errp);
    if (found_value (line, buf, size) == 0)
        return 0;
    if (errno == ENOENT)
        return errsetf (errp, ENOENT, "PMI get of rank %d: there is no key '%s'", c->rank, key);
    return failed (c, errno, "get", errp);
}

int pmi_client_finalize (struct pmi_client *c, idt_error_t *errp)
{
    if (!ask (c, "cmd=finalize", "finalize_ack"))
        return failed (c, errno, "finalize", errp);
    return 0;
}

void pmi_client_abort (struct pmi_client *c, int exit_code)
{
    char request[40];

    write_all (c, request, (size_t)snprintf (request, sizeof (request), "cmd=abort exitcode=%d\n", exit_code));
}
