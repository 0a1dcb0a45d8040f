# Redis with an append-only file that is on disk within a second, no password.
#   url             redis://host:port
#   crash           SIGKILL and start again; returns when it responds
#   kill            SIGKILL
#   start           returns when it responds
#   pause, unpause  SIGSTOP and SIGCONT: connections stay open, nothing responds
# shellcheck shell=bash disable=SC2034,SC2154

extras=(url crash kill start pause unpause)

server_port=$((port_base + 379))
server_settings='appendfsync everysec'

# shellcheck source=dev/services.d/lib/redis.sh
. dev/services.d/lib/redis.sh
