#!/usr/bin/env bash
# A real Jaeger beside the local stack, without Docker: built from the Go module, which takes minutes the first time. It
# keeps the last traces in memory, 100,000 or as many as JAEGER_TRACES says: without a bound a benchmark that is traced
# whole fills the machine in minutes. The module has no web page; JAEGER names a published binary of version 1 that has one:
# https://github.com/jaegertracing/jaeger/releases
#
#   infra/jaeger.sh
set -euo pipefail
cd "$(dirname "$0")/.."
readonly query=127.0.0.1:${JAEGER_PORT:-16686} http=127.0.0.1:${OTLP_HTTP_PORT:-4318} grpc=127.0.0.1:${OTLP_PORT:-4317} admin=127.0.0.1:${JAEGER_ADMIN_PORT:-14269}
jaeger=${JAEGER:-bin/jaeger}
if [[ -z ${JAEGER:-} ]]; then
	go -C infra/tools/jaeger build -o ../../../bin/jaeger github.com/jaegertracing/jaeger/cmd/all-in-one
fi
cat <<EOF
Jaeger:        http://$query
query API:     http://$query/api/traces?service=yard-frontend
send spans:    export OTEL_EXPORTER_OTLP_ENDPOINT=http://$grpc
test it:       YARD_TESTS=all YARD_JAEGER_URL=http://$query OTEL_EXPORTER_OTLP_ENDPOINT=http://$http go test -count=1 ./e2e/tracing
EOF
exec "$jaeger" --log-level=error --memory.max-traces="${JAEGER_TRACES:-100000}" --query.http-server.host-port="$query" --collector.otlp.http.host-port="$http" \
	--collector.otlp.grpc.host-port="$grpc" --admin.http.host-port="$admin"
