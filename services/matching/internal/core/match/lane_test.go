package match

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
)

// A poll waits DetachAfter for a grab of a partition that is silent, also where others wait for it already.
func TestPollWaitsAWhileForASilentPartition(t *testing.T) {
	o := alone(t, 2, func(c *Config) { c.GrabsInFlight = 2 })
	o.grab()
	o.step(grab.SilentAfter, Inputs{})
	o.grab()
	waits := func() int { return o.s.lists[table.Tasklist{Domain: "d", Name: "l"}].queue.Len() }
	if waits() != 1 || o.fx.Wake != o.now.Mono+grab.DetachAfter {
		t.Fatalf("%d polls wait for others; it wakes in %v", waits(), o.fx.Wake-o.now.Mono)
	}
	if o.step(grab.DetachAfter-1, Inputs{}); waits() != 1 {
		t.Fatalf("%d polls wait for others", waits())
	}
	if o.step(1, Inputs{}); waits() != 2 {
		t.Fatalf("%d polls wait for others", waits())
	}
}

// Nothing gathers for a silent partition behind the batches without a verdict.
func TestASilentPartitionWithFullFlightGetsNoMore(t *testing.T) {
	o := alone(t, 1, func(c *Config) { c.GrabsInFlight = 1 })
	o.grab()
	o.step(grab.SilentAfter, o.poll(1, time.Hour))
	o.step(0, o.hint("b", 0, 1))
	if c := o.s.Census(); c.Grabs != 1 || c.Aside != 1 {
		t.Fatalf("%+v", c)
	}
}

// A poll with room for more keeps its place while a grab of it gathers, and gets others where that is put aside.
func TestAPollWithRoomKeepsItsPlace(t *testing.T) {
	o := alone(t, 2, func(c *Config) { c.GrabsInFlight = 1 })
	o.grab()
	o.step(0, o.poll(2, time.Hour))
	o.step(0, o.hint("b", 0, 1))
	if c := o.s.Census(); c.Grabs != 2 || c.Aside != 0 {
		t.Fatalf("%+v", c)
	}
	o.step(grab.SilentAfter, Inputs{})
	if c := o.s.Census(); c.Grabs != 1 || c.Aside != 1 {
		t.Fatalf("%+v", c)
	}
	o.step(0, o.hint("b", 1, 4))
	if len(o.fx.Batches) != 1 || len(o.fx.Batches[0].Grabs) != 3 || len(o.fx.Batches[0].Polls) != 2 {
		t.Fatalf("it asks for %+v", o.fx.Batches)
	}
}

// A batch is repeated when it is not answered for ResendAfter, and each time as long after the last.
func TestBatchesAreRepeated(t *testing.T) {
	o := alone(t, 1)
	o.grab()
	for range 3 {
		for at := sweepEvery; at <= grab.ResendAfter; at += sweepEvery {
			o.step(sweepEvery, Inputs{})
			if again := len(o.fx.Batches) == 1; again != (at == grab.ResendAfter) {
				t.Fatalf("after %v it is repeated: %v", at, again)
			}
		}
	}
}

// A trigger of a partition that does not exist is dropped, and counted.
func TestTriggerOfAPartitionThatDoesNotExist(t *testing.T) {
	o := alone(t, 2)
	o.step(0, o.poll(1, time.Hour))
	o.step(0, o.hint("b", 2, 1))
	if len(o.fx.Batches) != 0 || o.fx.Counts.Malformed != 1 || o.fx.Counts.SyncMatches != 0 {
		t.Fatalf("%d batches, %+v", len(o.fx.Batches), o.fx.Counts)
	}
}

