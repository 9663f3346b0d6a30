package shard

import (
	"fmt"

	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// Metrics are the numbers of all shards of a process.
type Metrics struct {
	HintBatches  *telemetry.Counter
	Triggers     *telemetry.Counter
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
	// WaitingPolls by shard.
	WaitingPolls []*telemetry.Gauge
}

// NewMetrics registers the numbers. A nil registry is one that nobody reads.
func NewMetrics(m *telemetry.Metrics, shards int) *Metrics {
	out := &Metrics{
		HintBatches:  m.Counter("yard_matching_hint_batches_total", "Messages of the hint streams."),
		Triggers:     m.Counter("yard_matching_triggers_total", "Triggers that came in, doubles included."),
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
		Audited:      m.Counter("yard_matching_audited_slots_total", "Slots freed because their attempts were over and nobody had said so."),
	}
	for i := range shards {
		out.WaitingPolls = append(out.WaitingPolls, m.Gauge(
			fmt.Sprintf("yard_matching_waiting_polls{shard=%q}", fmt.Sprint(i)), "Polls that are not answered yet."))
	}
	return out
}
