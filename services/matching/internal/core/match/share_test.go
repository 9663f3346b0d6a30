package match

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// S10: the batches of a poll share the bytes of its answer by their grabs. JSON has half of them. A poll that gets nothing has all of them again.
func TestS10BatchesShareTheBytesOfAnAnswer(t *testing.T) {
	for _, json := range []bool{false, true} {
		most := 90_000
		o := alone(t, 2, func(c *Config) { c.AnswerBytesMax = most })
		in := o.poll(3, time.Minute)
		in.Polls[0].JSON = json
		if json {
			most /= 2
		}
		o.step(0, in)
		o.step(0, join(o.hint("b", 0, 2), o.hint("b", 1, 1)))
		testkit.MustEqual(t, "batches", len(o.fx.Batches), 2)
		testkit.Equal(t, "bytes of two of three grabs", o.fx.Batches[0].Polls[0].BytesMax, most/3*2)
		testkit.Equal(t, "bytes of one of three grabs", o.fx.Batches[1].Polls[0].BytesMax, most/3)
		refused := []grab.Verdict{{Refused: string(fault.Stale)}, {Refused: string(fault.Stale)}}
		o.step(0, Inputs{Verdicts: []grab.Verdicts{{Partition: 0, Batch: o.fx.Batches[0].Number, All: refused}, {Partition: 1, Batch: o.fx.Batches[1].Number, All: refused[:1]}}})
		o.step(time.Second, o.hint("b", 0, 1))
		testkit.MustEqual(t, "batches of the next grab", len(o.fx.Batches), 1)
		testkit.Equal(t, "its bytes", o.fx.Batches[0].Polls[0].BytesMax, most)
	}
}

// S10: a trigger whose task does not fit into the answer goes to the next poll at once. If there is none, it goes back into the table.
func TestS10WhatDoesNotFitGoesToTheNextPoll(t *testing.T) {
	for _, polls := range []int{1, 2} {
		o := alone(t, 1)
		for range polls {
			o.step(0, o.poll(2, time.Minute))
		}
		o.step(0, o.hint("b", 0, 2))
		b := o.fx.Batches[0]
		testkit.MustEqual(t, "grabs", len(b.Grabs), 2)
		full := b.Grabs[1].Trigger
		o.step(0, Inputs{Verdicts: []grab.Verdicts{{Batch: b.Number, All: []grab.Verdict{{Task: make([]byte, 10)}, {Refused: string(fault.ResourceExhausted)}}}}})
		if len(o.fx.Answers) != 1 || len(o.fx.Answers[0].Tasks) != 1 {
			t.Fatalf("%d polls: %+v", polls, o.fx.Answers)
		}
		if polls == 1 {
			if len(o.fx.Calls) != 1 || len(o.fx.Calls[0].Put) != 1 || o.fx.Calls[0].Put[0].Len() != 1 {
				t.Errorf("one poll: %+v", o.fx.Calls)
			}
			continue
		}
		if len(o.fx.Batches) != 1 || len(o.fx.Batches[0].Grabs) != 1 || o.fx.Batches[0].Grabs[0].Trigger != full {
			t.Errorf("two polls: %+v", o.fx.Batches)
		}
	}
}
