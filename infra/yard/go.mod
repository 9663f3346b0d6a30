module github.com/yardmaster-io/yardmaster/infra/yard

go 1.26.0

require (
	github.com/nats-io/nats-server/v2 v2.15.2
	github.com/nats-io/nats.go v1.55.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/spf13/cobra v1.10.2
	github.com/yardmaster-io/yardmaster/contracts v0.0.0
	github.com/yardmaster-io/yardmaster/services/frontend v0.0.0
	github.com/yardmaster-io/yardmaster/services/history v0.0.0
	github.com/yardmaster-io/yardmaster/services/matching v0.0.0
	github.com/yardmaster-io/yardmaster/services/timer v0.0.0
	github.com/yardmaster-io/yardmaster/shared v0.0.0
)

require (
	golang.org/x/image v0.47.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/term v0.47.0 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)

replace github.com/yardmaster-io/yardmaster/contracts => ../../contracts

replace github.com/yardmaster-io/yardmaster/shared => ../../shared

replace github.com/yardmaster-io/yardmaster/services/frontend => ../../services/frontend

replace github.com/yardmaster-io/yardmaster/services/matching => ../../services/matching

replace github.com/yardmaster-io/yardmaster/services/history => ../../services/history

replace github.com/yardmaster-io/yardmaster/services/timer => ../../services/timer
