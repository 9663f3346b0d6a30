#!/usr/bin/env bash
# Generates contracts/gen from the .proto files. Needs protoc (Debian's
# protobuf-compiler); the plugins are built from the versions pinned in this
# module, so that the output is the same everywhere.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
go build -o "$bin/" google.golang.org/protobuf/cmd/protoc-gen-go github.com/planetscale/vtprotobuf/cmd/protoc-gen-go-vtproto
mod=github.com/yardmaster-io/yardmaster/contracts
find gen -name '*.pb.go' -delete
PATH="$bin:$PATH" protoc -I proto \
  --go_out=. --go_opt=module=$mod \
  --go-vtproto_out=. --go-vtproto_opt=module=$mod,features=marshal+unmarshal+unmarshal_unsafe+size+clone \
  yard/v1/tasks.proto yard/v1/admin.proto yard/log/v1/log.proto yard/rpc/v1/rpc.proto
