package match

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// S10: a batch was sent twice, and history refuses one of its tasks, which does not fit into the answer. Another copy may have been granted, so the grab is
// handed back. Then the trigger goes to the next poll: no one sends it again, since the task is ready all the time.
func TestS10WhatDoesNotFitIsNotLostIfItsBatchWasSentTwice(t *testing.T) {
	o := alone(t, 1)
	for range 2 {
		o.step(0, o.poll(2, time.Minute))
	}
	o.step(0, o.hint("b", 0, 2))
	b := o.fx.Batches[0]
	full := b.Grabs[1].Trigger
	o.step(grab.ResendAfter+sweepEvery, Inputs{})
	testkit.MustEqual(t, "copies of the batch", len(o.fx.Batches), 1)
	decide := func(number uint64, all ...grab.Verdict) {
		o.step(0, Inputs{Verdicts: []grab.Verdicts{{Batch: number, All: all}}})
	}
	decide(b.Number, grab.Verdict{Task: make([]byte, 10)}, grab.Verdict{Refused: string(fault.ResourceExhausted)})
	testkit.MustEqual(t, "batches of a hand-back", len(o.fx.Batches), 1)
	testkit.MustEqual(t, "hand-backs", len(o.fx.Batches[0].HandBacks), 1)
	decide(o.fx.Batches[0].Number, grab.Verdict{Refused: string(fault.Stale)})
	o.step(time.Second, Inputs{})
	for range 3 { // it may go by way of the table
		if len(o.fx.Batches) == 0 && len(o.fx.Calls) > 0 {
			o.step(0, o.called())
		}
	}
	if len(o.fx.Batches) != 1 || len(o.fx.Batches[0].Grabs) != 1 || o.fx.Batches[0].Grabs[0].Trigger != full {
		t.Errorf("the next poll: %+v, %+v", o.fx.Batches, o.fx.Calls)
	}
}
