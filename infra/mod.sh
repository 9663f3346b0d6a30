#!/usr/bin/env bash
# Runs a go command that changes the go.mod and go.sum of a module, with the modules of contracts from the
# working tree: `go mod tidy` and `go get` know no workspace, and look for the versions of
# these that go.mod requires, which are published with the tags only.
#
#   infra/mod.sh mod tidy
#   infra/mod.sh get example.com/x@v1.2.3
#   MODULE=contracts/outbox infra/mod.sh mod tidy
set -euo pipefail
cd "$(dirname "$0")/.."

readonly contracts=github.com/yardmaster-io/yardmaster/contracts root=$PWD
cd "${MODULE:-.}"
aside=$(mktemp -d)
trap 'rm -rf "$aside"' EXIT
cp go.mod "$aside"
[[ ! -e go.sum ]] || cp go.sum "$aside"
go mod edit -replace "$contracts=$root/contracts" -replace "$contracts/outbox=$root/contracts/outbox" "$aside/go.mod"
GOWORK=off GOFLAGS="$(go env GOFLAGS) -modfile=$aside/go.mod" go "$@"
go mod edit -dropreplace "$contracts" -dropreplace "$contracts/outbox" "$aside/go.mod"
cp "$aside/go.mod" "$aside/go.sum" .