// While a batch is under way all that comes gathers, and goes as one: each batch is a sync to disk.
func TestGrabsGatherBehindTheBatchUnderWay(t *testing.T) {
	o := alone(t, 2)
	sent := 0
	for i, c := range []struct{ partition, n, sent int }{
		{0, 1, 1}, {0, 2, 1}, {0, 2, 1}, {1, 1, 2},
	} {
		o.step(ms, o.poll(c.n, time.Hour))
		o.step(0, o.hint("b", c.partition, c.n))
		if sent += len(o.fx.Batches); sent != c.sent {
			t.Fatalf("hint %d: %d batches were sent, want %d", i, sent, c.sent)
		}
	}
	o.step(ms, Inputs{Verdicts: []grab.Verdicts{{Partition: 0, Batch: 2, All: []grab.Verdict{{DeadlineMS: o.now.MS + 60_000}}}}}) // 1 is the fence
	if len(o.fx.Batches) != 1 || o.fx.Batches[0].Partition != 0 || len(o.fx.Batches[0].Grabs) != 4 {
		t.Fatalf("then %+v", o.fx.Batches)
	}
}

// No more batches of hand-backs are in flight than of grabs.
func TestHandBacksInFlightAreBounded(t *testing.T) {
	o := alone(t, 1, func(c *Config) { c.GrabsInFlight, c.GrabEventsMax, c.AnswerBytesMax = 2, 1, 1024 })
	o.step(0, Inputs{Polls: []waiting.Poll{{Domain: "d", Tasklist: "l", Max: 4, For: time.Hour}}})
	light(o.s.lists[table.Tasklist{Domain: "d", Name: "l"}]) // a guess that is far too low
	o.step(0, o.hint("b", 0, 4))
	backs := func() (n int) {
		for _, b := range o.fx.Batches {
			n += len(b.HandBacks)
		}
		return n
	}
	verdicts := o.granted(0, 1024)
	verdicts = join(verdicts, o.granted(1, 1024))
	o.step(0, verdicts)
	verdicts = o.granted(0, 1024)
	verdicts = join(verdicts, o.granted(1, 1024))
	o.step(0, verdicts) // one fits, three do not
	if backs() != 2 || o.s.Census().HandBacks != 3 {
		t.Fatalf("%d are handed back, %+v", backs(), o.s.Census())
	}
	first := o.fx.Batches[0]
	o.step(0, Inputs{Verdicts: []grab.Verdicts{{Batch: first.Number, All: []grab.Verdict{{}}}}})
	if backs() != 1 || o.s.Census().HandBacks != 2 {
		t.Fatalf("%d are handed back, %+v", backs(), o.s.Census())
	}
}

// What has been delivered is reported alone only where no batch has reported anything for HeardAfter.
func TestDeliveredIsToldAloneAfterAWhile(t *testing.T) {
	o := alone(t, 1)
	o.grab()
	o.step(0, o.granted(0, 1))
	o.step(0, o.poll(1, time.Hour))
	o.step(200*ms, o.hint("b", 0, 1))
	if len(o.fx.Batches) != 1 || o.fx.Batches[0].Delivered != 1 { // the fence
		t.Fatalf("%+v", o.fx.Batches)
	}
	for _, c := range []struct {
		after   time.Duration
		batches int
	}{{grab.HeardAfter - 200*ms, 0}, {200*ms - 1, 0}, {1, 1}, {grab.HeardAfter, 0}} {
		o.step(c.after, Inputs{})
		if len(o.fx.Batches) != c.batches || c.batches == 1 && o.fx.Batches[0].Delivered != 2 {
			t.Fatalf("at %v: %+v", o.now.Mono, o.fx.Batches)
		}
	}
}

// What an owner that is overtaken has of the hint stream and not stored comes again, whether a call carries it
// or it waits for one.
func TestOvertakenLetsGoOfWhatIsNotStored(t *testing.T) {
	o := alone(t, 1)
	o.grab()
	fenced := Inputs{Verdicts: []grab.Verdicts{{Batch: o.fx.Batches[0].Number, All: []grab.Verdict{{Fenced: true}}}}}
	o.step(0, o.hint("b", 0, 1))
	o.step(0, o.hint("b", 0, 1))
	if c := o.s.Census(); c.Calls != 1 || c.Chunks != 1 {
		t.Fatalf("%+v", c)
	}
	o.step(0, fenced)
	if !o.fx.Overtaken || len(o.fx.Acks) > 0 {
		t.Fatalf("overtaken: %v; %+v", o.fx.Overtaken, o.fx.Acks)
	}
}
