# Functions that .ci/run and .ci/long share.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOTOOLCHAIN="${GOTOOLCHAIN:-local}" GOFLAGS="${GOFLAGS:--buildvcs=false}"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
go build -o "$tmp/gatecheck" ./internal/gatecheck
: > "$tmp/skips"

# step NAME prints a heading with the time so far and the CPU time of the steps before.
step() {
	local used
	times > "$tmp/times" # in a pipe it would print the times of the pipe
	used=$(awk -F'[ms ]+' 'NR == 2 {printf "%d", $1 * 60 + $2 + $3 * 60 + $4}' "$tmp/times")
	printf '\n== %s (after %d s, %d s of CPU)\n' "$*" "$SECONDS" "$used"
}

# tests ARG... runs go test, and nothing from its cache: that also keeps a skip for want of a
# program that has been installed since. It fails if a test is skipped for a reason that
# internal/gatecheck/skips.txt lacks. The end of the gate lists the reasons. The ten minutes that
# go test gives a package are too few on a busy machine.
tests() { "$tmp/gatecheck" tests -record "$tmp/skips" -- go test -count=1 -timeout 30m "$@"; }

# programs installs, where it can, the programs that tests need and a machine may lack.
programs() {
	local initdb=(/usr/lib/postgresql/*/bin/initdb) packages=()
	[ -x "${initdb[0]}" ] || command -v initdb >/dev/null || packages+=(postgresql)
	command -v node >/dev/null || packages+=(nodejs)
	command -v npm >/dev/null || packages+=(npm)
	command -v jq >/dev/null || packages+=(jq)
	command -v chromium >/dev/null || packages+=(chromium)
	if [ ${#packages[@]} -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" || true
	fi
	tools/build || true
	npm_packages AGENTEVENTS_AGUI dialect/agui/testdata/client
	npm_packages AGENTEVENTS_DUCKDB bench/testdata/duckdb
	npm_packages AGENTEVENTS_CLICKHOUSE runstore/pgstore/internal/questions/testdata/clickhouse
}

# npm_packages VARIABLE FOLDER installs the npm packages of a folder in the cache, where it can, and
# sets the variable to the place.
npm_packages() {
	local place="${XDG_CACHE_HOME:-$HOME/.cache}/agentevents/$(basename "$2")"
	command -v npm >/dev/null || return 0
	if ! cmp -s "$2/package-lock.json" "$place/package-lock.json" || [ ! -d "$place/node_modules" ]; then
		mkdir -p "$place"
		cp "$2"/{package.json,package-lock.json,.npmrc} "$place"
		(cd "$place" && npm ci --ignore-scripts --no-audit --no-fund) || rm -rf "$place"
	fi
	[ ! -d "$place" ] || export "$1=$place"
}

# tests32 ARG... runs go test on 32 bits: natively, or else as a program for ARM in an emulator.
# Kernels of some virtual machines execute no program for 386. The emulator is registered
# with the kernel, because tests also start themselves as other processes.
tests32() {
	local arch
	if ! executes 386 && ! executes arm && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends qemu-user-static binfmt-support || true
		update-binfmts --enable qemu-arm || true
	fi
	for arch in 386 arm; do
		if executes "$arch"; then
			echo "GOARCH=$arch"
			GOARCH=$arch GOWORK=off tests "$@"
			return
		fi
	done
	printf 'needs a kernel or an emulator for 32 bit: it cannot be installed\tthe step 32 bit\n' >> "$tmp/skips"
}

# executes ARCH tells whether this machine executes programs for an architecture.
executes() { GOARCH=$1 GOWORK=off go test -vet=off -run '^$' ./internal/uuid7 >/dev/null 2>&1; }

# modules PATTERN... prints the folders of the modules whose go.mod files match.
modules() { git ls-files "$@" | xargs -n1 dirname; }

# fuzz RUNS runs every fuzz target so many times, beginning with the seeds in the tree. It
# takes a number of runs and no time: up to Go 1.26 the end of a time may be reported as a
# failure (golang/go#75804).
fuzz() {
	git ls-files '*_test.go' | xargs grep -o '^func Fuzz[A-Za-z0-9]*' | sort -u | while IFS=: read -r file target; do
		(cd "$(dirname "$file")" && go test -vet=off -run '^$' -fuzz "^${target#func }\$" -fuzztime "$1" -fuzzminimizetime 100x . </dev/null)
	done
}

# adapters tests the modules that are no part of go.work, because what they depend on would
# slow down everybody. Those that only test others are built once, without the race detector.
adapters() {
	local mod
	for mod in $(modules 'adapter/**go.mod' 'runstore/**go.mod' 'view/**go.mod' parquetlog/go.mod tools/opencode-rows/go.mod tools/sessions/go.mod examples/workers/go.mod); do
		(
			cd "$mod"
			export GOWORK=off
			case $mod in
			*/internal/*) tests -vet=all ./... ;;
			parquetlog)
				go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
				tests -vet=all -bench . -benchtime 1x ./...
				tests -vet=off -race -short ./...
				;;
			*)
				go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
				tests -race -vet=all -bench . -benchtime 1x ./...
				;;
			esac
		)
	done
}
