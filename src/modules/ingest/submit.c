/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* submit.c - a submission: what it says, whether it is good, its answer */
#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "modules/ingest/service.h"

#define URGENCY_MAX 31
#define URGENCY_DEFAULT 16
#define NONCE_HASH 32 /* bytes of the key that a nonce makes */

/* Bytes of a request: as many times those of a jobspec, and what is beside it. */
#define REQUEST_FACTOR 4
#define REQUEST_BESIDE 65536

static void refuse (struct service *sv, const idt_msg_t *msg, int errnum, const char *text)
{
    sv->refused++;
    module_respond_error (sv->h, msg, errnum, text);
}

/* --- what it says ------------------------------------------------------------------------------------------- */

static int get_urgency (const json_t *o, uint8_t *urgency, idt_error_t *errp)
{
    const json_t *v = json_object_get (o, "urgency");
    json_int_t n = v ? json_integer_value (v) : URGENCY_DEFAULT;

    if ((v && !json_is_integer (v)) || n < 0 || n > URGENCY_MAX)
        return errsetf (errp, EINVAL, "urgency: must be an integer from 0 to %d", URGENCY_MAX);
    *urgency = (uint8_t)n;
    return 0;
}

static int get_flags (const json_t *o, uint32_t *flags, idt_error_t *errp)
{
    const json_t *v = json_object_get (o, "flags");
    json_int_t n = json_integer_value (v);

    if ((v && !json_is_integer (v)) || n < 0 || n > INT32_MAX)
        return errsetf (errp, EINVAL, "flags: must be an integer from 0 to %d", INT32_MAX);
    *flags = (uint32_t)n;
    return 0;
}

/* A key or a nonce; '*text' NULL: it is not there. */
static int get_name (const json_t *o, const char *name, const char **text, size_t *size, idt_error_t *errp)
{
    const json_t *v = json_object_get (o, name);

    *text = json_string_value (v);
    *size = json_string_length (v);
    if (v && (!*text || *size < 1 || *size > JOBWIRE_KEY_MAX))
        return errsetf (errp, EINVAL, "%s: must be a string of 1 to %d bytes", name, JOBWIRE_KEY_MAX);
    return 0;
}

/* A nonce makes a key of its own and J.  Keys of the two kinds cannot be the same: text has no byte 0. */
static int get_key (struct check *c, idt_error_t *errp)
{
    const char *key, *nonce;
    size_t key_size, nonce_size;
    crypto_generichash_state state;

    if (get_name (c->o, "key", &key, &key_size, errp) < 0 || get_name (c->o, "nonce", &nonce, &nonce_size, errp) < 0)
        return -1;
    if (key && nonce)
        return errsetf (errp, EINVAL, "key and nonce: one of them, not both");
    if (key) {
        memcpy (c->key, key, key_size);
        c->key_size = (uint8_t)key_size;
    }
    else if (nonce) {
        crypto_generichash_init (&state, (const uint8_t *)nonce, nonce_size < 16 ? 0 : nonce_size, NONCE_HASH);
        crypto_generichash_update (&state, (const uint8_t *)nonce, nonce_size);
        crypto_generichash_update (&state, (const uint8_t *)(c->j ? c->j : c->spec), c->j ? c->j_size : c->spec_size);
        c->key[0] = '\0';
        crypto_generichash_final (&state, (uint8_t *)c->key + 1, NONCE_HASH);
        c->key_size = NONCE_HASH + 1;
    }
    return 0;
}

/* A plain jobspec is a text or an object. */
static int get_plain (struct check *c, const struct options *o, idt_error_t *errp)
{
    const json_t *v = json_object_get (c->o, "jobspec");

    if (!v)
        return errsetf (errp, EPROTO, "J: is missing");
    if (o->require_signature)
        return errsetf (errp, EINVAL, "jobspec: is taken where ingest.require-signature is off: send it wrapped, as J");
    if (!json_is_string (v) && !json_is_object (v))
        return errsetf (errp, EINVAL, "jobspec: must be an object, or a string that has one");
    c->spec = json_is_string (v) ? strdup (json_string_value (v)) : json_dumps (v, JSON_COMPACT);
    c->spec_size = c->spec ? strlen (c->spec) : 0;
    return c->spec ? 0 : errsetf (errp, ENOMEM, "out of memory");
}

