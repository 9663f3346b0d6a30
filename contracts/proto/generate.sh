#!/usr/bin/env bash
# Generates METRICS.md, and contracts/gen and the API reference (API.md, asyncapi.json, node/api.d.ts) from the
# .proto files. Needs protoc (Debian's protobuf-compiler); the plugins are built
# from the versions pinned in this module, so that the output is the same everywhere.
set -euo pipefail
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/bin" "$tmp/out"
GOWORK=off go build -o "$tmp/bin/" ./internal/apidoc \
  google.golang.org/protobuf/cmd/protoc-gen-go github.com/planetscale/vtprotobuf/cmd/protoc-gen-go-vtproto
mod=github.com/yardmaster-io/yardmaster/contracts
PATH="$tmp/bin:$PATH" protoc -I proto --include_source_info --descriptor_set_out="$tmp/api.pb" \
  --go_out="$tmp/out" --go_opt=module=$mod \
  --go-vtproto_out="$tmp/out" --go-vtproto_opt=module=$mod,features=marshal+unmarshal+unmarshal_unsafe+size+clone+pool,pool=$mod/gen/logv1.Batch,pool=$mod/gen/logv1.Record,pool=$mod/gen/logv1.Policy,pool=$mod/gen/logv1.Step,pool=$mod/gen/logv1.Attempt,pool=$mod/gen/logv1.EventBatch,pool=$mod/gen/logv1.Event,pool=$mod/gen/logv1.PollRef \
  yard/v1/tasks.proto yard/v1/admin.proto yard/v1/schedules.proto yard/v1/timers.proto yard/v1/explain.proto yard/v1/audit.proto yard/log/v1/log.proto yard/log/v1/quarantine.proto yard/rpc/v1/rpc.proto
"$tmp/bin/apidoc" -descriptors "$tmp/api.pb"
GOWORK=off go generate ./signals
find gen -name '*.pb.go' | while read -r old; do [[ -e $tmp/out/$old ]] || rm "$old"; done
cp -r "$tmp/out/gen" .
