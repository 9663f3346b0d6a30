// Package gateway puts the rooms of the frontend together: one for each family of verbs.
//
// Owns: which room has which port, who hears what arrives, and the end of a drain.
//
// Never does: carry out a verb, decode or encode a body, or talk to NATS itself (the ports are in natsgate). The frontend holds no state of a task:
// it may die at any time, and what it has answered is in the log.
//
// On failure: each request is answered exactly once, by its deadline, with a *fault.Error that says what is known.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/clock"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/batches"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/intake"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/operate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/outcome"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/owners"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/placement"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/poll"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/query"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/quotas"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/scaling"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/schedules"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/settings"
)

// Bus sends what is not waited for. Answers arrive at the rooms.
type Bus interface {
	outcome.Bus
	poll.Bus
	operate.Bus
	// PublishUse tells all frontends what this one has let in of domains with a quota.
	PublishUse(data []byte) error
}

// Deps is what a gateway needs. Log, Tracing and Metrics may be nil.
type Deps struct {
	Config       Config
	Partitioning topology.Partitioning
	Tokens       *ids.Tokens
	History      intake.HistoryLog
	DeadLetters  operate.DeadLetters
	Batches      batches.List
	Schedules    schedules.Names
	Bus          Bus
	Owners       owners.Owners
	// Catalog is what this frontend knows of the settings, which follows the stored ones within moments.
	Catalog  *catalog.Catalog
	Settings catalog.Bucket
	// LogVersion is the log version to write.
	LogVersion func() uint32
	Log        *slog.Logger
	// Clock dates spans as the log dates what it has.
	Clock   *clock.Clock
	Tracing *telemetry.Tracing
	Metrics *telemetry.Metrics
}

// Gateway is the rooms of a frontend. It is safe for concurrent use.
type Gateway struct {
	Run      *call.Runner
	Intake   *intake.Intake
	Polls    *poll.Polls
	Outcomes *outcome.Outcomes
	Queries  *query.Queries
	Overview *query.Overview
	Settings *settings.Settings
	Operator *operate.Operator
	Batches  *batches.Batches
	// Schedules are wrapped by OfSchedules.
	Schedules *schedules.Schedules
	// Quotas are those of the domains; the caller runs ShareUse.
	Quotas *quotas.Quotas
	// Scaling is run by the caller.
	Scaling *scaling.Scaling

	drain time.Duration
}

// check refuses what a gateway cannot work with.
func (d Deps) check() error {
	if d.History == nil || d.DeadLetters == nil || d.Batches == nil || d.Schedules == nil || d.Bus == nil || d.Catalog == nil || d.Settings == nil || d.Tokens == nil || d.LogVersion == nil || d.Owners.Missing() {
		return errors.New("gateway: a port or the tokens are missing")
	}
	if d.Partitioning.History < 1 || d.Partitioning.Matching < 1 {
		return fmt.Errorf("gateway: %+v is no partitioning", d.Partitioning)
	}
	if most := d.History.MessageBytesMax(); most < messageBytesFloor {
		return fmt.Errorf("gateway: the log takes messages of %d bytes, at least %d are needed: raise the server's max_payload", most, messageBytesFloor)
	}
	return nil
}

