# One Redis server, described by these variables of the service file:
#   server_port  server_settings (more lines for redis.conf)
# shellcheck shell=bash disable=SC2154

# shellcheck source=dev/services.d/lib/process.sh
. dev/services.d/lib/process.sh

pid_file=$data/redis.pid

url() {
  echo "redis://127.0.0.1:$server_port"
}

up() {
  if server_answers; then
    say "$(url) (running)"
    return
  fi
  SECONDS=0
  command -v redis-server >/dev/null || install_packages redis-server
  start
  say "$(url) (started in $SECONDS s)"
}

down() {
  # A stopped server (SIGSTOP) gets TERM when it continues.
  if is_alive "$pid_file"; then signal_server CONT; fi
  stop_process "$pid_file"
}

status() {
  if ! server_answers; then
    say "not running"
    return 1
  fi
  say "$(url) (running)"
}

start() {
  if is_alive "$pid_file"; then
    signal_server CONT
  else
    launch_server
  fi
  within 30 server_answers_or_died && server_answers && return
  tail -n 20 "$data/redis.log" >&2 || true
  fail "did not start: see $data/redis.log"
}

crash() {
  kill
  start
}

# Callers expect the name `kill`. With arguments it runs the shell's `kill`, which lib/process.sh needs.
kill() {
  if [[ $# -gt 0 ]]; then
    builtin kill "$@"
  else
    stop_process "$pid_file" KILL
  fi
}

pause() {
  signal_server STOP
}

unpause() {
  signal_server CONT
}

launch_server() {
  require_free_ports "$server_port"
  mkdir -p "$data/files"
  write_settings
  launch "$pid_file" "$data/redis.log" redis-server "$data/redis.conf"
}

# Written again at each start, so changes of a test with CONFIG SET are lost.
# No snapshots: the append-only file has everything, and a fork takes a core from the tests.
write_settings() {
  cat >"$data/redis.conf" <<CONFIG
bind 127.0.0.1
port $server_port
dir "$data/files"
appendonly yes
save ""
loglevel notice
$server_settings
CONFIG
}

# While it loads its file it returns an error. A stopped server (SIGSTOP) accepts a connection and
# never responds, so there is a timeout.
server_answers() {
  is_alive "$pid_file" &&
    [[ $(timeout 2 redis-cli -h 127.0.0.1 -p "$server_port" ping 2>/dev/null) == PONG ]]
}

server_answers_or_died() {
  is_dead "$pid_file" || server_answers
}

# signal_server SIGNAL
signal_server() {
  is_alive "$pid_file" || fail "not running"
  builtin kill -s "$1" "$(pid_in "$pid_file")"
}
