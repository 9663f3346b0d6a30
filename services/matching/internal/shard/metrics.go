package shard

import (
	"fmt"

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
	Unheard      *telemetry.Counter
	Polls        *telemetry.Counter
	PollsRefused *telemetry.Counter
	Losses       *telemetry.Counter
	Audited      *telemetry.Counter
	Malformed    *telemetry.Counter
	Looks        *telemetry.Counter
	TableCalls   *telemetry.Counter
	TableFailed  *telemetry.Counter
	AsksFailed   *telemetry.Counter
	Overtaken    *telemetry.Counter
	// WaitingPolls by shard.
	WaitingPolls []*telemetry.Gauge
}

// NewMetrics registers the numbers. A nil registry is one that nobody reads.
func NewMetrics(m *telemetry.Metrics, shards int) *Metrics {
	out := &Metrics{
		HintBatches:  m.Counter("yard_matching_hint_batches_total", "Messages of the hint streams."),
		Triggers:     m.Counter("yard_matching_triggers_total", "Triggers that came in, doubles included."),
		Doubles:      m.Counter("yard_matching_double_triggers_total", "Triggers dropped because their tasks have been asked for already."),
		Matches:      m.Counter("yard_matching_table_matches_total", "Triggers taken from a table for a poll."),
		SyncMatches:  m.Counter("yard_matching_sync_matches_total", "Triggers that met a waiting poll without passing a table."),
		GrabBatches:  m.Counter("yard_matching_grab_batches_total", "Batches of grabs sent to history."),
		GrabsGranted: m.Counter("yard_matching_grabs_granted_total", "Grabs that history granted."),
		GrabsRefused: m.Counter("yard_matching_grabs_refused_total", "Grabs that history refused."),
		HandedBack:   m.Counter("yard_matching_handed_back_total", "Attempts handed back to history."),
		Unheard:      m.Counter("yard_matching_unheard_total", "Attempts in answers that reached nobody."),
		Polls:        m.Counter("yard_matching_polls_total", "Polls that came in."),
		PollsRefused: m.Counter("yard_matching_polls_refused_total", "Polls refused because too many wait."),
		Losses:       m.Counter("yard_matching_table_losses_total", "Times that a domain's table had lost its memory."),
		Audited:      m.Counter("yard_matching_audited_slots_total", "Slots freed because their attempts were over and no release had come."),
		Malformed:    m.Counter("yard_matching_malformed_total", "Triggers, releases and bookings dropped because they cannot be meant."),
		Looks:        m.Counter("yard_matching_looks_total", "Tasklists looked at for triggers to take."),
		TableCalls:   m.Counter("yard_matching_table_calls_total", "Calls to the tables, one per domain and turn at most."),
		TableFailed:  m.Counter("yard_matching_table_calls_failed_total", "Calls to the tables that failed or took longer than a second."),
		AsksFailed:   m.Counter("yard_matching_history_asks_failed_total", "Questions that a history partition did not answer; each is asked again."),
		Overtaken:    m.Counter("yard_matching_overtaken_total", "Times that a shard was given up because a newer owner serves it."),
	}
	for i := range shards {
		out.WaitingPolls = append(out.WaitingPolls, m.Gauge(
			fmt.Sprintf("yard_matching_waiting_polls{shard=%q}", fmt.Sprint(i)), "Polls that are not answered yet."))
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
		{m.Unheard, c.Unheard},
		{m.Polls, c.Polls},
		{m.PollsRefused, c.PollsRefused},
		{m.Losses, c.Losses},
		{m.Audited, c.Audited},
		{m.Malformed, c.Malformed},
		{m.Looks, c.Looks},
	} {
		if one.n != 0 {
			one.to.Add(one.n)
		}
	}
	m.WaitingPolls[shard].Set(c.WaitingPolls)
}
