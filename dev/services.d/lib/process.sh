# Packages, processes and ports for the files in dev/services.d. Linux with apt-get.
# shellcheck shell=bash

# nft and similar tools are in sbin, which is not on every user's PATH.
PATH=$PATH:/usr/sbin:/sbin

say() {
  echo "${service:?}: $*"
}

fail() {
  say "$@" >&2
  exit 1
}

# Only packages and the firewall (partition_node of rabbitmq-cluster) need root. Servers of PostgreSQL and
# PgBouncer refuse to run as root: root starts them as the user postgres, other users as themselves.

# can_be_root: also succeeds for a user whose sudo needs no password, as on hosted runners.
can_be_root() {
  [[ $EUID -eq 0 ]] || sudo -n true 2>/dev/null
}

# as_root COMMAND…
as_root() {
  if [[ $EUID -eq 0 ]]; then "$@"; else sudo -n "$@"; fi
}

# install_packages PACKAGE…
install_packages() {
  can_be_root || fail "not installed; as root: apt-get install --no-install-recommends $*"
  say "installing $*" >&2
  # One lock for all services and clones: apt-get does not wait for another apt-get to finish `update`.
  as_root mkdir -p /var/cache/redrive
  as_root flock /var/cache/redrive/apt.lock sh -c '
    apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
  ' sh "$@" >"${data:?}/install.log" 2>&1 || fail "could not install: see $data/install.log"
}

# identity PID: prints a line that differs for a later process with the same pid; fails if it is dead.
identity() {
  local stat fields
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
  read -ra fields <<<"${stat##*) }"
  # A zombie (Z) is dead, but its exit status is not collected yet. The 20th field is its start time.
  [[ ${fields[0]} != Z ]] && echo "$1 ${fields[19]}"
}

# is_alive PIDFILE
is_alive() {
  [[ -s $1 ]] && [[ $(identity "$(pid_in "$1")") == "$(<"$1")" ]]
}

pid_in() {
  local pid
  read -r pid _ <"$1"
  echo "$pid"
}

# launch PIDFILE LOG COMMAND…: starts a daemon that survives this script and its terminal. COMMAND
# must exec its way to the daemon, so that the pid is the daemon's own.
launch() {
  local pid_file=$1 log=$2
  shift 2
  setsid "$@" </dev/null >>"$log" 2>&1 &
  identity $! >"$pid_file" || true
}

# stop_process PIDFILE [SIGNAL]: returns when the process has ended.
stop_process() {
  if is_alive "$1"; then
    kill -s "${2:-TERM}" "$(pid_in "$1")"
    if ! within 30 is_dead "$1"; then
      kill -s KILL "$(pid_in "$1")" || true
      within 10 is_dead "$1"
    fi
  fi
  rm -f "$1"
}

is_dead() {
  ! is_alive "$1"
}

# within SECONDS COMMAND…: repeats the command until it succeeds.
within() {
  local until=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < until)) || return 1
    sleep 0.1
  done
}

# accepts PORT: succeeds if a program listens there.
accepts() {
  (: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# is_free PORT: nothing listens there.
is_free() {
  ! accepts "$1"
}

# Another program may use one of the ports. A killed server keeps its ports until its last process has ended.
require_free_ports() {
  local port
  for port in "$@"; do
    within 5 is_free "$port" || fail "port $port is used by another program: stop it, or set REDRIVE_PORT_BASE to another block of ports"
  done
}
