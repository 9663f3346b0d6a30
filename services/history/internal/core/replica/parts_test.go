package replica

import (
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func upTo(n uint64) Levels { return Levels{Events: n} }

// TestI12_LeaseIsMeasuredFromBefore: a lease lasts from before its checkpoint was sent, and an
// answer that comes late does not shorten a later one (R11).
func TestI12_LeaseIsMeasuredFromBefore(t *testing.T) {
	var l lease
	l.granted(time.Second)
	if !l.holds(3*time.Second-1) || l.holds(3*time.Second) {
		t.Error("a lease lasts two seconds from when it was asked for")
	}
	l.granted(0)
	if !l.holds(3*time.Second - 1) {
		t.Error("an older answer shortened the lease")
	}
}

// TestI12_PurgesWhatIsCoveredForTwiceALease (R11).
func TestI12_PurgesWhatIsCoveredForTwiceALease(t *testing.T) {
	var p purger
	if p.take(time.Hour) != nil {
		t.Fatal("nothing is covered")
	}
	p.saved(upTo(1), 0)
	p.saved(upTo(2), time.Second)
	p.saved(upTo(3), 10*time.Second)
	if got := p.take(2 * LeaseFor); got != nil {
		t.Fatalf("%+v: too early", got)
	}
	if got := p.take(2*LeaseFor + time.Second + 1); got == nil || got.Events != 2 {
		t.Fatalf("%+v, want the newest that is old enough", got)
	}
	p.purged(true) // not all of it
	if got := p.take(9 * time.Second); got == nil || got.Events != 2 || !p.busy {
		t.Fatalf("%+v, want what was left", got)
	}
	p.purged(false)
	if got := p.take(9 * time.Second); got != nil || p.busy {
		t.Fatalf("%+v: nothing is left", got)
	}
	if got := p.take(time.Minute); got == nil || got.Events != 3 {
		t.Fatalf("%+v", got)
	}
	p.purged(false)
	for i := range 3 * coveredMax {
		p.saved(upTo(uint64(i)), time.Duration(i))
	}
	if got := p.take(time.Hour); len(p.covered) != coveredMax || got.Events != 3*coveredMax-1 {
		t.Fatalf("%d are remembered, the last of %+v", len(p.covered), got)
	}
}

// bench is a replica that is live, to put tasks into.
type bench struct {
	*testing.T
	r   *Replica
	now Now
	seq uint64
	// silent: a tick does not mean that the log has moved.
	silent bool
}

// moves makes r hear of its log, which has no event to read.
func (r *Replica) moves(now Now) { r.still.heardAt = now.MS }

func newBench(t *testing.T, cfg Config) *bench {
	if cfg.WindowTasks == 0 {
		cfg = Config{
			Shards: 2, WindowTasks: 1000, WindowBytes: 1 << 20, CheckpointEveryMS: 1 << 50, PurgeEveryMS: 1 << 50, SnapshotBytes: 1 << 50, SnapshotEveryMS: 1 << 50,
		}
	}
	b := &bench{T: t, r: New(cfg, begin(time.Hour)), now: Now{MS: scenarioStart}}
	b.step(Recovered{})
	return b
}

// step gives an input, and returns what the turn asks for.
func (b *bench) step(in Input) *Effects {
	b.Helper()
	fx := new(Effects)
	if _, tick := in.(Tick); tick && !b.silent {
		b.r.moves(b.now)
	}
	if !b.r.Step(in, b.now, fx) {
		b.Fatal("the lease is over")
	}
	b.r.Flush(b.now, fx)
	testkit.NoError(b, b.r.Check())
	if _, search := in.(*Found); search && fx.Append != nil && len(fx.Append) == 0 {
		b.prove(fx)
	}
	return fx
}

// prove stores the turn that conclusions from outside of one ask for.
func (b *bench) prove(fx *Effects) {
	b.Helper()
	at := b.r.EventAt() + 1
	b.seq = max(b.seq, at)
	if !b.r.Step(&Turn{Seq: at, At: b.now.MS, Admitted: b.r.BeginTurn()}, b.now, fx) {
		b.Fatal("the lease is over")
	}
	b.r.Step(Stored{Kind: JobAppend}, b.now, fx)
	b.r.Flush(b.now, fx)
}

func (b *bench) hungry(domain, tasklist string, present ...string) *Effects {
	fx := new(Effects)
	b.r.Hungry(domain, tasklist, present, b.now, fx)
	b.r.Flush(b.now, fx)
	return fx
}

func id(n int) ids.TaskID { return ids.NewTaskID(time.UnixMilli(scenarioStart), 0, uint64(n)) }

// submit reads a message of tasks, changed before.
func (b *bench) submit(change func(*taskstate.Task), numbers ...int) *Effects {
	b.Helper()
	b.seq++
	in := &Submits{Lane: 3, Seq: b.seq, At: b.now.MS, Bytes: 10}
	for _, n := range numbers {
		e := &Entry{Task: taskstate.Task{ID: id(n), Domain: "shop", Tasklist: "mail", Type: "send", Priority: 3, Policy: storyPolicy}}
		if change != nil {
			change(&e.Task)
		}
		in.Tasks = append(in.Tasks, e)
	}
	return b.step(in)
}

// typeSend is the limit of the type of most tasks.
var typeSend = taskstate.NewPath("type/send")

func (b *bench) event(kind taskstate.Kind, n int, fence ids.Token) *Effects {
	b.Helper()
	b.seq++
	return b.step(&Events{Seq: b.seq, At: b.now.MS, Bytes: 10, ReplyTo: "asker", Events: []taskstate.Event{
		{Kind: kind, ID: id(n), Fence: fence, Limits: typeSend, Worker: taskstate.NewWorker("w", "", 0)},
	}})
}

func (b *bench) start(n int) *Effects {
	b.Helper()
	t := b.r.Get(id(n))
	return b.event(taskstate.Started, n, ids.Token{Position: t.Position, Version: t.Version + 1, Nonce: 5})
}

func (b *bench) finish(kind taskstate.Kind, n int) *Effects {
	b.Helper()
	return b.event(kind, n, b.r.Get(id(n)).Token())
}

// triggered are the tasks of the triggers, in their order.
func triggered(fx *Effects) (numbers []int) {
	for _, g := range fx.Triggers {
		for i := range len(g.Packed) / ids.TriggerBytes {
			task := ids.TriggerAt(g.Packed, i).ID
			numbers = append(numbers, int(task[14])<<8|int(task[15]))
		}
	}
	return numbers
}

func (b *bench) equal(what string, got, want []int) {
	b.Helper()
	if !slices.Equal(got, want) {
		b.Errorf("%s: %v, want %v", what, got, want)
	}
}
