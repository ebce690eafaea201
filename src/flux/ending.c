/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ending.c - ends the module when the broker of Flux is about to exit; writes the handover to a file that is either
 * complete or absent
 *
 * The event of a change of the broker's state has the state as a number, whose meaning depends on the version of Flux.
 * So after each change the name of the state is requested.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "flux/ending.h"
#include "libutil/errprintf.h"
#include "libutil/private_dir.h"

struct ending {
    idt_t *h;
    idt_future_t *changes;
    idt_future_t *name; /* the pending request for the name, or NULL */
    void (*over) (void *arg);
    void *arg;
};

static bool is_over (const char *state)
{
    static const char *const last[] = { "finalize", "goodbye", "unload-builtins", "exit" };

    for (size_t i = 0; i < sizeof (last) / sizeof (last[0]); i++)
        if (strcmp (state, last[i]) == 0)
            return true;
    return false;
}

static void name_cb (idt_future_t *f, void *arg)
{
    struct ending *e = arg;
    const char *state;

    e->name = NULL;
    if (idt_rpc_get_unpack (f, "{s:s}", "state", &state) == 0 && is_over (state))
        e->over (e->arg);
    idt_future_destroy (f);
}

/* Request the name of the state. A pending request may be answered with the previous state, so it is dropped. */
static void ask_name (struct ending *e)
{
    idt_future_destroy (e->name);
    e->name = idt_rpc (e->h, "state-machine.get", NULL, IDT_NODEID_ANY, 0);
    if (e->name && idt_future_then (e->name, -1, name_cb, e) == 0)
        return;
    idt_future_destroy (e->name);
    e->name = NULL;
}

static void changed_cb (idt_future_t *f, void *arg)
{
    struct ending *e = arg;

    if (idt_future_errnum (f) == 0) {
        ask_name (e);
        idt_future_reset (f);
        return;
    }
    idt_future_destroy (f);
    e->changes = NULL;
}

void ending_destroy (struct ending *e)
{
    if (!e)
        return;
    idt_future_destroy (e->changes);
    idt_future_destroy (e->name);
    free (e);
}

struct ending *ending_create (idt_t *h, void (*over) (void *arg), void *arg)
{
    struct ending *e = calloc (1, sizeof (*e));

    if (!e)
        return NULL;
    *e = (struct ending){ .h = h, .over = over, .arg = arg };
    e->changes = idt_rpc (h, "state-machine.monitor", "{}", IDT_NODEID_ANY, IDT_RPC_STREAMING);
    if (e->changes && idt_future_then (e->changes, -1, changed_cb, e) == 0)
        return e;
    ending_destroy (e);
    return NULL;
}

/* --- the handover ------------------------------------------------------------------------------------- */

int flux_handover_write (const char *path, const void *data, size_t size)
{
    unlink (path);
    int fd = open (path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return -1;
    int rc = write_all (fd, data, size), errnum = errno;
    close (fd);
    if (rc == 0)
        return 0;
    unlink (path);
    return errset (errnum);
}

static void *read_all (int fd, size_t max, size_t *size)
{
    struct stat st;
    char *data;
    size_t got = 0;

    if (fstat (fd, &st) < 0 || st.st_uid != geteuid () || st.st_size <= 0 || (size_t)st.st_size > max
        || !(data = malloc ((size_t)st.st_size)))
        return NULL;
    while (got < (size_t)st.st_size) {
        ssize_t n = read (fd, data + got, (size_t)st.st_size - got);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            free (data);
            return NULL;
        }
        got += (size_t)n;
    }
    *size = got;
    return data;
}

void *flux_handover_take (const char *path, size_t max, size_t *size)
{
    int fd = open (path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    void *data;

    if (fd < 0)
        return NULL;
    data = unlink (path) < 0 ? NULL : read_all (fd, max, size);
    close (fd);
    return data;
}
