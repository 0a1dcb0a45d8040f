# PostgreSQL, superuser and database `redrive`, no password, TCP on loopback only.
#   url    of the database
#   crash  SIGKILL of all its processes, as if the machine had lost power; `up` recovers
# shellcheck shell=bash disable=SC2034,SC2154

# Below 32768: above, the system may have given the port to an outgoing connection.
port=25432
extras=(url crash)

# shellcheck source=dev/services.d/lib/process.sh
. dev/services.d/lib/process.sh

pid_file=$data/postgres.pid
log=$data/postgres.log
# The newest that is installed; they are not on PATH.
bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
# PostgreSQL refuses to run as root.
as_owner=()
[[ $EUID -ne 0 ]] || as_owner=(setpriv --reuid=postgres --regid=postgres --init-groups)

url() {
  echo "postgres://redrive@127.0.0.1:$port/redrive"
}

up() {
  if answers; then
    say "$(url) (running)"
    return
  fi
  SECONDS=0
  [[ -x $bin/postgres ]] || install_and_reload
  stop_process "$pid_file" INT
  require_free_ports "$port"
  choose_folder
  [[ -f $folder/PG_VERSION ]] || create_database
  write_settings
  forget_dead_postmaster
  launch "$pid_file" "$log" "${as_owner[@]}" "$bin/postgres" -D "$folder"
  if ! within 60 answers_or_died || ! answers; then
    tail -n 20 "$log" >&2
    fail "did not start: see $log"
  fi
  say "$(url) (started in $SECONDS s)"
}

down() {
  # INT ends open sessions; TERM would wait for their clients.
  stop_process "$pid_file" INT
}

status() {
  if ! answers; then
    say "not running"
    return 1
  fi
  say "$(url) (running)"
}

crash() {
  is_alive "$pid_file" || fail "not running"
  local postmaster children
  postmaster=$(pid_in "$pid_file")
  # Stopped first, so that it neither starts nor cleans up anything while its children are counted.
  kill -s STOP "$postmaster"
  read -ra children <"/proc/$postmaster/task/$postmaster/children" || true
  kill -s KILL "$postmaster" "${children[@]}"
  within 10 all_dead "$postmaster" "${children[@]}"
  rm -f "$pid_file"
}

all_dead() {
  local pid
  for pid in "$@"; do
    ! identity "$pid" >/dev/null || return 1
  done
}

answers() {
  is_alive "$pid_file" && "$bin/pg_isready" -q -d "$(url)"
}

answers_or_died() {
  is_dead "$pid_file" || answers
}

install_and_reload() {
  install_packages postgresql
  # shellcheck source=dev/services.d/postgres.sh
  . dev/services.d/postgres.sh
}

# The folder must be reachable for the user postgres, which a clone under /root is not. The choice
# is remembered, because that may change.
choose_folder() {
  folder=$data/cluster
  if [[ -f $data/elsewhere ]]; then
    folder=$(<"$data/elsewhere")
  elif [[ ! -d $folder ]] && ! "${as_owner[@]}" test -x "$data"; then
    folder=/var/tmp/redrive-postgres-$(sha256sum <<<"$data" | cut -c 1-16)
    echo "$folder" >"$data/elsewhere"
  fi
}

# Made beside its place and moved there, so that half a database is never taken for one.
create_database() {
  local new=$folder.new
  rm -rf "$new"
  mkdir -m 700 "$new"
  [[ $EUID -ne 0 ]] || chown postgres: "$new"
  {
    "${as_owner[@]}" "$bin/initdb" -D "$new" -U redrive -A trust -E UTF8 --locale=C.UTF-8
    "${as_owner[@]}" "$bin/postgres" --single -D "$new" postgres <<<'CREATE DATABASE redrive'
  } >"$data/initdb.log" 2>&1 || fail "could not create the database: see $data/initdb.log"
  mv -T "$new" "$folder"
}

# Where nobody collects exit statuses at once, as in many containers, a killed postmaster stays a
# zombie, and the next one takes it for alive.
forget_dead_postmaster() {
  local old
  { read -r old <"$folder/postmaster.pid"; } 2>/dev/null || return 0
  identity "$old" >/dev/null || rm "$folder/postmaster.pid"
}

# All settings that are not the default; fsync stays on, for `crash` to mean something.
write_settings() {
  cat >"$folder/postgresql.conf" <<CONFIG
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = ''
max_connections = 200
jit = off
timezone = 'UTC'
log_timezone = 'UTC'
CONFIG
  echo 'host all,replication all 127.0.0.1/32 trust' >"$folder/pg_hba.conf"
}
