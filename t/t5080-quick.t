#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5080-quick.t - idtree and programs that link libidtree load no library that only a broker needs
test_description='idtree loads few libraries, and runs idtree-all for the rest'
. "$(dirname "$0")/idtree-sharness.sh"
if is_sanitized; then
    skip_all='sanitizers bring libraries of their own'
    test_done
fi
test_under_idtree 2

libs=$IDTREE_BUILDDIR/src/common/libidtree/.libs
program=$IDTREE_BUILDDIR/src/cmd/.libs

# The libraries that a program had loaded, however it ended: one name a line, without versions.
loaded() { # command...
    rm -f debug.*
    env LD_LIBRARY_PATH="$libs" LD_DEBUG=files LD_DEBUG_OUTPUT="$PWD/debug" "$@" >loaded.out &&
        sed -n 's|.*calling init: .*/\([^/]*\)\.so.*|\1|p' debug.* | grep -v '^ld-linux' | sort -u >loaded
}
printf '%s\n' libc libev libidtree libjansson >expect

test_expect_success 'idtree id new loads only the libraries of libidtree' '
    loaded "$program/idtree" id new && grep "^f" loaded.out && test_cmp expect loaded
'
test_expect_success 'the other commands of idtree load only the libraries of libidtree, with and without a broker' '
    for c in "version" "id show fuZZybuNNy" "id new --scheme flax --local" "getattr size" "info" "health" "ping -c 1 0" \
        "watermark" "event pub a.b" "id new -h"; do
        loaded "$program/idtree" $c && test_cmp expect loaded || { echo "$c"; return 1; }
    done
'
test_expect_success 'a program that is linked with libidtree loads no other libraries than idtree' '
    cat >client.c <<-\EOT &&
	#include <idtree/idtree.h>
	int main (void)
	{
	    idt_t *h = idt_open (NULL, NULL);
	    fluid_t id;
	    int rc = h && idt_fluid_generate (h, 1, &id) == 0 ? 0 : 1;
	    idt_close (h);
	    return rc;
	}
	EOT
    ${CC:-cc} -I"$IDTREE_SRCDIR/src/include" -Wall -Werror -o client client.c -L"$libs" -lidtree && loaded ./client && test_cmp expect loaded
'
test_expect_success 'the check of libraries finds the libraries of idtree-all' '
    loaded "$program/idtree-all" version && grep -x libzmq loaded && grep -x libsqlite3 loaded &&
    loaded "$program/idtree" keygen -h && grep -x libzmq loaded
'
test_expect_success 'idtree-all has all commands of idtree, with the same output' '
    for f in main all; do
        sed -n "/^static const struct command/,/^}/p" "$IDTREE_SRCDIR/src/cmd/$f.c" | grep -o "&[a-z_]*_command" | sort >$f.commands || return 1
    done &&
    test -s main.commands && comm -23 main.commands all.commands >lost && test_must_be_empty lost &&
    idtree id -h >out && grep "  id new" out && idtree id new -h >one && idtree-all id new -h >two && test_cmp one two &&
    idtree-all id new && idtree-all version >two && idtree version >one && test_cmp one two
'
test_expect_success 'unknown and missing commands get the usual error messages' '
    test_expect_code 2 idtree 2>err && grep "which command" err && test_expect_code 2 idtree id 2>err && grep "idtree id: which command" err &&
    test_expect_code 2 idtree nosuch 2>err && grep "unknown command .nosuch." err && idtree -V && idtree --help >out && grep "  start " out
'
test_expect_success 'an installed idtree finds idtree-all, and idtree-all finds idtree and the broker, also below another root' '
    root=$(mktemp -d) && # libtool installs into no path with blanks
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$IDTREE_BUILDDIR" install-libLTLIBRARIES install-binPROGRAMS \
        install-pkglibexecPROGRAMS DESTDIR="$root" >log 2>&1 || { cat log; return 1; }
    bin=$(dirname "$(find "$root" -name idtree -type f)") && all=$(find "$root" -name idtree-all) && lib=$(dirname "$(find "$root" -name libidtree.so.1)") &&
    (
        LD_LIBRARY_PATH="$lib" && export LD_LIBRARY_PATH && unset IDTREE_BROKER && PATH=/usr/bin:/bin &&
        "$bin/idtree" keygen -h >out && grep "^usage: idtree keygen" out &&
        "$bin/idtree" start -o broker.modules= -s 1 -- sh -c "command -v idtree" >out && echo "$bin/idtree" >want && test_cmp want out &&
        mv "$all" all && test_expect_code 1 "$bin/idtree" keygen -h 2>err && grep "cannot run .*/idtree-all, .*: No such file" err
    ) && rm -rf "$root"
'
test_done
