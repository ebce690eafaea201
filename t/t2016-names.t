#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t2016-names.t - folders and hosts whose names have characters that addresses and lists of idtree use
test_description='an instance runs whatever the names of its folders and its host are'
. "$(dirname "$0")/idtree-sharness.sh"

PATH=$IDTREE_BUILDDIR/src/broker:$PATH
top=/tmp/idtree-names.$$
mkdir "$top" && cleanup "rm -rf '$top'"
command -v mpiexec.hydra >/dev/null && test_set_prereq HYDRA
unshare --uts true 2>/dev/null && command -v python3 >/dev/null && test_set_prereq UTS

names='a,b|a b|a=b|a;b|a%2Cb|a?rank=1|a?b|a#b|a[1]|a*|é'
with_each() { # command, with the name in $name
    IFS='|'
    for name in $names; do
        unset IFS
        eval "$1" || { echo "with $name"; return 1; }
        IFS='|'
    done
    unset IFS
}
test_expect_success 'brokers accept any name for the folder of their sockets' '
    with_each "idtree start -s 3 --dir \"$top/\$name\" idtree id new -r 2 -n 2 &&
        mkdir -m 700 \"$top/\$name\" && TMPDIR=\"$top/\$name\" idtree start -s 4 --per-process 2 idtree id new -r 3 &&
        test_nothing_in \"$top/\$name\" && rmdir \"$top/\$name\""
'
cat >by-page <<\EOF
#!/bin/sh
. "$IDTREE_SRCDIR/t/wait.sh"
counts() { idtree metrics -r 0 | grep -q '^idtree_fluid_ids_total{origin="page"} 1000$'; }
"$LOAD" make made.$$ 1000 1 && wait_until "ids of the page are counted" counts
EOF
chmod +x by-page
test_expect_success 'processes make ids from the page in a folder with any name' '
    export LOAD="$IDTREE_BUILDDIR/t/pageload" && with_each "idtree start --dir \"$top/\$name\" ./by-page"
'
test_expect_success 'brokers accept any name for the statedir' '
    with_each "idtree init --statedir \"$top/\$name\" && idtree start -s 2 -o statedir=\"$top/\$name\" idtree id new -r 1 &&
        idtree state check \"$top/\$name\" && rm -rf \"$top/\$name\""
'
test_expect_success HYDRA 'brokers of a parallel launcher accept any name for their folder' '
    with_each "mkdir -m 700 \"$top/\$name\" && TMPDIR=\"$top/\$name\" mpiexec.hydra -n 3 idtree-broker idtree id new -r 2 </dev/null &&
        test_nothing_in \"$top/\$name\" && rmdir \"$top/\$name\""
'
test_expect_success 'a folder whose name is not UTF-8 is refused with a message' '
    mkdir -m 700 "$top/$(printf "caf\351")" && test_must_fail idtree start --dir "$top/$(printf "caf\351")" true 2>err &&
    grep "not UTF-8" err
'
cat >host.py <<\EOF
import os, socket, sys
socket.sethostname(os.fsencode(sys.argv[1]))
os.execvp(sys.argv[2], sys.argv[2:])
EOF
host() { unshare --uts python3 host.py "$@" </dev/null; }
long=$(printf "%064d" 0 | tr 0 h) # the longest that Linux has
test_expect_success UTS 'each rank of a host returns the name of the host, with special characters encoded' '
    for both in "Büro-PC=B%C3%BCro-PC" "my host=my%20host" "a,b=a%2Cb" "a[1-3]=a%5B1-3%5D" "a%20b=a%2520b" "=localhost" \
        "(none)=(none)" "a;b=a;b" "-x=-x" "$long=$long"; do
        host "${both%%=*}" idtree start -s 3 sh -c "idtree getattr -r 2 hostname && idtree id new -r 2" >out &&
        test "$(head -n 1 out)" = "${both#*=}" || { echo "$both"; cat out; return 1; }
    done
'
test_expect_success HYDRA,UTS 'brokers that a launcher starts find each other on a host with any name' '
    for name in "Büro-PC" "a,b" "a%b"; do
        host "$name" mpiexec.hydra -n 3 idtree-broker idtree getattr size >out && test "$(cat out)" = 3 || { cat out; return 1; }
    done
'
test_done
