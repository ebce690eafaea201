/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* load.c - finds a module by name, and opens its file: name, arguments, shared object */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/module/private.h"
#include "libutil/errprintf.h"

/* The file of a module: 'path' itself, or NAME.so in a folder of module.path. The caller frees the result. */
static char *find_file (struct modules *ms, const char *path)
{
    const char *search = attr_get (ms->conf.attrs, "module.path", NULL);
    char *file;

    if (strchr (path, '/'))
        return access (path, R_OK) == 0 ? strdup (path) : NULL;
    while (search && *search) {
        int len = strcspn (search, ":");

        if (asprintf (&file, "%.*s/%s.so", len, search, path) < 0)
            return NULL;
        if (access (file, R_OK) == 0)
            return file;
        free (file);
        search += len + (search[len] == ':');
    }
    return errset_null (ENOENT);
}

struct module *modules_find (struct modules *ms, const char *name)
{
    struct module *m = zlistx_first (ms->list);

    while (m && strcmp (m->name, name) != 0)
        m = zlistx_next (ms->list);
    return m;
}

bool modules_has_file (struct modules *ms, const char *path)
{
    char *file = find_file (ms, path);
    bool found = file;

    free (file);
    return found;
}

bool modules_may_want (struct modules *ms, const char *attribute)
{
    char name[MODULE_MAX_NAME + 1];
    size_t len = strcspn (attribute, "./");
    struct module *m;
    char *file;
    bool found;

    if (attribute[len] != '.' || len > MODULE_MAX_NAME)
        return false;
    snprintf (name, sizeof (name), "%.*s", (int)len, attribute);
    file = find_file (ms, name);
    m = modules_find (ms, name);
    found = file && (!m || m->status == MODULE_STARTING);
    free (file);
    return found;
}

/* The name of a module: the name of its file without folder and ".so". */
static int name_of (const char *file, const char *name, char buf[MODULE_MAX_NAME + 1])
{
    const char *base = strrchr (file, '/');
    size_t len;

    if (!name)
        name = base ? base + 1 : file;
    len = strlen (name);
    if (len > 3 && strcmp (name + len - 3, ".so") == 0)
        len -= 3;
    if (len == 0 || len > MODULE_MAX_NAME || strcspn (name, ". ") < len)
        return -1;
    memcpy (buf, name, len);
    buf[len] = '\0';
    return 0;
}

bool module_is_from (const struct module *m, const char *path)
{
    struct stat own, other;

    return strcmp (m->path, path) == 0
           || (stat (m->path, &own) == 0 && stat (path, &other) == 0 && own.st_dev == other.st_dev
               && own.st_ino == other.st_ino);
}

bool module_has_name_of_file (const struct module *m)
{
    char name[MODULE_MAX_NAME + 1];

    return name_of (m->path, NULL, name) == 0 && strcmp (m->name, name) == 0;
}

/* Copy the arguments for the module, without "--thread", which is for the broker. */
static int copy_args (struct module *m, int argc, char **argv, bool *thread)
{
    if (!(m->argv = calloc (argc + 1, sizeof (m->argv[0]))))
        return -1;
    for (int i = 0; i < argc; i++) {
        if (strcmp (argv[i], "--thread") == 0)
            *thread = true;
        else if (!(m->argv[m->argc++] = strdup (argv[i])))
            return -1;
    }
    return 0;
}

/* Explain a file without idt_mod_main. Flux's broker calls mod_main () with a handle of its own, so a module with only
 * that function is not called.
 */
static int no_module (const struct module *m, idt_error_t *errp)
{
    if (dlsym (m->dso, "mod_main"))
        return errsetf (errp, EINVAL,
                        "%.100s is a module for Flux's broker, not for idtree's: it has mod_main, but no idt_mod_main "
                        "(idtree/module.h)",
                        m->path);
    return errsetf (errp, EINVAL, "%.100s is not a module: it has no idt_mod_main (idtree/module.h)", m->path);
}

static int open_dso (struct module *m, bool thread, idt_error_t *errp)
{
    if (!(m->dso = dlopen (m->path, RTLD_NOW | RTLD_LOCAL)))
        return errsetf (errp, EINVAL, "the file cannot be loaded as a module: %s", dlerror ());
    m->mod_main = (int (*) (idt_t *, int, char **))dlsym (m->dso, "idt_mod_main");
    m->def = dlsym (m->dso, "idt_module");
    if (!m->mod_main)
        return no_module (m, errp);
    m->threaded = thread || !m->def || m->def->threaded;
    m->shared = !thread && m->def && m->def->shared;
    return 0;
}

static int no_file (struct modules *ms, const char *path, idt_error_t *errp)
{
    const char *search = attr_get (ms->conf.attrs, "module.path", NULL);

    if (strchr (path, '/'))
        return errsetf (errp, ENOENT, "the broker finds no such file");
    return errsetf (errp, ENOENT, "module not found in search path: there is no %s.so in %s (module.path)", path,
                    search ? search : "?");
}

int module_open (struct module *m, const char *path, const char *name, int argc, char **argv, idt_error_t *errp)
{
    bool thread = false;

    if (!(m->path = find_file (m->ms, path)))
        return no_file (m->ms, path, errp);
    if (name_of (m->path, name, m->name) < 0)
        return errsetf (errp, EINVAL, "'%s' is not a valid name for a module", name ? name : path);
    if (modules_find (m->ms, m->name))
        return errsetf (errp, EEXIST, "a module %s is loaded already: remove it first, or give this one another name",
                        m->name);
    if (copy_args (m, argc, argv, &thread) < 0)
        return -1;
    return open_dso (m, thread, errp);
}
