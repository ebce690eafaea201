/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* network.c - detect file systems on which a lock of this host may not hold for other hosts, and a commit may be lost
 * in a crash
 */
#include <string.h>
#include <sys/vfs.h>

#include "libstate/statefile.h"
#include "libutil/errprintf.h"

/* From statfs (2). Numbers that are not in linux/magic.h come from the sources of the file systems. */
static const struct {
    unsigned long type;
    const char *name;
} networks[] = {
    { 0x6969, "NFS" },       { 0x0bd00bd0, "Lustre" }, { 0xff534d42, "CIFS" }, { 0xfe534d42, "SMB" },
    { 0x517b, "SMB" },       { 0x19830326, "BeeGFS" }, { 0x47504653, "GPFS" }, { 0x00c36400, "Ceph" },
    { 0x5346414f, "AFS" },   { 0x6b414653, "AFS" },    { 0x01021997, "9P" },   { 0x65735546, "FUSE" },
    { 0x7461636f, "OCFS2" }, { 0x01161970, "GFS2" },   { 0x73757245, "Coda" }, { 0x20030528, "OrangeFS" },
    { 0xaad7aaea, "PanFS" }, { 0x013111a8, "IBRIX" },
};

const char *state_network_name (unsigned long type)
{
    for (size_t i = 0; i < sizeof (networks) / sizeof (networks[0]); i++)
        if (networks[i].type == (type & 0xffffffff))
            return networks[i].name;
    return NULL;
}

int state_check_local (const char *dir, idt_error_t *errp)
{
    const char *name;
    struct statfs fs;

    if (statfs (dir, &fs) < 0)
        return errprintf (errp, "statedir %s: %s", dir, strerror (errno));
    if (!(name = state_network_name ((unsigned long)fs.f_type)))
        return 0;
    return errsetf (
        errp, STATE_REFUSED,
        "statedir %s is on %s, which other hosts may have, too: locks and commits may not hold there; use a "
        "disk of this host, or statedir.allow-network=true where only one host can ever reach it",
        dir, name);
}
