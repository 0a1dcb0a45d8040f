# One NATS server with JetStream, described by these variables of the service file:
#   node_folder  client_port  monitor_port  node_config (more lines for nats.conf)
# shellcheck shell=bash disable=SC2154

# shellcheck source=dev/services.d/lib/process.sh
. dev/services.d/lib/process.sh

nats_version=2.15.0
# All clones share it.
cache=/var/cache/redrive
[[ $EUID -eq 0 ]] || cache=${XDG_CACHE_HOME:-$HOME/.cache}/redrive
nats_server=$cache/nats-server-$nats_version/nats-server
# NATS publishes its programs on GitHub only. Go builds it from the source and checks its checksum.
nats_module=github.com/nats-io/nats-server/v2@v$nats_version

install_nats() {
  [[ -x $nats_server ]] || build_nats
}

build_nats() {
  [[ $PATH == */usr/local/go/bin* ]] || PATH=$PATH:/usr/local/go/bin
  # Debian 12 has Go 1.19, which cannot download the newer one that NATS needs.
  has_go || fail "building NATS needs Go 1.21 or newer: install it from https://go.dev/dl, then repeat"
  say "building NATS $nats_version" >&2
  mkdir -p "$cache"
  local folder
  folder=$(dirname "$nats_server")
  # The other service, or another clone, may be building at the same time.
  (flock 9 && { [[ -x $nats_server ]] || build_into "$folder"; }) \
    9>"$folder.lock" >"$data/install.log" 2>&1 || fail "could not build: see $data/install.log"
}

has_go() {
  [[ $(go version 2>/dev/null) =~ go1\.([0-9]+) ]] && ((BASH_REMATCH[1] >= 21))
}

# build_into FOLDER: builds in another folder and moves it, so that an incomplete program is never used.
build_into() {
  rm -rf "$1.new" &&
    GOBIN=$1.new go install "$nats_module" &&
    mv -T "$1.new" "$1"
}

launch_node() {
  require_free_ports "$client_port" "$monitor_port"
  mkdir -p "$node_folder"
  write_node_config
  launch "$node_folder/node.pid" "$node_folder/console.log" \
    "$nats_server" --config "$node_folder/nats.conf"
}

write_node_config() {
  cat >"$node_folder/nats.conf" <<CONFIG
listen: 127.0.0.1:$client_port
http: 127.0.0.1:$monitor_port
max_payload: 1MB
log_file: "$node_folder/nats.log"
jetstream {
  store_dir: "$node_folder/files"
  max_file_store: 8GB
  max_memory_store: 1GB
}
$node_config
CONFIG
}

health_request='exec 3<>"/dev/tcp/127.0.0.1/$monitor_port"; printf "GET /healthz HTTP/1.0\r\n\r\n" >&3; cat <&3'
export monitor_port

# node_answers: JetStream has loaded its streams and, in a cluster, has a leader.
node_answers() {
  is_alive "$node_folder/node.pid" && [[ $(timeout 2 bash -c "$health_request" 2>/dev/null) == *\"ok\"* ]]
}

node_answers_or_died() {
  is_dead "$node_folder/node.pid" || node_answers
}

await_node() {
  within 60 node_answers_or_died && node_answers && return
  tail -q -n 20 "$node_folder/console.log" "$node_folder/nats.log" >&2 || true
  fail "did not start: see $node_folder"
}

# A node that is stopped (SIGSTOP) continues.
launch_if_dead() {
  if is_alive "$node_folder/node.pid"; then signal_node CONT; else launch_node; fi
}

# signal_node SIGNAL
signal_node() {
  is_alive "$node_folder/node.pid" || fail "not running"
  builtin kill -s "$1" "$(pid_in "$node_folder/node.pid")"
}

stop_node() {
  # A stopped server (SIGSTOP) gets TERM when it continues.
  if is_alive "$node_folder/node.pid"; then signal_node CONT; fi
  stop_process "$node_folder/node.pid"
}
