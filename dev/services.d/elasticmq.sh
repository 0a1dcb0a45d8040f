# ElasticMQ: a server with the API of Amazon SQS, in memory. It checks the limits of Amazon, and no credentials.
#   url             http://host:port
#   crash           SIGKILL and start again; returns when it responds. Queues and messages are gone
#   kill            SIGKILL
#   start           returns when it responds
#   pause, unpause  SIGSTOP and SIGCONT: connections stay open, nothing responds
# shellcheck shell=bash disable=SC2034,SC2154

extras=(url crash kill start pause unpause)

# elasticmq-restarts.sh sets another port, and storage.
server_port=${server_port:-$((port_base + 324))}
is_stored=${is_stored:-false}

# shellcheck source=dev/services.d/lib/process.sh
. dev/services.d/lib/process.sh
# shellcheck source=dev/services.d/lib/maven.sh
. dev/services.d/lib/maven.sh

elasticmq_version=1.6.14
jars_sha256=79da023465d07d4e5fbacd5fb844959163188219dd8938945b178b7908bd4e10
# All clones share it.
cache=/var/cache/redrive
[[ $EUID -eq 0 ]] || cache=${XDG_CACHE_HOME:-$HOME/.cache}/redrive
dist=$cache/elasticmq-$elasticmq_version
pid_file=$data/server.pid

url() {
  echo "http://127.0.0.1:$server_port"
}

up() {
  if server_answers; then
    say "$(url) (running)"
    return
  fi
  SECONDS=0
  install_java ElasticMQ
  install_jars "$dist" "$jars_sha256" "org.elasticmq:elasticmq-server_2.13:$elasticmq_version"
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
  within 60 server_answers_or_died && server_answers && return
  tail -n 20 "$data/server.log" >&2 || true
  fail "did not start: see $data/server.log"
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
  mkdir -p "$data"
  write_config
  launch "$pid_file" "$data/server.log" \
    java -Xms64m -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData \
    -XX:ErrorFile="$data/jvm-error.log" -Dconfig.file="$data/server.conf" \
    -cp "$dist/*" org.elasticmq.server.Main
}

write_config() {
  cat >"$data/server.conf" <<CONFIG
include classpath("reference.conf")
pekko.loglevel = "WARNING"
node-address { protocol = http, host = "127.0.0.1", port = $server_port }
rest-sqs { enabled = true, bind-hostname = "127.0.0.1", bind-port = $server_port, sqs-limits = strict }
rest-stats { enabled = false }
aws { region = "elasticmq", accountId = "000000000000" }
queues-storage { enabled = $is_stored, path = "$data/queues.conf" }
messages-storage { enabled = $is_stored, driver-class = "org.h2.Driver", uri = "jdbc:h2:$data/messages;WRITE_DELAY=0", username = "", password = "", prune-data-on-init = false }
CONFIG
}

health_request='exec 3<>"/dev/tcp/127.0.0.1/$server_port"; printf "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" >&3; cat <&3'
export server_port

# A stopped server (SIGSTOP) accepts a connection and never responds, so there is a timeout.
server_answers() {
  is_alive "$pid_file" && [[ $(timeout 2 bash -c "$health_request" 2>/dev/null) == *200\ OK* ]]
}

server_answers_or_died() {
  is_dead "$pid_file" || server_answers
}

# signal_server SIGNAL
signal_server() {
  is_alive "$pid_file" || fail "not running"
  builtin kill -s "$1" "$(pid_in "$pid_file")"
}
