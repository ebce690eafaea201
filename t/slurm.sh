# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# slurm.sh - run a private Slurm for a test: several virtual nodes on this host, in a given folder
#
#     slurm_start DIR NODES   as root; exports SLURM_CONF; prints why and returns 1 if that is impossible
#     slurm_stop

slurm_servers='' slurm_nodes=''

# The ports are outside of the kernel's range of ephemeral ports. If another test uses them, Slurm does not start, and
# the next ports are tried.
slurm_conf() { # folder, nodes, first port
    cat <<END
ClusterName=idtree
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$3
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$1/munge.sock
CredType=cred/munge
StateSaveLocation=$1/state
SlurmdSpoolDir=$1/spool.%n
SlurmctldPidFile=$1/slurmctld.pid
SlurmdPidFile=$1/slurmd.%n.pid
SlurmctldLogFile=$1/slurmctld.log
SlurmdLogFile=$1/slurmd.%n.log
TmpFS=$1/tmp.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
KillWait=1
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
NodeName=n[0-$(($2 - 1))] NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=[$(($3 + 1))-$(($3 + $2))] CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
END
}

slurm_run() { # log, command...
    slurm_log=$1
    shift
    "$@" >"$slurm_log" 2>&1 </dev/null &
}

slurm_is_up() { # nodes
    ! slurm_lives || test "$(sinfo -h -t idle -o %D)" = "$1"
}

# A process that has ended stays as a zombie until the shell waits for it.
slurm_lives() {
    for slurm_pid in $slurm_nodes $slurm_servers; do
        case $(sed 's/.*) //' "/proc/$slurm_pid/stat" 2>/dev/null) in
        '' | Z*) return 1 ;;
        esac
    done
}

slurm_try() { # folder, nodes, first port
    slurm_conf "$@" >"$1/slurm.conf"
    slurm_run "$1/slurmctld.out" slurmctld -D -c -f "$1/slurm.conf"
    slurm_servers="$! $slurm_servers"
    slurm_node=0
    while test $slurm_node -lt "$2"; do
        mkdir -p "$1/spool.n$slurm_node" "$1/tmp.n$slurm_node"
        slurm_run "$1/slurmd.n$slurm_node.out" slurmd -D -N n$slurm_node -f "$1/slurm.conf"
        slurm_nodes="$slurm_nodes $!"
        slurm_node=$((slurm_node + 1))
    done
    wait_until "Slurm has $2 nodes" slurm_is_up "$2" && slurm_lives && return 0
    tail -n 3 "$1"/*.out
    slurm_stop
    return 1
}

slurm_start() { # folder, nodes
    for slurm_need in munged slurmctld slurmd srun; do
        command -v $slurm_need >/dev/null || { echo "$slurm_need is not installed"; return 1; }
    done
    test "$(id -u)" = 0 || { echo "only root can run slurmd"; return 1; }
    mkdir -p "$1/state" && chmod 755 "$1" && (umask 077 && head -c 64 /dev/urandom >"$1/munge.key") || return 1
    export SLURM_CONF="$1/slurm.conf"
    for slurm_port in 21817 22817 23817; do
        slurm_run "$1/munged.out" munged --foreground --force --key-file="$1/munge.key" --socket="$1/munge.sock" \
            --pid-file="$1/munged.pid" --log-file="$1/munged.log" --seed-file="$1/munge.seed"
        slurm_servers=$!
        wait_until "munged serves" test -S "$1/munge.sock"
        slurm_try "$1" "$2" $slurm_port && return 0
    done
    return 1
}

slurm_end() { # pid...
    for slurm_pid; do
        kill "$slurm_pid" 2>/dev/null
        wait "$slurm_pid" 2>/dev/null
    done
}

# A process of each step waits until the controller is notified of the step's end, which never happens without munged.
slurm_stop() {
    wait_until "all jobs have ended" slurm_is_idle
    slurm_end $slurm_nodes
    wait_until "all steps have ended" slurm_steps_are_gone
    slurm_end $slurm_servers
    slurm_nodes='' slurm_servers=''
}

slurm_is_idle() { ! slurm_lives || { slurm_jobs=$(squeue -h) && test -z "$slurm_jobs"; }; }
slurm_steps_are_gone() { ! ls -l /proc/[0-9]*/fd 2>/dev/null | grep -q "${SLURM_CONF%/*}/slurmd\."; }
