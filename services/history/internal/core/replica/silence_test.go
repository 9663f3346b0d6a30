package replica

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// startsFor grants tasks to a worker, by a matching shard.
func (b *bench) startsFor(worker string, shard uint32, tasks ...int) {
	b.Helper()
	b.seq++
	in := &Events{Seq: b.seq, At: b.now.MS, Shard: shard, Epoch: 1, RequestID: b.seq, Delivered: b.seq}
	for i, n := range tasks {
		t := b.r.Get(id(n))
		in.Events = append(in.Events, taskstate.Event{
			Kind: taskstate.Started, ID: t.ID, Worker: taskstate.NewWorker("ann", worker, 0),
			Fence: ids.Token{Position: t.Position, Version: t.Version + 1, Nonce: 5},
		})
		if i%2 == 0 {
			in.Events[i].Limits = typeSend
		}
	}
	b.step(in)
}

func silentOnes(domain string, all ...string) Silent {
	var in Silent
	for _, id := range all {
		in.Workers = append(in.Workers, dispatch.WorkerKey{Domain: domain, ID: id})
	}
	return in
}

// proposedFor are the tasks of expiries, in their order.
func (b *bench) proposedFor(fx *Effects) (numbers []int) {
	b.Helper()
	for _, p := range fx.Append {
		e := b.r.tasks[p.ID]
		if p.Kind != taskstate.Expired || p.SilentLease != e.WakeAt() || p.NotAfter != b.now.MS+standsStillMS || p.Fence != e.Token() || p.Domain != e.Domain {
			b.Errorf("proposed %+v", p)
		}
		numbers = append(numbers, int(p.ID[15]))
	}
	return numbers
}

// TestTheAttemptsOfSilentWorkersAreProposedToEnd, those of its domain and no others, whichever shard they are at and whether they hold
// slots; each once at a time, and again if the log took it too late.
func TestTheAttemptsOfSilentWorkersAreProposedToEnd(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1, 2, 3, 4, 5, 6)
	b.submit(func(t *taskstate.Task) { t.Domain = "media" }, 7)
	b.startsFor("a", 1, 1, 5)
	b.startsFor("a", 2, 3, 4)
	b.startsFor("b", 1, 2)
	b.startsFor("", 1, 6)
	b.startsFor("a", 1, 7)
	b.equal("nobody", b.proposedFor(b.step(silentOnes("shop"))), nil)
	b.equal("unknown", b.proposedFor(b.step(silentOnes("shop", "c"))), nil)
	first := b.step(silentOnes("shop", "a"))
	b.equal("a", b.proposedFor(first), []int{1, 3, 4, 5})
	b.step(Stored{Kind: JobAppend})
	b.equal("again", b.proposedFor(b.step(silentOnes("shop", "a", "b"))), []int{2})
	b.step(Stored{Kind: JobAppend})

	in := &Events{Seq: b.seq + 1, At: b.now.MS}
	for i, p := range first.Append {
		ev := taskstate.Event{Kind: p.Kind, ID: p.ID, Fence: p.Fence, Domain: p.Domain, NotAfter: p.NotAfter, SilentLease: p.SilentLease}
		if i == 0 {
			ev.NotAfter = b.now.MS - 1 // it was late
		}
		in.Events = append(in.Events, ev)
	}
	b.seq++
	fx := b.step(in)
	b.equal("triggered", triggered(fx), []int{3, 4, 5})
	if got := fx.Counts.Silent; got != 3 || b.r.Get(id(3)).Lost != 1 || b.r.Get(id(3)).Failures != 0 {
		t.Errorf("%d counted, %d lost, %d failures", got, b.r.Get(id(3)).Lost, b.r.Get(id(3)).Failures)
	}
	b.equal("once more", b.proposedFor(b.step(silentOnes("shop", "a"))), []int{1})
	b.step(Stored{Kind: JobAppend})
	b.equal("media", b.proposedFor(b.step(silentOnes("media", "a"))), []int{7})
}

// TestATakeoverTakesNoWorkerForSilent before it is over.
func TestATakeoverTakesNoWorkerForSilent(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1)
	b.startsFor("a", 1, 1)
	b.r.replay = &replay{}
	fx := new(Effects)
	b.r.Step(silentOnes("shop", "a"), b.now, fx)
	if len(b.r.own) != 0 {
		t.Errorf("proposed %v", b.r.own)
	}
}

func TestWhatWorkersRun(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1, 2, 3, 4, 5)
	b.submit(func(t *taskstate.Task) { t.Domain = "media" }, 6)
	for i, n := range []int{4, 2, 3} {
		b.now.MS++
		b.startsFor("a", uint32(1+i%2), n)
	}
	b.startsFor("b", 1, 1)
	b.startsFor("a", 1, 6)
	got := b.r.WorkersRun("shop", []string{"a", "c"}, 2)
	var oldest []int
	for _, e := range got["a"].Oldest {
		oldest = append(oldest, int(e.ID[15]))
	}
	if said := fmt.Sprint(len(got), got["a"].Count, oldest, got["c"].Count, len(got["c"].Oldest)); said != "2 3 [4 2] 0 0" {
		t.Error(said)
	}
}
