# PgBouncer in transaction mode, in front of every database of the service `postgres`.
#   url    of the database `redrive` through it
# shellcheck shell=bash disable=SC2034,SC2154

extras=(url)

# shellcheck source=dev/services.d/lib/process.sh
. dev/services.d/lib/process.sh

pid_file=$data/pgbouncer.pid
server_port=$((port_base + 437))
postgres_port=$((port_base + 432))

# It refuses to run as root.
as_owner=()
[[ $EUID -ne 0 ]] || as_owner=(setpriv --reuid=postgres --regid=postgres --init-groups)

url() {
  echo "postgres://redrive@127.0.0.1:$server_port/redrive"
}

up() {
  if server_answers; then
    say "$(url) (running)"
    return
  fi
  SECONDS=0
  dev/services up postgres
  command -v pgbouncer >/dev/null || install_packages pgbouncer
  launch_server
  within 30 server_answers && say "$(url) (started in $SECONDS s)" && return
  tail -n 20 "$data/pgbouncer.log" >&2 || true
  fail "did not start: see $data/pgbouncer.log"
}

down() {
  stop_process "$pid_file"
}

status() {
  if ! server_answers; then
    say "not running"
    return 1
  fi
  say "$(url) (running)"
}

# The user postgres may not open a file under /root, so the program gets its settings as an open file.
launch_server() {
  require_free_ports "$server_port"
  mkdir -p "$data"
  write_settings
  launch "$pid_file" "$data/pgbouncer.log" "${as_owner[@]}" pgbouncer /dev/fd/3 3<"$data/pgbouncer.ini"
}

# Few server connections, so that a session gets another one with almost every transaction.
write_settings() {
  cat >"$data/pgbouncer.ini" <<CONFIG
[databases]
* = host=127.0.0.1 port=$postgres_port user=redrive
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $server_port
unix_socket_dir =
auth_type = any
pool_mode = transaction
ignore_startup_parameters = options
max_client_conn = 500
default_pool_size = 5
CONFIG
}

server_answers() {
  is_alive "$pid_file" && pg_isready -q -d "$(url)"
}
