package shard

import (
	"strconv"

	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// Metrics are the numbers of all shards of a process.
type Metrics struct {
	// steps are by index of counted.
	steps       []*telemetry.Counter
	TableCalls  *telemetry.Counter
	TableFailed *telemetry.Counter
	AsksFailed  *telemetry.Counter
	Overtaken   *telemetry.Counter
	// Grabs is how long grabs wait for their verdicts.
	Grabs *telemetry.Histogram
	// WaitingPolls by shard.
	WaitingPolls []*telemetry.Gauge
}

// counted is what a step counts, and the metric of each.
var counted = []struct {
	metric signals.Metric
	of     func(c *match.Counts) int64
}{
	{signals.HintMessages, func(c *match.Counts) int64 { return c.HintBatches }},
	{signals.TriggersReceived, func(c *match.Counts) int64 { return c.Triggers }},
	{signals.TriggersDuplicate, func(c *match.Counts) int64 { return c.Duplicates }},
	{signals.MatchesFromTable, func(c *match.Counts) int64 { return c.Matches }},
	{signals.MatchesDirect, func(c *match.Counts) int64 { return c.SyncMatches }},
	{signals.GrabMessages, func(c *match.Counts) int64 { return c.GrabBatches }},
	{signals.GrabsGranted, func(c *match.Counts) int64 { return c.Granted }},
	{signals.GrabsRefused, func(c *match.Counts) int64 { return c.GrabsRefused }},
	{signals.AttemptsReturned, func(c *match.Counts) int64 { return c.HandedBack }},
	{signals.AttemptsUndelivered, func(c *match.Counts) int64 { return c.Bounced }},
	{signals.PollsReceived, func(c *match.Counts) int64 { return c.Polls }},
	{signals.PollsRefused, func(c *match.Counts) int64 { return c.PollsRefused }},
	{signals.PollsSentUp, func(c *match.Counts) int64 { return c.PollsUp }},
	{signals.PollsSentDown, func(c *match.Counts) int64 { return c.PollsDown }},
	{signals.TablesLost, func(c *match.Counts) int64 { return c.Losses }},
	{signals.SlotsReclaimed, func(c *match.Counts) int64 { return c.Audited }},
	{signals.AttemptsBeyondShadow, func(c *match.Counts) int64 { return c.WouldWait }},
	{signals.TasksRejected, func(c *match.Counts) int64 { return c.Rejected }},
	{signals.AttemptsDisplaced, func(c *match.Counts) int64 { return c.Displaced }},
	{signals.HintsMalformed, func(c *match.Counts) int64 { return c.Malformed }},
	{signals.TasklistsSearched, func(c *match.Counts) int64 { return c.Looks }},
}

// NewMetrics registers the numbers. A nil registry is one that is not read.
func NewMetrics(m *telemetry.Metrics, shards int) *Metrics {
	out := &Metrics{
		TableCalls:  m.Counter(signals.TableCalls),
		TableFailed: m.Counter(signals.TableCallsFailed),
		AsksFailed:  m.Counter(signals.QueriesFailed),
		Overtaken:   m.Counter(signals.ShardsSuperseded),
		Grabs:       m.Histogram(signals.GrabDuration),
	}
	for _, one := range counted {
		out.steps = append(out.steps, m.Counter(one.metric))
	}
	for i := range shards {
		out.WaitingPolls = append(out.WaitingPolls, m.Gauge(signals.PollsWaiting, strconv.Itoa(i)))
	}
	return out
}

// count adds what one step of a shard has done.
func (m *Metrics) count(shard int, c *match.Counts) {
	for i, one := range counted {
		if n := one.of(c); n != 0 {
			m.steps[i].Add(n)
		}
	}
	m.WaitingPolls[shard].Set(c.WaitingPolls)
}
