# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# hosts.sh - hosts for a configured instance: network namespaces on one bridge, each with a name (node0, node1, ...), an
# address, a folder, and the command line of a unit
#
# Before a test sources this file, it must source wait.sh, change to an empty folder $T that only its user can read, and
# set N (the number of ranks) and SPARES (the number of additional hosts). $T/rank.RANK contains the host of a rank.
# $T/out.HOST and $T/err.HOST contain the output of a host's broker.

bridge=idt$$

# Print why no hosts can be made; print nothing if they can.
hosts_lack() {
    if test "$(id -u)" != 0 || ! command -v ip >/dev/null || ! ip netns add "$(ns try)" 2>/dev/null; then
        echo "only root can make network namespaces here"
        return
    fi
    ip netns del "$(ns try)"
}

ns() { echo "idtree-$$-$1"; }
all_hosts() { seq 0 $((N + SPARES - 1)); }
all_ranks() { seq 0 $((N - 1)); }

# Each rank is on the host with its number. Each host has a disk; the disk of host 0 has the state of rank 0.
hosts_make() {
    ip link add $bridge type bridge && ip link set $bridge up &&
        for i in $(all_hosts); do echo "10.77.0.$((10 + i)) node$i"; done >hosts &&
        for i in $(all_hosts); do make_host "$i" || return 1; done &&
        for r in $(all_ranks); do echo "$r" >rank."$r" || return 1; done &&
        idtree keygen cert && idtree init --statedir "$T/host0/disk" && write_files
}
make_host() { # number
    ip netns add "$(ns "$1")" && mkdir -p /etc/netns/"$(ns "$1")" && mkdir -m 700 "$T/host$1" "$T/host$1/run" "$T/host$1/disk" &&
        cp hosts /etc/netns/"$(ns "$1")"/hosts &&
        ip link add "$bridge-$1" type veth peer name eth0 netns "$(ns "$1")" && ip link set "$bridge-$1" master $bridge up &&
        ip -n "$(ns "$1")" addr add "10.77.0.$((10 + $1))/24" dev eth0 && ip -n "$(ns "$1")" link set eth0 up &&
        ip -n "$(ns "$1")" link set lo up
}
hosts_end() {
    for f in "$T"/pid.*; do kill -9 "$(cat "$f")"; done 2>/dev/null
    for i in $(all_hosts); do ip netns del "$(ns "$i")"; rm -rf /etc/netns/"$(ns "$i")"; done 2>/dev/null
    ip link del $bridge 2>/dev/null
    rm -rf "$T"
}

# Run a command on a host, as its unit does. All hosts run the same command line.
on_host() { (become_host "$@"); } # number, command...
become_host() {
    name=node$1 space=$(ns "$1")
    shift
    exec ip netns exec "$space" unshare --uts sh -c 'hostname "$1" && shift && exec "$@"' sh "$name" "$@"
}
start() { # number of a host
    become_host "$1" idtree-broker --config "$T/host$1/idtree.toml" >>"$T/out.$1" 2>>"$T/err.$1" </dev/null 6>&- &
    echo $! >"$T/pid.$1"
}
pid() { cat "$T/pid.$1"; }
is_gone() { ! kill -0 "$1" 2>/dev/null; }
kill_host() { kill -9 "$(pid "$1")" && wait_until "host $1 is dead" is_gone "$(pid "$1")" && rm "$T/pid.$1"; }
move_disk() { # from host, to host: moves the disk of rank 0; the first host gets an empty disk
    rm -rf "$T/host$2/disk" && cp -a "$T/host$1/disk" "$T/host$2/disk" && rm -r "$T/host$1/disk" && mkdir -m 700 "$T/host$1/disk"
}
link() { ip link set "$bridge-$1" "$2"; } # number of a host, up or down

# --- the configuration file, which is the same on all hosts except for the paths of folders ---------

# Print the hosts in the order of their ranks, as TOML.
host_list() { for r in $(all_ranks); do printf '%s"node%s"' "$(test "$r" = 0 || echo ", ")" "$(host_of "$r")"; done; }
write_file() { # host; real hosts would have the same path, here each host has a folder of its own
    list=$(host_list)
    cat >"$T/host$1/idtree.toml.new" <<END
statedir = "$T/host$1/disk"
rundir = "$T/host$1/run"
tbon.topo = "kary:3"
tbon.timeout = "2s"
fluid.lease = "5s"

[cluster]
hosts = [ $list ]
certificate = "$T/cert"
interface = "eth0"
END
    mv "$T/host$1/idtree.toml.new" "$T/host$1/idtree.toml"
}
write_files() { for i in $(all_hosts); do write_file "$i" || return 1; done; }
reload() { test ! -e "$T/pid.$1" || kill -HUP "$(pid "$1")"; } # host
reload_all() { for i in $(all_hosts); do reload "$i" || return 1; done; }

# --- ranks; a socket in a folder can be reached from any namespace -----------------------------------

host_of() { cat "$T/rank.$1"; }
uri() { echo "local://$T/host$(host_of "$1")/run/local-$1"; }
serves() { idtree id new --uri "$(uri "$1")" >>"$T/ids"; }
all_serve() { for r in $(all_ranks); do wait_until "rank $r serves" serves "$r" || return 1; done; }
is_full() { test "$(idtree overlay status --uri "$(uri 0)" --json | jq -r ".overlay[0].status")" = full; }
wait_full() { wait_until "all $N are there" is_full; }
no_id_twice() { sort "$T/ids" | uniq -d >"$T/twice" && test ! -s "$T/twice"; }

# Request ids continuously on each host that has a broker. The clients make them in the broker's page.
load_start() {
    rm -f stop && mkfifo stop || return 1
    # shellcheck disable=SC2046
    "$IDTREE_BUILDDIR/t/idload" -p -c 20 "local://$T/host" $(all_hosts | sed 's|$|/run/local|') <stop >result 6>&- &
    load_pid=$! && exec 6>stop
}
load_end() { exec 6>&- && wait $load_pid; }
