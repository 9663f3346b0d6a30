#!/usr/bin/env bash
# Runs a go command that changes the root's go.mod and go.sum, with contracts from the
# working tree: `go mod tidy` and `go get` know no workspace, and look for the version of
# contracts that go.mod requires, which is published with the tag only.
#
#   infra/mod.sh mod tidy
#   infra/mod.sh get example.com/x@v1.2.3
set -euo pipefail
cd "$(dirname "$0")/.."

readonly contracts=github.com/yardmaster-io/yardmaster/contracts
aside=$(mktemp -d)
trap 'rm -rf "$aside"' EXIT
cp go.mod go.sum "$aside"
go mod edit -replace "$contracts=$PWD/contracts" "$aside/go.mod"
GOWORK=off GOFLAGS="$(go env GOFLAGS) -modfile=$aside/go.mod" go "$@"
go mod edit -dropreplace "$contracts" "$aside/go.mod"
cp "$aside/go.mod" "$aside/go.sum" .
