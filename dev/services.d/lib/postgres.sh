# One PostgreSQL server, described by these variables of the service file:
#   server_home  server_port  server_settings (more lines for postgresql.conf)
#   server_bin  client_bin (folders of its programs and of pg_isready)
# shellcheck shell=bash disable=SC2154

# shellcheck source=dev/services.d/lib/process.sh
. dev/services.d/lib/process.sh

# PostgreSQL refuses to run as root.
as_owner=()
[[ $EUID -ne 0 ]] || as_owner=(setpriv --reuid=postgres --regid=postgres --init-groups)

# newest_with PROGRAM: the folder of Debian's newest installed version of it; they are not on PATH.
newest_with() {
  dirname "$(printf '%s\n' /usr/lib/postgresql/*/bin/"$1" | sort -V | tail -n 1)"
}

use_debian_server() {
  server_bin=$(newest_with postgres)
  client_bin=$server_bin
}

install_debian_server() {
  [[ -x $server_bin/postgres ]] || install_packages postgresql
  use_debian_server
}

server_url() {
  echo "postgres://redrive@127.0.0.1:$server_port/redrive"
}

# server_up INSTALL: `up` of a service that is one server.
server_up() {
  if server_answers; then
    say "$(server_url) (running)"
    return
  fi
  SECONDS=0
  "$1"
  launch_if_dead
  await_server
  say "$(server_url) (started in $SECONDS s)"
}

server_status() {
  if ! server_answers; then
    say "not running"
    return 1
  fi
  say "$(server_url) (running)"
}

# One that is alive and does not answer is only slow, and others may be at work on it; or it was left
# stopped by a crash that was interrupted.
launch_if_dead() {
  if is_alive "$server_home/postgres.pid"; then
    kill -s CONT "$(pid_in "$server_home/postgres.pid")"
  else
    launch_server
  fi
}

launch_server() {
  require_free_ports "$server_port"
  choose_folder
  [[ -f $server_folder/PG_VERSION ]] || create_database
  write_settings
  forget_dead_postmaster
  launch "$server_home/postgres.pid" "$server_home/postgres.log" \
    "${as_owner[@]}" "$server_bin/postgres" -D "$server_folder"
}

await_server() {
  within 60 server_answers_or_died && server_answers && return
  tail -n 20 "$server_home/postgres.log" >&2
  fail "did not start: see $server_home/postgres.log"
}

stop_server() {
  # INT ends open sessions; TERM would wait for their clients.
  stop_process "$server_home/postgres.pid" INT
}

# SIGKILL of all its processes, as if the machine had lost power.
crash_server() {
  local pid_file=$server_home/postgres.pid
  is_alive "$pid_file" || fail "not running"
  local postmaster children
  postmaster=$(pid_in "$pid_file")
  # Stopped first, so that it neither starts nor cleans up anything while its children are counted.
  kill -s STOP "$postmaster"
  read -ra children <"/proc/$postmaster/task/$postmaster/children" || true
  kill -s KILL "${children[@]}" "$postmaster"
  within 10 all_dead "$postmaster" "${children[@]}"
  rm -f "$pid_file"
}

all_dead() {
  local pid
  for pid in "$@"; do
    ! identity "$pid" >/dev/null || return 1
  done
}

server_answers() {
  is_alive "$server_home/postgres.pid" && "$client_bin/pg_isready" -q -d "$(server_url)"
}

server_answers_or_died() {
  is_dead "$server_home/postgres.pid" || server_answers
}

# The folder must be reachable for the user postgres, which a clone under /root is not. The choice
# is remembered, because that may change.
choose_folder() {
  mkdir -p "$server_home"
  server_folder=$server_home/cluster
  if [[ -f $server_home/elsewhere ]]; then
    server_folder=$(<"$server_home/elsewhere")
  elif [[ ! -d $server_folder ]] && ! "${as_owner[@]}" test -x "$server_home"; then
    server_folder=/var/tmp/redrive-postgres-$(sha256sum <<<"$server_home" | cut -c 1-16)
    echo "$server_folder" >"$server_home/elsewhere"
  fi
}

# Made beside its place and moved there, so that half a database is never taken for one.
create_database() {
  local new=$server_folder.new log=$server_home/initdb.log
  rm -rf "$new"
  mkdir -m 700 "$new"
  [[ $EUID -ne 0 ]] || chown postgres: "$new"
  {
    "${as_owner[@]}" "$server_bin/initdb" -D "$new" -U redrive -A trust -E UTF8 --locale=C.UTF-8
    "${as_owner[@]}" "$server_bin/postgres" --single -D "$new" postgres <<<'CREATE DATABASE redrive'
  } >"$log" 2>&1 || fail "could not create the database: see $log"
  mv -T "$new" "$server_folder"
}

# Where nobody collects exit statuses at once, as in many containers, a killed postmaster stays a
# zombie, and the next one takes it for alive.
forget_dead_postmaster() {
  local old
  { read -r old <"$server_folder/postmaster.pid"; } 2>/dev/null || return 0
  identity "$old" >/dev/null || rm "$server_folder/postmaster.pid"
}

# All settings that are not the default; fsync stays on, for a crash to mean something.
write_settings() {
  cat >"$server_folder/postgresql.conf" <<CONFIG
listen_addresses = '127.0.0.1'
port = $server_port
unix_socket_directories = ''
max_connections = 200
jit = off
timezone = 'UTC'
log_timezone = 'UTC'
$server_settings
CONFIG
  echo 'host all,replication all 127.0.0.1/32 trust' >"$server_folder/pg_hba.conf"
}
