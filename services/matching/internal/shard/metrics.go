package shard

import (
	"strconv"

	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// Metrics are the numbers of all shards of a process.
type Metrics struct {
	HintBatches  *telemetry.Counter
	Triggers     *telemetry.Counter
	Doubles      *telemetry.Counter
	Matches      *telemetry.Counter
	SyncMatches  *telemetry.Counter
	GrabBatches  *telemetry.Counter
	GrabsGranted *telemetry.Counter
	GrabsRefused *telemetry.Counter
	HandedBack   *telemetry.Counter
	Bounced      *telemetry.Counter
	Polls        *telemetry.Counter
	PollsRefused *telemetry.Counter
	PollsUp      *telemetry.Counter
	PollsDown    *telemetry.Counter
	Losses       *telemetry.Counter
	Audited      *telemetry.Counter
	WouldWait    *telemetry.Counter
	Rejected     *telemetry.Counter
	Displaced    *telemetry.Counter
	Malformed    *telemetry.Counter
	Looks        *telemetry.Counter
	TableCalls   *telemetry.Counter
	TableFailed  *telemetry.Counter
	AsksFailed   *telemetry.Counter
	Overtaken    *telemetry.Counter
	// Grabs is how long grabs wait for their verdicts.
	Grabs *telemetry.Histogram
	// WaitingPolls by shard.
	WaitingPolls []*telemetry.Gauge
}

// NewMetrics registers the numbers. A nil registry is one that is not read.
func NewMetrics(m *telemetry.Metrics, shards int) *Metrics {
	out := &Metrics{
		Grabs:        m.Histogram(signals.GrabDuration),
		HintBatches:  m.Counter(signals.HintMessages),
		Triggers:     m.Counter(signals.TriggersReceived),
		Doubles:      m.Counter(signals.TriggersDuplicate),
		Matches:      m.Counter(signals.MatchesFromTable),
		SyncMatches:  m.Counter(signals.MatchesDirect),
		GrabBatches:  m.Counter(signals.GrabMessages),
		GrabsGranted: m.Counter(signals.GrabsGranted),
		GrabsRefused: m.Counter(signals.GrabsRefused),
		HandedBack:   m.Counter(signals.AttemptsReturned),
		Bounced:      m.Counter(signals.AttemptsUndelivered),
		Polls:        m.Counter(signals.PollsReceived),
		PollsRefused: m.Counter(signals.PollsRefused),
		PollsUp:      m.Counter(signals.PollsSentUp),
		PollsDown:    m.Counter(signals.PollsSentDown),
		Losses:       m.Counter(signals.TablesLost),
		Audited:      m.Counter(signals.SlotsReclaimed),
		WouldWait:    m.Counter(signals.AttemptsBeyondShadow),
		Rejected:     m.Counter(signals.TasksRejected),
		Displaced:    m.Counter(signals.AttemptsDisplaced),
		Malformed:    m.Counter(signals.HintsMalformed),
		Looks:        m.Counter(signals.TasklistsSearched),
		TableCalls:   m.Counter(signals.TableCalls),
		TableFailed:  m.Counter(signals.TableCallsFailed),
		AsksFailed:   m.Counter(signals.QueriesFailed),
		Overtaken:    m.Counter(signals.ShardsSuperseded),
	}
	for i := range shards {
		out.WaitingPolls = append(out.WaitingPolls, m.Gauge(signals.PollsWaiting, strconv.Itoa(i)))
	}
	return out
}

// count adds what one step of a shard has done.
func (m *Metrics) count(shard int, c *match.Counts) {
	for _, one := range [...]struct {
		to *telemetry.Counter
		n  int64
	}{
		{m.HintBatches, c.HintBatches},
		{m.Triggers, c.Triggers},
		{m.Doubles, c.Doubles},
		{m.Matches, c.Matches},
		{m.SyncMatches, c.SyncMatches},
		{m.GrabBatches, c.GrabBatches},
		{m.GrabsGranted, c.Granted},
		{m.GrabsRefused, c.GrabsRefused},
		{m.HandedBack, c.HandedBack},
		{m.Bounced, c.Bounced},
		{m.Polls, c.Polls},
		{m.PollsRefused, c.PollsRefused},
		{m.PollsUp, c.PollsUp},
		{m.PollsDown, c.PollsDown},
		{m.Losses, c.Losses},
		{m.Audited, c.Audited},
		{m.WouldWait, c.WouldWait},
		{m.Rejected, c.Rejected},
		{m.Displaced, c.Displaced},
		{m.Malformed, c.Malformed},
		{m.Looks, c.Looks},
	} {
		if one.n != 0 {
			one.to.Add(one.n)
		}
	}
	m.WaitingPolls[shard].Set(c.WaitingPolls)
}