static int get_job (struct check *c, const struct options *o, idt_error_t *errp)
{
    const json_t *v = json_object_get (c->o, "J");

    c->j = json_string_value (v);
    c->j_size = json_string_length (v);
    if (v && !c->j)
        return errsetf (errp, EINVAL, "J: must be a string");
    return c->j ? 0 : get_plain (c, o, errp);
}

static int check_user (const struct service *sv, const idt_msg_t *msg, idt_error_t *errp)
{
    struct idt_cred cred = idt_msg_cred (msg);

    if ((cred.rolemask & IDT_ROLE_OWNER) || sv->options.allow_guests)
        return 0;
    return errsetf (errp, EPERM, "user %" PRIu32 " may not submit jobs here: ingest.allow-guests is off", cred.userid);
}

/* Before it is parsed: base64 takes a third more, escapes may, and what nobody reads takes memory all the same. */
static int check_size (const struct service *sv, const idt_msg_t *msg, idt_error_t *errp)
{
    uint64_t max = REQUEST_FACTOR * (uint64_t)sv->options.max_jobspec + REQUEST_BESIDE;
    const void *data;
    size_t size;

    if (idt_msg_payload (msg, &data, &size) < 0 || size <= max)
        return 0;
    return errsetf (errp, EMSGSIZE,
                    "a request of %zu bytes: the limit is %" PRIu64 ", for ingest.max-jobspec is %" PRIu32, size, max,
                    sv->options.max_jobspec);
}

/* What waits is the head of the request alone: whom to answer. */
static struct check *check_create (const idt_msg_t *msg, idt_error_t *errp)
{
    struct check *c = calloc (1, sizeof (*c));

    if (!c || !(c->msg = idt_msg_copy (msg, false))) {
        free (c);
        errset (ENOMEM);
        errprintf (errp, "out of memory");
        return NULL;
    }
    return c;
}

static struct check *read_request (struct service *sv, const idt_msg_t *msg, idt_error_t *errp)
{
    struct check *c = check_size (sv, msg, errp) < 0 ? NULL : check_create (msg, errp);

    if (!c)
        return NULL;
    c->userid = idt_msg_cred (msg).userid;
    c->max = sv->options.max_jobspec;
    if ((c->o = idt_msg_json (msg, errp)) && check_user (sv, msg, errp) == 0
        && get_urgency (c->o, &c->urgency, errp) == 0 && get_flags (c->o, &c->flags, errp) == 0
        && get_job (c, &sv->options, errp) == 0 && get_key (c, errp) == 0)
        return c;
    check_destroy (c);
    return NULL;
}

void submit_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct service *sv = arg;
    idt_error_t error = { "" };
    struct check *c = read_request (sv, msg, &error);

    sv->submitted++;
    if (c)
        checks_add (sv->checks, c);
    else
        refuse (sv, msg, errno, error.text);
}

/* --- what becomes of it ---------------------------------------------------------------------------------------- */

void submit_checked (struct service *sv, struct check *c, int errnum, const idt_error_t *error)
{
    struct job job = { .userid = c->userid,
                       .flags = c->flags,
                       .urgency = c->urgency,
                       .key = c->key,
                       .key_size = c->key_size,
                       .spec_size = (uint32_t)c->spec_size };
    char *spec = c->spec;
    idt_error_t full = { "" };

    if (errnum) {
        refuse (sv, c->msg, errnum, error->text);
        return;
    }
    c->spec = NULL;
    if (entry_add (sv->entry, service_now_ms (), &job, spec, (void *)c->msg, &full) < 0)
        refuse (sv, c->msg, errno, full.text);
    else
        idt_msg_ref (c->msg); /* the entry's cookie */
    service_wake (sv);
}

void submit_reply (void *arg, void *cookie, uint64_t id, int errnum, const char *text)
{
    struct service *sv = arg;
    const idt_msg_t *msg = cookie;
    char answer[FLUID_TEXT_MAX + 64], f58[FLUID_TEXT_MAX];

    if (errnum)
        refuse (sv, msg, errnum, text);
    else {
        fluid_format (id, FLUID_F58, f58, sizeof (f58));
        snprintf (answer, sizeof (answer), "{\"id\":%" PRIu64 ",\"fluid\":\"%s\"%s}", id, f58,
                  text ? ",\"same\":true" : "");
        module_respond (sv->h, msg, answer);
    }
    idt_msg_unref (msg);
}
