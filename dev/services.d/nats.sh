# NATS with JetStream, one server, no password.
#   url             nats://host:port
#   monitor         http://host:port
#   crash           SIGKILL and start again; returns when it responds
#   kill            SIGKILL
#   start           returns when it responds
#   pause, unpause  SIGSTOP and SIGCONT: connections stay open, nothing responds
# shellcheck shell=bash disable=SC2034,SC2154

extras=(url monitor crash kill start pause unpause)

# shellcheck source=dev/services.d/lib/nats.sh
. dev/services.d/lib/nats.sh

node_folder=$data
# nats-restarts.sh sets other ports.
client_port=${client_port:-$((port_base + 222))}
monitor_port=${monitor_port:-$((port_base + 223))}
node_config=

url() {
  echo "nats://127.0.0.1:$client_port"
}

monitor() {
  echo "http://127.0.0.1:$monitor_port"
}

up() {
  if node_answers; then
    say "$(url) (running)"
    return
  fi
  SECONDS=0
  install_nats
  start
  say "$(url) (started in $SECONDS s)"
}

down() {
  stop_node
}

status() {
  if ! node_answers; then
    say "not running"
    return 1
  fi
  say "$(url) (running)"
}

start() {
  launch_if_dead
  await_node
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
    stop_process "$node_folder/node.pid" KILL
  fi
}

pause() {
  signal_node STOP
}

unpause() {
  signal_node CONT
}
