module github.com/yardmaster-io/yardmaster/shared

go 1.26.0

require (
	github.com/yardmaster-io/yardmaster/contracts v0.0.0
	github.com/nats-io/nats.go v1.55.0
	github.com/nats-io/nats-server/v2 v2.15.2
	github.com/knadh/koanf/v2 v2.4.1
	github.com/spf13/pflag v1.0.10
	go.opentelemetry.io/otel v1.47.0
	go.opentelemetry.io/otel/trace v1.47.0
	go.opentelemetry.io/otel/sdk v1.47.0
	go.uber.org/goleak v1.3.0
	pgregory.net/rapid v1.3.0
)

replace github.com/yardmaster-io/yardmaster/contracts => ../contracts
