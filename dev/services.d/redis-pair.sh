# Two Redis servers: the second one replicates the first one, asynchronously.
#   url                     redis://host:port of both, the first primary first
#   cut_replica             the replica receives nothing more, and is ready to be the primary
#   kill_primary            SIGKILL
# `up` removes all data after a fail-over, and starts both again.
# shellcheck shell=bash disable=SC2034,SC2154

extras=(url cut_replica kill_primary)

primary_port=$((port_base + 382))
replica_port=$((port_base + 383))
server_port=$primary_port
server_settings='appendfsync everysec'

# shellcheck source=dev/services.d/lib/redis.sh
. dev/services.d/lib/redis.sh

root=$data

# use_server PORT: the functions of lib/redis.sh act on this server.
use_server() {
  server_port=$1
  data=$root/$1
  pid_file=$data/redis.pid
  mkdir -p "$data"
  server_settings='appendfsync everysec'
  if [[ $1 == "$replica_port" ]]; then server_settings+=$'\n'"replicaof 127.0.0.1 $primary_port"; fi
}

url() {
  echo "redis://127.0.0.1:$primary_port redis://127.0.0.1:$replica_port"
}

up() {
  command -v redis-server >/dev/null || install_packages redis-server
  if is_a_pair; then
    say "$(url) (running)"
    return
  fi
  SECONDS=0
  local port
  for port in "$primary_port" "$replica_port"; do
    use_server "$port"
    stop_process "$pid_file" KILL
    rm -rf "${data:?}/files"
  done
  for port in "$primary_port" "$replica_port"; do
    use_server "$port"
    start
  done
  within 30 is_a_pair || fail "the replica does not follow: see $data/redis.log"
  say "$(url) (started in $SECONDS s)"
}

down() {
  local port
  for port in "$replica_port" "$primary_port"; do
    use_server "$port"
    stop_process "$pid_file"
  done
}

status() {
  if ! is_a_pair; then
    say "not running as a pair"
    return 1
  fi
  say "$(url) (running)"
}

cut_replica() {
  timeout 2 redis-cli -h 127.0.0.1 -p "$replica_port" replicaof no one >/dev/null
}

kill_primary() {
  use_server "$primary_port"
  stop_process "$pid_file" KILL
}

is_a_pair() {
  [[ $(timeout 2 redis-cli -h 127.0.0.1 -p "$replica_port" info replication 2>/dev/null) == *role:slave*master_link_status:up* ]]
}
