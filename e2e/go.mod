module github.com/yardmaster-io/yardmaster/e2e

go 1.26.0

require (
	github.com/nats-io/nats-server/v2 v2.15.2
	github.com/nats-io/nats.go v1.55.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/yardmaster-io/yardmaster/contracts v0.0.0
	github.com/yardmaster-io/yardmaster/infra/yard v0.0.0
	github.com/yardmaster-io/yardmaster/services/frontend v0.0.0
	github.com/yardmaster-io/yardmaster/services/history v0.0.0
	github.com/yardmaster-io/yardmaster/services/matching v0.0.0
	github.com/yardmaster-io/yardmaster/services/timer v0.0.0
	github.com/yardmaster-io/yardmaster/shared v0.0.0
	go.opentelemetry.io/otel v1.47.0
	go.opentelemetry.io/otel/sdk v1.47.0
	go.uber.org/goleak v1.3.0
)

replace github.com/yardmaster-io/yardmaster/contracts => ../contracts

replace github.com/yardmaster-io/yardmaster/shared => ../shared

replace github.com/yardmaster-io/yardmaster/services/frontend => ../services/frontend

replace github.com/yardmaster-io/yardmaster/services/matching => ../services/matching

replace github.com/yardmaster-io/yardmaster/services/history => ../services/history

replace github.com/yardmaster-io/yardmaster/services/timer => ../services/timer

replace github.com/yardmaster-io/yardmaster/infra/yard => ../infra/yard
