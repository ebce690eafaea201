#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t2070-job-ingest.t - invalid requests to job ingest, and job stores that cannot be used

# The test has its own mounts, which end with it, however it ends.
if test -z "$TEST_OWN_MOUNTS" && unshare -m true 2>/dev/null; then
    TEST_OWN_MOUNTS=1
    export TEST_OWN_MOUNTS
    exec unshare -m /bin/sh "$0" "$@"
fi
test_description='job ingest refuses invalid requests, and reports a store that it cannot use'
. "$(dirname "$0")/idtree-sharness.sh"
test_needs python3

client="python3 $IDTREE_SRCDIR/t/ingest_client.py"
run() { # option..., command...
    idtree start -s 1 -o log-stderr-level=0 -o ingest.require-signature=off "$@" </dev/null
}
# Change the jobs of an instance that has ended with statements of SQLite.
change() { # statements
    python3 -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])' state/ingest.sqlite "$1"
}
run_own() { # command...
    run $both -o statedir="$PWD/state" "$@"
}
both='-o broker.modules=fluid,job-ingest'

mkdir disk && init_state state || exit 1
if test -n "$TEST_OWN_MOUNTS" && mount -t tmpfs -o size=1m,mode=700 tmpfs disk 2>mount-error; then
    test_set_prereq MOUNT
    cleanup "umount -l '$PWD/disk'"
else
    say_color skip "# a small tmpfs cannot be mounted here: $(cat mount-error 2>/dev/null || echo no unshare)"
fi

test_expect_success 'a request with a value of a wrong type is refused, and has no effect' 'run $both $client types'
test_expect_success 'a client cannot confirm jobs for the consumer of another client' 'run $both $client foreign'
test_expect_success 'a request larger than any jobspec is refused before it is parsed' 'run $both $client long'
test_expect_success 'consumers receive jobs while other clients keep rank 0 busy' 'run $both $client starving'
# A sanitizer keeps freed memory.
if ! is_sanitized; then
test_expect_success 'a waiting request uses no more memory than its job' '
    run -o broker.modules=job-ingest -o ingest.timeout=1h sh -c "BROKER_PID=\$(idtree getattr broker.pid) $client memory"
'
fi
test_expect_success 'a submission that waits too long fails with the reason' '
    cat >vain.sh <<-\EOF &&
	. "$IDTREE_SRCDIR/t/wait.sh"
	tells() { # sentence
	    if idtree job submit --uri "${IDTREE_URI%0}1" -- true 2>err; then return 1; fi
	    grep "$1" err || { cat err >&2; return 1; }
	}
	idtree module remove -r 0 job-ingest &&
	wait_until "who is above is told" tells "the job may be stored later: the parent: No service matching job-ingest.batch" &&
	idtree module remove -r 1 fluid && idtree module remove -r 0 fluid &&
	wait_until "what is missing is told" tells "is not stored: cannot get ids: No service matching fluid.block"
	EOF
    idtree start -s 2 -o log-stderr-level=0 $both -o ingest.timeout=1s sh vain.sh </dev/null
'
test_expect_success 'a consumer is notified once of a job that cannot be read' '
    run_own idtree job submit -q -n 3 -- true && change "UPDATE jobs SET urgency = 99" && run_own $client damaged