// New makes a gateway. Nothing happens before the first request; Serve must run
// while requests come in.
func New(d Deps) (*Gateway, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	c := d.Config
	g := &Gateway{
		Run:     call.NewRunner(call.Bounds{Requests: c.RequestsMax, Bytes: c.RequestBytesMax, Queries: c.QueriesMax, Waits: c.WaitsMax}, d.Catalog, d.Log),
		Quotas:  quotas.New(d.Catalog, d.Bus.PublishUse, d.Metrics, d.Log),
		Scaling: scaling.New(scaling.Deps{Config: c.Scale, Catalog: d.Catalog, Bucket: d.Settings, Log: d.Log, Metrics: d.Metrics}),
		drain:   c.DrainTimeout,
	}
	env := owners.Env{
		Run: g.Run, Tasks: owners.Tasks{Owners: d.Owners, Partitions: d.Partitioning.History}, Partitioning: d.Partitioning, Tokens: d.Tokens, Catalog: d.Catalog,
		LogVersion: d.LogVersion, Log: d.Log, Clock: d.Clock, Tracing: d.Tracing, Metrics: d.Metrics,
	}
	g.Outcomes = outcome.New(outcome.Deps{Env: env, VerdictTimeout: c.VerdictTimeout, Bus: d.Bus, HasRoom: func(p int) bool { return g.Intake.HasRoom(p) }})
	g.Polls = poll.New(poll.Deps{
		Env: env, Quotas: g.Quotas, Bus: d.Bus, PollsMax: c.PollsMax, Balancer: c.PollBalancer,
		DirectStarts: c.DirectStarts, AnswerBytes: d.History.MessageBytesMax() / 2, // as JSON it grows
		Release: func(c call.Call, entries []validate.Outcome, answer call.Answer) {
			g.Outcomes.Send(c, false, entries, nil, answer)
		},
	})
	chosen := placement.New(d.Partitioning.History, d.Metrics, d.Log)
	homes := batches.Homes{Env: env, Log: d.History, AppendTimeout: c.AppendTimeout}
	g.Intake = intake.New(intake.Deps{
		Env: env, Log: d.History, AppendTimeout: c.AppendTimeout, Homes: homes, Placement: chosen, Polls: g.Polls, Quotas: g.Quotas, DecideOne: g.Outcomes.DecideOne,
	})
	queries := query.Deps{Env: env, Queued: g.Intake.QueuedTasks, Share: chosen.Share}
	g.Queries, g.Overview = query.New(queries), &query.Overview{Deps: queries}
	g.Schedules = schedules.New(schedules.Deps{
		Partitioning: d.Partitioning, Log: d.History, Names: d.Schedules, Catalog: d.Catalog, LogVersion: d.LogVersion, TakesTasks: g.Intake.HasRoom,
		Drained: g.Intake.Drained, AppendTimeout: c.AppendTimeout,
	})
	g.Settings = settings.New(settings.Deps{Env: env, Bucket: d.Settings, Use: g.Quotas.Use, AnySchedule: g.Schedules.Any})
	g.Operator = operate.New(operate.Deps{
		Env: env, Bucket: d.Settings, DeadLetters: d.DeadLetters, Reads: g.Queries, Outcomes: g.Outcomes, Polls: g.Polls, Bus: d.Bus,
	})
	g.Batches = batches.New(batches.Deps{
		Homes: homes, List: d.Batches, HasRoom: g.Intake.HasRoom, Drained: g.Intake.Drained, Charge: g.Quotas.Charge, PurgeStep: g.Operator.PurgeStep,
	})
	return g, nil
}

// OfSchedules is a verb of schedules, which runs in a goroutine of its own.
func OfSchedules[Req any](g *Gateway, do func(context.Context, call.Call, Req) (codec.Message, error)) func(call.Call, Req, call.Answer) {
	return func(c call.Call, req Req, answer call.Answer) {
		g.Run.Ask(c, nil, answer, func(ctx context.Context) (codec.Message, error) { return do(ctx, c, req) })
	}
}

// tickEvery is how often what is due by time is done, tickMax that while no request and no poll is open. While a request is open it is a bound, too.
const tickEvery, tickMax = 25 * time.Millisecond, time.Second

// Serve does what is due by time. When ctx ends it waits until every admitted
// request is answered, at most for Config.DrainTimeout; the caller has stopped
// requests from coming in before.
func (g *Gateway) Serve(ctx context.Context) error {
	every := min(pace.Of(tickEvery), tickMax)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for draining := false; !draining; {
		select {
		case now := <-tick.C:
			g.Polls.Tick(now)
			g.Intake.Tick(now)
			g.Operator.Tick(now)
			if g.Run.Rest() {
				tick.Reset(g.rests(now))
			}
		case <-g.Run.Woken():
			tick.Reset(every)
		case <-ctx.Done():
			draining = true
		}
	}
	tick.Reset(every)
	g.Polls.Stop()
	return g.Run.Drain(tick.C, g.drain)
}

// rests is how long nothing is due while no request is open. A tick that comes when something is due comes a moment later.
func (g *Gateway) rests(now time.Time) time.Duration {
	due, ok := g.Polls.Next()
	if !ok {
		return pace.Of(tickMax)
	}
	return max(tickEvery, min(pace.Of(tickEvery), due.Sub(now)))
}

// Hints are what takes them, by their subject.
func (g *Gateway) Hints() map[string]func(data []byte) {
	return map[string]func(data []byte){
		topology.HintLoad: g.TakeLoad, topology.HintTasklistLoad: g.TakeTasklistLoad, topology.HintSilent: g.Polls.TakeSilent,
		topology.HintUse: g.Quotas.TakeUse, topology.HintStored: g.Quotas.TakeStored, topology.HintGivenUp: g.Polls.TakeGivenUp,
	}
}

// TakeLoad takes in what the owner of a partition reports (topology.HintLoad).
func (g *Gateway) TakeLoad(data []byte) {
	var load rpcv1.HistoryLoad
	if load.UnmarshalVT(data) != nil {
		return // a hint: the next one comes soon
	}
	g.Outcomes.Report(&load)
	g.Intake.TakeLoad(&load)
}

// TakeTasklistLoad takes in what the owner of a matching shard reports (topology.HintTasklistLoad).
func (g *Gateway) TakeTasklistLoad(data []byte) {
	var load rpcv1.TasklistLoad
	if load.UnmarshalVT(data) != nil {
		return // a hint: the next one comes soon
	}
	now := time.Now()
	for _, p := range load.Partitions {
		g.Polls.Report(p, now)
		g.Scaling.Report(p, now)
	}
}
