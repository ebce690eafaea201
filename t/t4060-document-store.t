#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t4060-document-store.t - documents on a real disk that fills up, hangs, or is damaged

# The test has its own mounts, which end with it, however it ends.
if test -z "$TEST_OWN_MOUNTS" && unshare -m true 2>/dev/null; then
    TEST_OWN_MOUNTS=1
    export TEST_OWN_MOUNTS
    exec unshare -m /bin/sh "$0" "$@"
fi
test_description='rank 0 keeps documents on bad disks, and reports what is wrong with them'
. "$(dirname "$0")/idtree-sharness.sh"

# A request that does not reach rank 0 in time fails only after an hour.
opts='-o broker.modules=fluid,compressor -o compressor.timeout=1h -o log-stderr-level=0'

mkdir disk
if test -n "$TEST_OWN_MOUNTS" && mount -t tmpfs -o size=512k tmpfs disk 2>mount-error; then
    test_set_prereq MOUNT
    cleanup "umount -l '$PWD/disk'"
else
    say_color skip "# a small tmpfs cannot be mounted here: $(cat mount-error 2>/dev/null || echo no unshare)"
fi

cat >full.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
full='disk/compressor.sqlite: the disk is full'
fails() { # command...
    if "$@" >out 2>err; then return 1; fi
    grep "$full" err
}
once() { # name, other name: rename until that fails; print which it has
    if idtree doc rename "$1" "$2" 2>err; then once "$2" "$1"; else grep "$full" err >&2 && echo "$1"; fi
}
idtree doc new r && idtree doc open -r 1 d && idtree doc ids -r 1 -n 3 -u d >before &&
cat /dev/zero >disk/fill 2>/dev/null
is=$(once r s) && test -n "$is" && fails idtree doc delete $is && idtree doc list >list && grep "^$is " list &&
wait_until "an id cannot be final" fails idtree doc ids -r 1 d &&
fails idtree doc ids -r 1 -n 3 d && fails idtree doc new e && fails idtree doc open e &&
idtree doc ids --now -r 1 d &&
idtree doc list >list && cat list && grep "^d " list && ! grep "^e " list &&
idtree doc export d >form &&
idtree info | grep "^document store  .*disk/compressor.sqlite: the disk is full" &&
idtree dmesg | grep 'no ranges are ordered' >told && cat told && test "$(wc -l <told)" = 1 &&
rm disk/fill &&
wait_until "an id is final" idtree doc ids -r 1 d &&
idtree dmesg | grep 'documents are stored again' && idtree info | grep '^document store  *good' &&
idtree doc open d && idtree doc import copy form && idtree doc list >list && ! grep "^e " list && idtree doc new e &&
while read -r id uuid; do idtree id show --json "$id" | grep "\"uuid\":\"$uuid\"" || exit 1; done <before &&
grep "^$is " list && idtree doc delete $is && idtree doc list >list && ! grep "^[rs] " list
END
test_expect_success MOUNT 'on a full disk no document changes and all can be read; ids are made, and become final when there is space' '
    init_state disk && idtree start -s 2 $opts -o statedir="$PWD/disk" sh full.sh
'
init_state hung && head -c 520 /dev/zero >page
# The page of t/chaos/host.h sets the disk of rank 0: 3 hanging, 0 good.
cat >hung.sh <<'END'
unset LD_PRELOAD
. "$IDTREE_SRCDIR/t/wait.sh"
set_disk() { printf "\\00$1" | dd of="$CHAOS_PAGE" bs=1 seek=512 conv=notrunc 2>/dev/null; }
late='hung/compressor.sqlite: the disk has not answered for 500 ms'
fails() { # command...
    if "$@" >out 2>err; then return 1; fi
    grep "$late" err || { cat err; return 1; }
}
# A rank gives up after 1 s: on a busy machine the answer of rank 0 may come later than that.
says() { wait_until "$*" fails "$@"; }
idtree doc open d && idtree doc open -r 1 d && idtree doc ids -n 3 d && idtree doc ids -r 1 d && idtree doc new g && set_disk 3 &&
fails idtree doc rename g h && fails idtree doc delete g && fails idtree doc new e && says idtree doc ids d && says idtree doc ids -r 1 d && says idtree doc open -r 1 f &&
says idtree doc close d && idtree doc list | grep '^d ' && idtree doc export d | cat - >form && idtree doc show d && idtree doc ids --now d &&
idtree info | grep "^document store  .*$late" && set_disk 0 &&
wait_until "an id is final" idtree doc ids -r 1 d && idtree doc ids d && idtree doc close d && idtree doc list >list && grep '^d ' list && grep '^h ' list && ! grep '^g ' list &&
idtree dmesg | grep 'documents are stored again'
END
test_expect_success 'on a disk that hangs all requests for documents are answered, and the store continues when the disk does' '
    env LD_PRELOAD="$IDTREE_BUILDDIR/t/chaos/.libs/host.so" CHAOS_PAGE="$PWD/page" CHAOS_STATE="$PWD/hung" \
        ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0:detect_leaks=0" \
        idtree start -s 2 -o broker.modules=fluid,compressor -o compressor.timeout=1s -o log-stderr-level=0 \
            -o statedir="$PWD/hung" sh hung.sh </dev/null
'
test_expect_success 'damaged documents do not affect the broker and its ids' '
    rm -rf damaged && init_state damaged && idtree start $opts -o statedir="$PWD/damaged" idtree doc new d &&
    head -c 9000 /dev/zero | tr "\\0" x | dd of=damaged/compressor.sqlite bs=1 seek=100 conv=notrunc 2>/dev/null &&
    cat >damaged.sh <<-\END &&
	why="damaged/compressor.sqlite: damaged"
	idtree id new && idtree info | grep "^document store  .*$why" && idtree dmesg | grep "$why.*: there are no documents" &&
	for what in list "new e" "open d" "open -r 1 d" "export d"; do
	    if idtree doc $what >out 2>err; then exit 1; fi
	    grep "$why" err || { cat err; exit 1; }
	done &&
	rm damaged/compressor.sqlite* && idtree module remove -r 0 compressor && idtree state forget damaged compressor.sqlite && idtree module load -r 0 compressor && idtree doc new d
	END
    idtree start -s 2 $opts -o statedir="$PWD/damaged" sh damaged.sh </dev/null
'
test_expect_success 'a broker with damaged documents does not serve them, and names the file' '
    init_state state && idtree start $opts -o statedir="$PWD/state" sh -c "idtree doc open d && idtree doc ids -n 1000 d >/dev/null" &&
    for at in 0 100 4096 8192; do
        rm -rf damaged && cp -r state damaged &&
        head -c 2000 /dev/zero | tr "\\0" x | dd of=damaged/compressor.sqlite bs=1 seek=$at conv=notrunc 2>/dev/null &&
        if idtree start $opts -o statedir="$PWD/damaged" idtree doc export d >out 2>err; then
            idtree start $opts -o statedir="$PWD/state" idtree doc export d | cmp - out || return 1
        else
            cat err && grep "damaged/compressor.sqlite" err || return 1
        fi
    done
'
test_done
