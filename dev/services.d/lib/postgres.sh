# One PostgreSQL server, described by these variables of the service file:
#   server_home  server_port  server_settings (more lines for postgresql.conf)
#   server_bin  client_bin (folders of its programs and of pg_isready)
# shellcheck shell=bash disable=SC2154

# shellcheck source=dev/services.d/lib/process.sh
. dev/services.d/lib/process.sh

# PostgreSQL refuses to run as root.
as_owner=()
[[ $EUID -ne 0 ]] || as_owner=(setpriv --reuid=postgres --regid=postgres --init-groups)

# newest_with PROGRAM: prints the folder of Debian's newest installed version, which is not on PATH.
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

# The commands of a service that is one server. A service with more servers defines its own.
url() {
  server_url
}

down() {
  stop_server
}

status() {
  server_status
}

crash() {
  crash_server
}

# A live server that does not respond is slow, and other programs may be using it. Or an interrupted
# `crash` left it stopped.
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

# After a crash the server first writes all files of its databases to the disk. Next to other work this took 71 s.
await_server() {
  within 180 server_answers_or_died && server_answers && return
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
  # Stopped first, so that it neither starts nor cleans up processes while its children are listed.
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

# The folder must be accessible to the user postgres, which a clone under /root is not. The choice is
# stored, because the access may change.
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

# Created next to its final folder and moved there, so that an incomplete database is never used.
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

# In many containers no process collects exit statuses immediately. A killed postmaster then stays a
# zombie, and the next one treats it as alive.
forget_dead_postmaster() {
  local old
  { read -r old <"$server_folder/postmaster.pid"; } 2>/dev/null || return 0
  identity "$old" >/dev/null || rm "$server_folder/postmaster.pid"
}

# All settings that differ from the default. fsync stays on, so that a crash is a real test.
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
