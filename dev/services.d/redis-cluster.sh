# A Redis Cluster of three servers without replicas, no password.
#   url             redis://host:port of each server
# shellcheck shell=bash disable=SC2034,SC2154

extras=(url)

# Node N adds N to these.
first_port=$((port_base + 384))
first_bus_port=$((port_base + 388))
server_port=$first_port
server_settings=

# shellcheck source=dev/services.d/lib/redis.sh
. dev/services.d/lib/redis.sh
# shellcheck source=dev/services.d/lib/cluster.sh
. dev/services.d/lib/cluster.sh

root=$data

# The functions of lib/redis.sh act on this server.
use_node() {
  require_node "$@"
  server_port=$((first_port + $1))
  data=$root/$1
  pid_file=$data/node.pid
  server_settings="cluster-enabled yes
cluster-port $((first_bus_port + $1))"
  mkdir -p "$data"
}

url() {
  local n
  for n in 1 2 3; do
    echo "redis://127.0.0.1:$((first_port + n))"
  done
}

urls() {
  local all
  mapfile -t all < <(url)
  echo "${all[*]}"
}

up() {
  command -v redis-server >/dev/null || install_packages redis-server
  if covers_all_slots; then
    say "$(urls) (running)"
    return
  fi
  SECONDS=0
  each_node start
  if ! within 5 covers_all_slots; then
    local n addresses=()
    for n in 1 2 3; do addresses+=("127.0.0.1:$((first_port + n))"); done
    redis-cli --cluster create "${addresses[@]}" --cluster-yes >"$root/create.log" ||
      fail "no cluster: see $root/create.log"
    within 30 covers_all_slots || fail "some slots have no server"
  fi
  say "$(urls) (started in $SECONDS s)"
}

down() {
  each_node stop_node
}

stop_node() {
  stop_process "$pid_file"
}

status() {
  cluster_status "$(urls)"
}

node_answers() {
  server_answers
}

covers_all_slots() {
  [[ $(timeout 2 redis-cli -h 127.0.0.1 -p "$((first_port + 1))" cluster info 2>/dev/null) == *cluster_state:ok* ]]
}
