/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* refuse.c - run a program whose system calls are partly refused, as by old kernels and seccomp profiles
 *
 *     refuse ENOSYS|EPERM CALL... -- COMMAND [ARG]...
 *
 * CALL is one of the names below. "newer" stands for all system calls that were added after 2018 (Linux 5.1 and later):
 * their numbers are 424 and higher, and the same on all processors.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_NEWER 424
#define CALLS_MAX 8
#define LENGTH_MAX (2 * CALLS_MAX + 2)

static const struct {
    const char *name;
    unsigned number;
    bool newer; /* refuse this number and all higher ones */
} calls[] = {
    { "newer", FIRST_NEWER, true }, { "pidfd_open", 434, false },
    { "clone3", 435, false },       { "memfd_create", SYS_memfd_create, false },
#ifdef SYS_chown
    { "chown", SYS_chown, false },
#else
    { "chown", SYS_fchownat, false },
#endif
};

struct program {
    struct sock_filter code[LENGTH_MAX];
    unsigned short length;
};

static void add (struct program *p, unsigned code, unsigned k, unsigned char yes, unsigned char no)
{
    p->code[p->length++] = (struct sock_filter){ (unsigned short)code, yes, no, k };
}

static bool add_call (struct program *p, const char *name, unsigned errnum)
{
    for (size_t i = 0; i < sizeof (calls) / sizeof (calls[0]); i++) {
        if (strcmp (calls[i].name, name) != 0)
            continue;
        add (p, BPF_JMP | BPF_K | (calls[i].newer ? BPF_JGE : BPF_JEQ), calls[i].number, 0, 1);
        add (p, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | errnum, 0, 0);
        return true;
    }
    return false;
}

int main (int argc, char **argv)
{
    struct program p = { .length = 0 };
    unsigned errnum = argc > 1 && !strcmp (argv[1], "ENOSYS") ? ENOSYS : EPERM;
    int i = 2;

    add (&p, BPF_LD | BPF_W | BPF_ABS, offsetof (struct seccomp_data, nr), 0, 0);
    for (; i < argc && i < CALLS_MAX && strcmp (argv[i], "--") != 0; i++)
        if (!add_call (&p, argv[i], errnum)) {
            fprintf (stderr, "refuse: %s is not a known system call\n", argv[i]);
            return 125;
        }
    if (i + 1 >= argc) {
        fprintf (stderr, "Usage: refuse ENOSYS|EPERM CALL... -- COMMAND [ARG]...\n");
        return 125;
    }
    add (&p, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    struct sock_fprog filter = { .len = p.length, .filter = p.code };
    if (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0) {
        perror ("refuse: no seccomp here");
        return 125;
    }
    execvp (argv[i + 1], argv + i + 1);
    perror (argv[i + 1]);
    return 127;
}
