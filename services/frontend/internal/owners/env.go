package owners

import (
	"log/slog"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/clock"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
)

// Env is what the rooms of the frontend have in common.
type Env struct {
	Run          *call.Runner
	Tasks        Tasks
	Partitioning topology.Partitioning
	Tokens       *ids.Tokens
	// Catalog is what this frontend knows of the settings, which follows the stored ones within moments.
	Catalog *catalog.Catalog
	// LogVersion is the log version to write.
	LogVersion func() uint32
	Log        *slog.Logger
	// Clock dates spans as the log dates what it has.
	Clock   *clock.Clock
	Tracing *telemetry.Tracing
	Metrics *telemetry.Metrics
}
