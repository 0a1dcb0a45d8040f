# The OpenTelemetry Collector, for tests of traces and of the sink `otlp`. Needs Go 1.26, which builds it in some
# minutes, with the parts that the tests use.
#   path            prints the path of the program
# shellcheck shell=bash disable=SC2034,SC2154

version=v0.155.0

# shellcheck source=dev/services.d/lib/installed.sh
. dev/services.d/lib/installed.sh

path() {
  [[ -x $data/$version/otelcol ]] && echo "$data/$version/otelcol"
}

manifest() {
  cat <<YAML
dist: { name: otelcol, module: localhost/otelcol, output_path: $data/$version }
receivers: [{ gomod: go.opentelemetry.io/collector/receiver/otlpreceiver $version }]
exporters:
  - gomod: go.opentelemetry.io/collector/exporter/debugexporter $version
  - gomod: go.opentelemetry.io/collector/exporter/otlphttpexporter $version
YAML
}

up() {
  if ! path >/dev/null; then
    command -v go >/dev/null || fail "not installed: Go 1.26 is needed to build it"
    say "building the collector $version" >&2
    manifest >"$data/manifest.yaml"
    go run "go.opentelemetry.io/collector/cmd/builder@$version" --config "$data/manifest.yaml" \
      >"$data/install.log" 2>&1 || fail "could not build it: see $data/install.log"
  fi
  say "$(path) (installed)"
}
