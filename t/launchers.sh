# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# launchers.sh - tests that hold under each launcher, also when tasks misbehave; tests of launchers source it after
# idtree-sharness.sh, and then define
#
#     launch N COMMAND...   run N tasks of COMMAND (idtree-broker or sh, with arguments); stdout has the output of all tasks
#     task                  shell text that expands to the number of the task that runs it, such as '$PMI_RANK'

PATH=$IDTREE_BUILDDIR/src/broker:$PATH
TMPDIR=/tmp/idtree-launchers.$$
mkdir "$TMPDIR" && export TMPDIR
cleanup "rm -rf '$TMPDIR'"

# True if brokers can find each other by PMIx.
has_pmix() { ! PMIX_NAMESPACE=none PMIX_RANK=0 idtree-broker true 2>&1 </dev/null | grep -q "built without PMIx"; }

# Like launch, but some tasks misbehave: $2 is a line of shell that each task runs, and that makes some tasks misbehave
# by their number $task. The other tasks are brokers of an instance that would make the file "started". They wait for
# each other for $3 seconds. This must be short if the timeout is what ends them, otherwise long enough for a busy host.
# The messages of each task are in err.TASK, because launchers drop output that arrives late. Brokers that are killed
# leave their folders, which are removed.
launch_broken() { # N, line, seconds (60)
    rm -f started err.*
    cat >broken.sh <<END
task=${task:?}
exec 2>err.\$task
$2
exec idtree-broker -t kary:2 -o broker.join-timeout=${3:-60} touch started
END
    launch "$1" sh broken.sh >out 2>launcher.err
    broken_rc=$?
    rm -rf "${TMPDIR:?}"/*
    test $broken_rc -ne 0 && test $broken_rc -ne 124 && test ! -e started && cat err.* >/dev/null ||
        { echo "exit status $broken_rc"; tail -n 3 out launcher.err err.*; return 1; }
}

# True if a task has printed this line.
said() { grep -h "$1" err.* out launcher.err || { tail -n 3 err.* launcher.err; return 1; }; }

# True if a task reports the reason for which it must give up. On a busy host a second may pass before any task can do
# so, and another timeout then ends the tasks.
gives_up() { # line, text
    for seconds in 1 10 100; do
        launch_broken 4 "$1" $seconds || return 1
        said "$2" && return 0
    done
    return 1
}

test_launcher() { # prerequisite, name
    test_expect_success "$1" "$2: four brokers form one tree, and rank 0 runs the command once" '
        launch 4 idtree-broker idtree getattr size >out && test "$(cat out)" = 4 && test_nothing_in "$TMPDIR"
    '
    test_expect_success "$1" "$2: all brokers join, and each makes ids" '
        launch 4 idtree-broker -t kary:1 sh -c "for r in 3 2 1 0; do idtree id new -r \$r -n 100; done" >out &&
        test "$(sort -u out | wc -l)" = 400
    '
    test_expect_success "$1" "$2: a broker that the command starts is not a task of the launcher" '
        launch 2 idtree-broker sh -c "idtree-broker idtree getattr size; idtree start -s 3 idtree getattr size" >out &&
        test "$(echo $(cat out))" = "1 3"
    '
    test_expect_success "$1" "$2: a task with --standalone is an instance of its own" '
        launch 2 idtree-broker --standalone idtree getattr size >out && test "$(echo $(cat out))" = "1 1"
    '
    test_expect_success "$1" "$2: if the command fails the launcher fails" '
        ! launch 3 idtree-broker sh -c "exit 7" && rm -rf "$TMPDIR"/*
    '
    test_expect_success "$1" "$2: if a task ends before it is a broker, the other brokers end" '
        launch_broken 4 "test \$task != 3 || exit 0" 1
    '
    test_expect_success "$1" "$2: if a task is killed before it is a broker, the other brokers end" '
        launch_broken 4 "test \$task != 0 || kill -9 \$\$" 1
    '
    for n in 0 3; do
        test_expect_success "$1" "$2: if task $n never announces itself, the other brokers end with a message" '
            gives_up "test \$task != '$n' || exec sleep 1000" "others that did not join"
        '
    done
    test_expect_success "$1" "$2: if one task has no connection to the others, it ends with a message" '
        gives_up "test \$task != 2 || unset PMI_FD PMIX_NAMESPACE" "gave this one no way to the others"
    '
    test_expect_success "$1" "$2: if one task has another topology, it is reported" '
        launch_broken 4 "test \$task != 1 || exec idtree-broker -t kary:3" &&
        said "all must have the same"
    '
}