'
test_expect_success MOUNT 'on a full disk rank 0 pauses between attempts to delete confirmed jobs' '
    change "UPDATE jobs SET urgency = 16; UPDATE meta SET acked = (SELECT max(id) FROM jobs)" &&
    cp state/instance state/*.sqlite disk && cat >full.sh <<-\EOF &&
	cat /dev/zero >disk/fill 2>/dev/null
	python3 "$IDTREE_SRCDIR/t/ingest_client.py" tidying &&
	idtree job stats | grep "disk is full" && rm disk/fill && . "$IDTREE_SRCDIR/t/wait.sh" &&
	wait_until "jobs are stored again" holds "! idtree job stats | grep \"disk is full\""
	EOF
    run -o broker.modules=job-ingest -o statedir="$PWD/disk" sh full.sh
'
# Rank 0 runs with the wall clock of the page: its first number of 64 bits, in microseconds.
cat >later.sh <<\END
unset LD_PRELOAD
hand_on() { idtree job watch -n "$1" >seen && idtree job ack "$(tail -n 1 seen | cut -f1)"; }
idtree job submit --key once -- true >first && idtree job submit -- true && hand_on 2 &&
printf "\000\150\304\141\010\000\000\000" | dd of="$CHAOS_PAGE" conv=notrunc 2>/dev/null && # 36,000 s
idtree job submit -- true && hand_on 1 && idtree job submit --key once -- false >second && cmp first second
END
test_expect_success 'after the clock was set forward no second job with the same key is stored' '
    init_state later && head -c 520 /dev/zero >page && env LD_PRELOAD="$IDTREE_BUILDDIR/t/chaos/.libs/host.so" \
        CHAOS_PAGE="$PWD/page" CHAOS_STATE="$PWD/later" ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0:detect_leaks=0" \
        idtree start -s 1 -o log-stderr-level=0 $both -o statedir="$PWD/later" sh later.sh </dev/null
'
cat >hung.sh <<\END
unset LD_PRELOAD
. "$IDTREE_SRCDIR/t/wait.sh"
set_disk() { printf "\\00$1" | dd of="$CHAOS_PAGE" bs=1 seek=512 conv=notrunc 2>/dev/null; }
grade() { code=0; idtree health >out || code=$?; test $code = "$1" && { test -z "$2" || grep "jobs are not stored: .*$2" out; }; }
idtree job submit -- true && set_disk 3 && { idtree job submit --timeout 3600 -- true >late & } && submitter=$! &&
wait_until "health is critical" grade 2 "hung/ingest.sqlite: the disk has not answered for 5000 ms" &&
idtree job stats --json >stats && grep "\"failing\":\"[^\"]*the disk has not answered" stats &&
idtree metrics | grep "^idtree_ingest_store_failing.* 1$" &&
idtree dmesg | grep "the disk has not answered for 5000 ms: jobs wait" >told && test $(wc -l <told) = 1 &&
set_disk 0 && wait $submitter && idtree job show "$(cat late)" >out && wait_until "health is good" grade 0 "" &&
idtree dmesg | grep "the disk answers again, after [0-9]* ms"
END
test_expect_success 'a disk that hangs makes health critical, and is reported in statistics, metrics and once in the log' '
    init_state hung && head -c 520 /dev/zero >page && env LD_PRELOAD="$IDTREE_BUILDDIR/t/chaos/.libs/host.so" \
        CHAOS_PAGE="$PWD/page" CHAOS_STATE="$PWD/hung" ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0:detect_leaks=0" \
        idtree start -s 1 -o log-stderr-level=0 $both -o ingest.timeout=1h -o statedir="$PWD/hung" sh hung.sh </dev/null
'
cat >old.sh <<\END
test_code=0; idtree job submit -- true 2>err || test_code=$?; cat err
test $test_code = 1 && grep "its epoch is more than 17.4 years ago: jobs need an instance with a later epoch" err &&
idtree dmesg | grep "all jobs are refused: .*17.4 years"
END
test_expect_success 'an instance whose ids have 64 bits refuses jobs, and reports the reason' '
    init_state old --epoch 2000-01-01T00:00:00Z && run $both -o statedir="$PWD/old" sh old.sh
'
cat >removed.sh <<\END
. "$IDTREE_SRCDIR/t/wait.sh"
refused() { if idtree job submit -- true 2>err; then return 1; fi; grep "ingest.sqlite-wal: was removed or replaced" err; }
idtree job submit -- true >kept && rm removed/ingest.sqlite-wal && refused &&
idtree job stats | grep "ingest.sqlite-wal: was removed" && idtree dmesg | grep "ingest.sqlite-wal: was removed" &&
test_code=0; idtree health >out || test_code=$?; cat out; test $test_code = 2 && grep "removed or replaced" out
END
test_expect_success 'after the log of the store was removed no job is reported as durable, and a clean shutdown keeps earlier jobs' '
    init_state removed && run $both -o statedir="$PWD/removed" sh removed.sh &&
    run $both -o statedir="$PWD/removed" sh -c "idtree job list && idtree job show \$(cat kept)"
'
test_expect_success 'each request to a store that cannot be used reports the reason' '
    echo nonsense >state/ingest.sqlite && run_own $client unusable
'
test_done
