# Kafka, one broker that is its own controller (KRaft), without TLS and passwords.
#   url             host:port
#   crash           SIGKILL and start again; returns when it responds
#   kill            SIGKILL
#   start           returns when it responds
#   pause, unpause  SIGSTOP and SIGCONT: connections stay open, nothing responds
# shellcheck shell=bash disable=SC2034,SC2154

extras=(url crash kill start pause unpause)

# shellcheck source=dev/services.d/lib/kafka.sh
. dev/services.d/lib/kafka.sh

node_folder=$data
node_id=1
# kafka-restarts.sh sets other ports.
broker_port=${broker_port:-$((port_base + 900))}
controller_port=${controller_port:-$((port_base + 901))}
voters=$node_id@127.0.0.1:$controller_port
copies=1
in_sync_copies=1
node_config=
# While the machine is overloaded, a broker with the usual session counts as dead, and every test fails.
broker_session_ms=60000

url() {
  echo "127.0.0.1:$broker_port"
}

up() {
  if node_answers; then
    say "$(url) (running)"
    return
  fi
  SECONDS=0
  install_kafka
  launch_and_await
  say "$(url) (started in $SECONDS s)"
}

down() {
  begin_stop
  stop_process "$node_folder/node.pid"
}

status() {
  if ! node_answers; then
    say "not running"
    return 1
  fi
  say "$(url) (running)"
}

# After a kill the new process decides how long the session of the old one lasts.
start() {
  broker_session_ms=3000
  launch_and_await
}

launch_and_await() {
  launch_if_dead
  await_node
}

crash() {
  kill_now
  start
}

# Callers expect the name `kill`. With arguments it runs the shell's `kill`, which lib/process.sh needs.
kill() {
  if [[ $# -gt 0 ]]; then
    builtin kill "$@"
  else
    kill_now
  fi
}

pause() {
  signal_node STOP
}

unpause() {
  signal_node CONT
}
