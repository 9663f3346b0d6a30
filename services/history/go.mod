module github.com/yardmaster-io/yardmaster/services/history

go 1.26.0

require (
	github.com/nats-io/nats.go v1.55.0
	github.com/yardmaster-io/yardmaster/contracts v0.0.0
	github.com/yardmaster-io/yardmaster/shared v0.0.0
	go.opentelemetry.io/otel v1.47.0
	go.opentelemetry.io/otel/trace v1.47.0
	go.uber.org/goleak v1.3.0
	pgregory.net/rapid v1.3.0
)

require google.golang.org/protobuf v1.36.12 // indirect

replace github.com/yardmaster-io/yardmaster/contracts => ../../contracts

replace github.com/yardmaster-io/yardmaster/shared => ../../shared
