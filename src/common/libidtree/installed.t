#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors

# installed.t - a C or C++ program builds against the installed library with the flags of pkg-config
builddir=${IDTREE_BUILDDIR:-.}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
lib=$builddir/src/common/libidtree/.libs/libidtree.so

skip() {
    echo "1..0 # SKIP $1"
    exit 0
}
command -v pkg-config >/dev/null || skip "no pkg-config"
nm -D --undefined-only "$lib" | grep -qE '__(asan|tsan|ubsan)_' && skip "built with a sanitizer"

n=0
failed=0
check() { # description, command...
    n=$((n + 1))
    what=$1
    shift
    if "$@" >"$tmp/out" 2>&1; then
        echo "ok $n - $what"
    else
        echo "not ok $n - $what"
        sed 's/^/# /' "$tmp/out"
        failed=1
    fi
}

unset MAKEFLAGS MFLAGS MAKELEVEL
check "make install supports DESTDIR" "${MAKE:-make}" -C "$builddir" DESTDIR="$tmp/root" \
    install-libLTLIBRARIES install-idtincludeHEADERS install-nodist_pkgconfigDATA
pc=$(find "$tmp/root" -name idtree.pc)
export PKG_CONFIG_PATH="${pc%/*}" PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1
prefix=$tmp/root$(pkg-config --variable=prefix idtree)
flags=$(pkg-config --define-variable=prefix="$prefix" --cflags --libs idtree)

cat >"$tmp/client.c" <<'EOF'
#include <idtree/idtree.h>
#include <stdio.h>
#include <string.h>

int main (void)
{
    idt_error_t error;
    idt_t *h = idt_open ("local:///nosuch/socket", &error);
    json_t *o = json_object ();
    fluid_t id;
    flax_t flax;
    sno_t sno;
    struct uid uid;
    struct idcomp_uuid uuid;

    json_decref (o);
    if (h || fluid_parse ("fuZZybuNNy", 10, &id, NULL) < 0
        || flax_parse ("0RdKJcxqVBiAiQr0", FLAX_TEXT_LEN, &flax, NULL) < 0
        || sno_parse ("brpk4q72xwf2m63l", SNO_TEXT_LEN, &sno, NULL) < 0
        || uid_parse (".5.tXVEf8n4vPN.0", UID_GLOBAL_TEXT_LEN, NULL, &uid, NULL) < 0
        || idcomp_uuid_parse ("403f1e16-5265-4074-8507-417d99a05ee9", IDCOMP_UUID_TEXT_LEN, &uuid, NULL) < 0)
        return 1;
    return strstr (error.text, "/nosuch/socket") ? 0 : 1;
}
EOF
cp "$tmp/client.c" "$tmp/client.cc"
# shellcheck disable=SC2086 # flags are words
check "a C program builds with pkg-config's flags" \
    ${CC:-cc} -Wall -Wextra -Werror -pedantic -std=c11 -o "$tmp/client" "$tmp/client.c" $flags
check "a C program that was built with pkg-config's flags runs" env LD_LIBRARY_PATH="${pc%/*}/.." "$tmp/client"
if command -v c++ >/dev/null; then
    # shellcheck disable=SC2086
    check "a C++ program builds with pkg-config's flags" c++ -Wall -Wextra -Werror -o "$tmp/client++" "$tmp/client.cc" $flags
fi
# Each header can be included alone.
for h in error msg reactor handle rpc module fluid flax sno uid idcomp generate document; do
    echo "#include <idtree/$h.h>" >"$tmp/$h.c"
    cp "$tmp/$h.c" "$tmp/$h.cc"
    # shellcheck disable=SC2086
    check "idtree/$h.h can be included alone" ${CC:-cc} -Wall -Wextra -Werror -fsyntax-only "$tmp/$h.c" $flags
    command -v c++ >/dev/null || continue
    # shellcheck disable=SC2086
    check "idtree/$h.h can be included alone in C++" c++ -Wall -Wextra -Werror -fsyntax-only "$tmp/$h.cc" $flags
done
echo "1..$n"
exit $failed
