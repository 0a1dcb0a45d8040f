# Chromium, for tests that need a real browser.
# shellcheck shell=bash disable=SC2034

program=chromium

# shellcheck source=dev/services.d/lib/installed.sh
. dev/services.d/lib/installed.sh
