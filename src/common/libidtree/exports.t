#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors

# exports.t - the library exports exactly the functions that the installed headers declare
builddir=${IDTREE_BUILDDIR:-.}
srcdir=${IDTREE_SRCDIR:-.}
lib=$builddir/src/common/libidtree/.libs/libidtree.so
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

nm -D --defined-only "$lib" | awk '{ print $3 }' | sed 's/@.*//' | sort >"$tmp/exported"
# Internal functions that the library's transports and the broker share (transport.h, reactor.h).
internal='idt_view_create|idt_view_pause|idt_handle_create|idt_handle_dispatch|idt_handle_set_module|idt_handle_set_max_json'
cat "$srcdir"/src/include/idtree/*.h | grep -v '^ *#' | grep -oE '\b(idt|idcomp|fluid|flax|sno|uid)_[a-z0-9_]+ \(' \
    | tr -d ' (' | sort -u >"$tmp/named"

n=0
check() { # description, lines that are wrong
    n=$((n + 1))
    if [ -z "$2" ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        echo "$2" | sed 's/^/# /'
        failed=1
    fi
}

failed=0
[ -s "$tmp/exported" ] || { echo "Bail out! no symbols in $lib"; exit 1; }
check "all exported symbols begin with idt_ or the name of a kind of id" \
    "$(grep -vE '^(idt|idcomp|fluid|flax|sno|uid)_' "$tmp/exported")"
check "each exported symbol is declared in an installed header" \
    "$(comm -23 "$tmp/exported" "$tmp/named" | grep -vxE "$internal")"
check "the symbols file of the package lists exactly the exported symbols" \
    "$(sed -n 's/^ \([^@]*\)@.*/\1/p' "$srcdir/debian/libidtree1.symbols" | sort | comm -3 - "$tmp/exported")"
check "the symbols file of libidtree-page lists exactly the symbols of the library, and the library needs only libc" \
    "$(nm -D --defined-only "$builddir/src/common/libpage/.libs/libidtree-page.so" | awk '{ print $3 }' | sed 's/@.*//' | sort >"$tmp/page"
    sed -n 's/^ \([^@]*\)@.*/\1/p' "$srcdir/debian/libidtree-page1.symbols" | sort | comm -3 - "$tmp/page"
    comm -13 "$tmp/exported" "$tmp/page"
    readelf -d "$builddir/src/common/libpage/.libs/libidtree-page.so" | grep NEEDED | grep -vE 'libc\.so|san\.so|ld-linux')"
check "each function of the installed headers is exported" \
    "$(for f in $(comm -13 "$tmp/exported" "$tmp/named" | grep -vx idt_mod_main); do # each module defines that one
        grep -qE "^(static )?(extern )?[a-z_].*[ *]$f \(" "$srcdir"/src/include/idtree/*.h && echo "$f"
    done)"
echo "1..$n"
exit $failed
