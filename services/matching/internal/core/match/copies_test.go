package match

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestR41ACopyOfARefusedGrabIsHandedBack: history is silent, and a batch of one grab is sent twice. The first
// copy is refused, as the task is not due. By the second one it may have been granted to no one, so it
// is handed back behind both; until that is decided nothing counts as delivered.
func TestR41ACopyOfARefusedGrabIsHandedBack(t *testing.T) {
	for _, code := range []fault.Code{fault.FailedPrecondition, fault.Stale} {
		var fx Effects
		now := Now{Mono: time.Hour, MS: 1}
		cfg := Config{
			Shards: 1, Partitions: 1, Epoch: 1, AnswerBytesMax: 1000, PollsMax: 10, GrabEventsMax: 10, GrabsInFlight: 1, PopMax: 10,
		}
		s := New(cfg, &world{}, now)
		var backs []grab.HandBack
		batches := map[uint64]int{}
		step := func(after time.Duration, in Inputs) {
			now.Mono += after
			in.Proven = now.Mono
			s.Step(&in, now, &fx)
			for _, b := range fx.Batches {
				backs = append(backs, b.HandBacks...)
				if batches[b.Number]++; len(b.HandBacks) > 0 && b.Delivered >= 2 {
					t.Errorf("%s: batch 2 counts as delivered before it is handed back", code)
				}
			}
			check(&world{t: t}, s)
		}
		decide := func(batch uint64, v grab.Verdict) {
			step(0, Inputs{Verdicts: []grab.Verdicts{{Batch: batch, All: []grab.Verdict{v}}}})
		}
		step(0, Inputs{})
		decide(1, grab.Verdict{})
		list := table.Tasklist{Domain: "d", Name: "l"}
		step(0, Inputs{Polls: []waiting.Poll{{Domain: "d", Tasklist: "l", Max: 1, ReplyTo: "inbox", For: time.Minute}}})
		step(0, Inputs{Opened: []OpenOutcome{{Domain: "d", Opened: table.Opened{Epoch: "e"}}}})
		trigger := ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), 0, 7), Position: ids.NewPosition(1, 3)}
		step(0, Inputs{Hints: []Hints{{Delivery: 1, Triggers: []arrival.Triggers{{
			Tasklist: list, Column: table.Column{Priority: 3, Type: "send"}, ReadyAt: 1, Packed: ids.AppendTrigger(nil, trigger),
		}}}}})
		step(grab.ResendAfter+sweepEvery, Inputs{})
		testkit.MustEqual(t, "the grab was sent", batches[2], 2)
		decide(2, grab.Verdict{Refused: string(code)})
		if code == fault.Stale {
			if len(backs) != 0 {
				t.Errorf("what can never be granted is handed back: %+v", backs)
			}
			continue
		}
		if len(backs) != 1 || backs[0].ID != trigger.ID {
			t.Fatalf("handed back is %+v", backs)
		}
		decide(3, grab.Verdict{})
		step(grab.HeardAfter, Inputs{})
		if left := s.Census(); left.Receipts != 0 || left.HandBacks != 0 {
			t.Errorf("what is left is %+v", left)
		}
	}
}
