#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t4090-end-of-time.t - the 40 bits of time end, on a real disk, with crashes and restarts on both sides of the end
test_description='at the end of time no more ids are made, and nothing is damaged'
. "$(dirname "$0")/idtree-sharness.sh"

# The epoch of an instance whose time ends in $1 seconds.
epoch_of() { date -u -d "@$(($(date +%s) - 1099511627 + $1))" +%Y-%m-%dT%H:%M:%SZ; }
run() { # statedir, epoch, script
    init_state "$1" --epoch "$2" && idtree start -s 3 -o statedir="$PWD/$1" -o log-stderr-level=3 sh "$3" </dev/null
}
cat >ids.sh <<'END'
idtree id new -r 0 --to dec && idtree id new -r 2 >&2
END
cat >over.sh <<'END'
for rank in 0 2; do
    ! idtree id new -r $rank 2>refusal && grep "40 bits of time" refusal || { cat refusal; exit 1; }
done
test "$(idtree info | awk '$1 == "fluid" && $2 == "store" { print $3 }')" = good && idtree watermark
END
cat >crash.sh <<'END'
idtree id new -r 0 --to dec && kill -9 $(idtree getattr broker.pid)
END

past=$(epoch_of -5) far=$(epoch_of 86400)
in_order() { cat "$@" && test "$(cat "$@" | wc -l)" -ge 2 && cat "$@" | sort -n -c; }
cat >id.sh <<'END'
idtree id new -r 0 --to dec
END
test_expect_success 'a crash and a restart a day before the end of time have no effect' '
    run day $far crash.sh >first && run day $far ids.sh >next && run day $far id.sh >last &&
    in_order first next last
'
test_expect_success 'less than two leases before the end of time ids are made, and continue after a clean restart' '
    near=$(epoch_of 90) && run clean $near ids.sh >first && run clean $near id.sh >next && in_order first next
'
test_expect_success 'after a crash less than two leases before the end of time, requests fail with the reason' '
    near=$(epoch_of 90) && run crash $near crash.sh && run crash $near over.sh
'
# idtree init refuses such an epoch, so the state is that of a rundir, which idtree init did not make.
run() { # rundir, epoch, script
    mkdir -p -m 700 "$1" && idtree start -s 3 --dir "$PWD/$1" -o fluid.epoch="$2" -o log-stderr-level=3 sh "$3" </dev/null
}
test_expect_success 'after the end of time each request for ids is refused, on each rank and after a restart' '
    run after $past over.sh && run after $past over.sh
'
test_done
