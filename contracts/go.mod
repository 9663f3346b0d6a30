module github.com/yardmaster-io/yardmaster/contracts

go 1.26.0

require (
	github.com/nats-io/nats.go v1.55.0
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3
	github.com/planetscale/vtprotobuf v0.6.0
	google.golang.org/protobuf v1.36.12
	go.opentelemetry.io/otel v1.47.0
	go.opentelemetry.io/otel/trace v1.47.0
	pgregory.net/rapid v1.3.0
)


tool (
	github.com/planetscale/vtprotobuf/cmd/protoc-gen-go-vtproto
	google.golang.org/protobuf/cmd/protoc-gen-go
)
