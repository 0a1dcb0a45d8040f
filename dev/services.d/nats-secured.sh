# A third NATS server, which requires a password. Only tests of credentials use it.
#   deny   rejects the password of `url`, and disconnects its clients
#   allow  accepts it again
# shellcheck shell=bash disable=SC2034,SC2154

client_port=$((port_base + 226))
monitor_port=$((port_base + 227))

# shellcheck source=dev/services.d/nats.sh
. dev/services.d/nats.sh

extras+=(deny allow)
node_config='authorization { user: app, password: secret }'

url() {
  echo "nats://app:secret@127.0.0.1:$client_port"
}

deny() {
  node_config='authorization { user: app, password: changed }'
  reload
}

allow() {
  reload
}

reload() {
  write_node_config
  signal_node HUP
}
