package turn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var errDown = errors.New("no answer")

// storedAt is when the log of these tests stores what has no other time.
const storedAt = 5_000

// log is the events of a partition; times are when what was appended was stored. Before is called before an append; what it returns is the answer, in place of the log's. If
// stored, the turn is there all the same.
type log struct {
	all    []record.Turn
	at     int64
	times  []int64
	before func(n int) (stored bool, err error)
	tries  int
	take   func([]byte)
}

func (l *log) Append(_ context.Context, data []byte, after uint64) (uint64, error) {
	l.tries++
	stored, lost := true, error(nil)
	if l.before != nil {
		stored, lost = l.before(l.tries)
	}
	if after != uint64(len(l.all)) {
		return 0, ErrWrongTurn
	}
	if stored {
		turn, err := record.ReadTurn(data)
		if err != nil {
			return 0, err
		}
		l.all, l.times = append(l.all, turn), append(l.times, l.at)
	}
	return uint64(len(l.all)), lost
}

func (l *log) LastTurn(context.Context) (Record, error) {
	n := len(l.all)
	if n == 0 {
		return Record{}, nil
	}
	return Record{Seq: uint64(n), Time: time.UnixMilli(l.at), Data: l.all[n-1].Append(nil)}, nil
}

func (l *log) Listen(_ context.Context, take func([]byte)) error {
	l.take = take
	return nil
}

// owner runs everything at once, and repeats a write five times.
type owner struct {
	posted chan func()
	turns  []*replica.Turn
	own    []replica.Stored
	// admitted go with the next turn.
	admitted []replica.Admission
	failed   error
	leased   bool
	// terms go with the next turn.
	terms []*logv1.TypeTerms
	// early tells what comes before its task; nil = nothing does.
	early func(e *replica.Events) bool
}

func (o *owner) Early(e *replica.Events) bool { return o.early != nil && o.early(e) }

func (o *owner) Terms([]*replica.Events) []*logv1.TypeTerms { return o.terms }

func (o *owner) Persist(write func(context.Context) error) (err error) {
	for range 5 {
		if err = write(context.Background()); err == nil || errors.Is(err, ErrTakenOver) || errors.Is(err, ErrRefused) || errors.Is(err, ErrUnreadable) {
			return err
		}
	}
	return err
}

func (o *owner) Admitted() (all []replica.Admission) {
	all, o.admitted = o.admitted, nil
	return all
}
func (o *owner) Post(do func())   { o.posted <- do }
func (o *owner) Fail(err error)   { o.failed = err }
func (o *owner) NowMS() int64     { return 1_000 }
func (o *owner) step(a *Appender) { a.Begin(); (<-o.posted)() }

func (o *owner) Take(in replica.Input) bool {
	switch in := in.(type) {
	case *replica.Turn:
		if !o.leased {
			return false
		}
		o.turns = append(o.turns, in)
	case replica.Stored:
		o.own = append(o.own, in)
	case replica.TurnRefused:
		o.admitted = in.Admitted
	}
	return true
}

// claimed is an appender of epoch 2 behind a turn of epoch 1.
func claimed(t *testing.T) (*Appender, *log, *owner) {
	t.Helper()
	l, o := &log{all: []record.Turn{{LogVersion: 1, Epoch: 1, Number: 7, At: 2_000}}, at: storedAt}, &owner{posted: make(chan func(), 1), leased: true}
	a := New(l, o, func() uint32 { return 1 }, slog.New(slog.DiscardHandler))
	testkit.NoError(t, a.Listen(t.Context(), nil, func(err error) { t.Log("dropped:", err) }))
	at, err := a.Claim(t.Context(), 2)
	testkit.NoError(t, err)
	testkit.Equal(t, "the claim", at, 2)
	l.tries = 0
	return a, l, o
}

func cancel(n uint64) []byte {
	id := ids.NewTaskID(time.UnixMilli(1), 0, n)
	data, err := (&logv1.EventBatch{LogVersion: 1, RequestId: n, Events: []*logv1.Event{{Kind: logv1.EventKind_EVENT_KIND_CANCEL, TaskId: id[:]}}}).MarshalVT()
	if err != nil {
		panic(err)
	}
	return data
}

// TestI3_ATurnWhoseOutcomeIsNotKnown is found in the log, or repeated; what another owner has appended ends this one.
func TestI3_ATurnWhoseOutcomeIsNotKnown(t *testing.T) {
	foreign := record.Turn{LogVersion: 1, Epoch: 3, Number: 2} // the number of ours, too
	for what, c := range map[string]struct {
		before func(l *log, n int) (stored bool, err error)
		turns  int
		failed error
	}{
		"it is stored, and the answer is lost": {func(_ *log, n int) (bool, error) { return true, map[int]error{1: errDown}[n] }, 1, nil},
		"it is lost":                           {func(_ *log, n int) (bool, error) { return n > 1, map[int]error{1: errDown}[n] }, 1, nil},
		"it is refused, and comes later":       {func(_ *log, n int) (bool, error) { return n > 2, map[int]error{1: ErrWrongTurn, 2: ErrWrongTurn}[n] }, 1, nil},
		"another owner was first": {func(l *log, n int) (bool, error) {
			if n == 1 {
				l.all = append(l.all, foreign)
			}
			return true, nil
		}, 0, ErrTakenOver},
		"another owner was first, and the answer is lost": {func(l *log, n int) (bool, error) {
			if n == 1 {
				l.all = append(l.all, foreign)
				return false, errDown
			}
			return true, nil
		}, 0, ErrTakenOver},
	} {
		t.Run(what, func(t *testing.T) {
			a, l, o := claimed(t)
			l.before = func(n int) (bool, error) { return c.before(l, n) }
			l.take(cancel(1))
			o.step(a)
			if !errors.Is(o.failed, c.failed) || len(o.turns) != c.turns {
				t.Fatalf("%d turns are applied, the owner fails with %v", len(o.turns), o.failed)
			}
			if c.turns == 1 && (o.turns[0].Seq != 3 || len(l.all) != 3 || a.Last() != 3 || o.turns[0].At != 2_000) {
				t.Errorf("turn %d at %d, the log has %d", o.turns[0].Seq, o.turns[0].At, len(l.all))
			}
		})
	}
}

// TestWhatGathersIsOneTurn, the owner's own proposals first; a dated one counts at the server's time.
func TestWhatGathersIsOneTurn(t *testing.T) {
	a, l, o := claimed(t)
	for n := range uint64(5) {
		l.take(cancel(n))
	}
	l.take([]byte("\xff no batch"))
	a.Propose([]replica.Proposal{{Kind: taskstate.Expired, NotAfter: 1}})
	o.step(a)
	if len(o.turns) != 1 || len(o.turns[0].Batches) != 6 || o.turns[0].Batches[0].ReplyTo != "" || o.turns[0].At != storedAt || len(o.own) != 1 || !a.Idle() {
		t.Fatalf("%d turns, %d answers for its own", len(o.turns), len(o.own))
	}
}

// TestI3_ATurnHasTheTermsOfTypes: the log has what the replica takes.
func TestI3_ATurnHasTheTermsOfTypes(t *testing.T) {
	a, l, o := claimed(t)
	o.terms = []*logv1.TypeTerms{{Domain: "shop", Type: "t", Policy: &logv1.Policy{MaxAttempts: 7, TypeRevision: 3}}}
	l.take(cancel(1))
	o.step(a)
	stored, err := record.NewDecoder().Turn(&l.all[2], 3, 1)
	testkit.NoError(t, err)
	for _, terms := range [][]*taskstate.Terms{o.turns[0].Terms, stored.Terms} {
		testkit.MustEqual(t, "terms", len(terms), 1)
		testkit.Equal(t, "the type", terms[0].Of, taskstate.TypeName{Domain: "shop", Type: "t"})
		testkit.Equal(t, "the policy", *terms[0].Policy, taskstate.Policy{MaxAttempts: 7, TypeRevision: 3})
	}
}

// TestI3_TimeIsWhatATakeoverReads, also where our clock is ahead of the server's, which dates some turns: else one owner would take a lease for over, and the
// next one would not. A turn that we date goes back behind none.
func TestI3_TimeIsWhatATakeoverReads(t *testing.T) {
	a, l, o := claimed(t)
	for _, at := range []int64{storedAt, storedAt - 1, storedAt + 9, 1_500} {
		l.at = at
		a.Propose([]replica.Proposal{{Kind: taskstate.Expired, NotAfter: 1}})
		o.step(a)
		l.take(cancel(9))
		o.step(a)
	}
	first, latest := len(l.all)-len(o.turns), int64(0)
	for i, turn := range o.turns {
		stored := l.all[first+i]
		again, err := record.NewDecoder().Turn(&stored, turn.Seq, l.times[len(l.times)-len(o.turns)+i])
		testkit.NoError(t, err)
		if turn.At != again.At || stored.At > 0 && turn.At < latest {
			t.Errorf("the time of turn %d is %d, and %d for who takes over; one before had %d", turn.Seq, turn.At, again.At, latest)
		}
		latest = max(latest, turn.At)
	}
}

// TestATurnIsCut: it takes no more than bytesMax, unless a batch is larger; the rest comes with the next ones, in order.
func TestATurnIsCut(t *testing.T) {
	a, l, o := claimed(t)
	sized := func(n uint64, bytes int) []byte {
		id := ids.NewTaskID(time.UnixMilli(1), 0, n)
		ev := &logv1.Event{Kind: logv1.EventKind_EVENT_KIND_CANCEL, TaskId: id[:], Message: strings.Repeat("x", bytes)}
		data, err := (&logv1.EventBatch{LogVersion: 1, RequestId: n, Events: []*logv1.Event{ev}}).MarshalVT()
		testkit.NoError(t, err)
		return data
	}
	for n, bytes := range []int{200 << 10, 200 << 10, 200 << 10, 600 << 10, 1, 400 << 10} {
		l.take(sized(uint64(n+1), bytes))
	}
	var cut [][]uint64
	for !a.Idle() {
		o.step(a)
		var of []uint64
		for _, b := range o.turns[len(o.turns)-1].Batches {
			of = append(of, b.RequestID)
		}
		cut = append(cut, of)
	}
	testkit.Equal(t, "requests by turn", fmt.Sprint(cut), "[[1 2] [3] [4] [5 6]]")
}

// TestI12_ATurnWaitsForTheLease: it is stored, and applied when the lease holds again; until then no other one begins.
func TestI12_ATurnWaitsForTheLease(t *testing.T) {
	a, l, o := claimed(t)
	o.leased = false
	l.take(cancel(1))
	o.step(a)
	l.take(cancel(2))
	a.Begin()
	if len(o.turns) != 0 || a.busy || len(l.all) != 3 || a.Arrived() != nil {
		t.Fatalf("%d turns are applied without a lease, the log has %d", len(o.turns), len(l.all))
	}
	o.leased = true
	a.Apply()
	o.step(a)
	testkit.Equal(t, "turns", len(o.turns), 2)
}

// TestAClaimFollowsWhatTheOwnerBeforeAppendsMeanwhile: a claim that is refused is repeated behind that.
func TestAClaimFollowsWhatTheOwnerBeforeAppendsMeanwhile(t *testing.T) {
	l := &log{all: []record.Turn{{LogVersion: 1, Epoch: 1, Number: 7, At: 2_000}}}
	l.before = func(n int) (bool, error) {
		if n <= 2 {
			l.all = append(l.all, record.Turn{LogVersion: 1, Epoch: 1, Number: uint64(7 + n), At: int64(2_000 + n)})
		}
		return true, nil
	}
	a := New(l, &owner{}, func() uint32 { return 1 }, slog.New(slog.DiscardHandler))
	seq, err := a.Claim(t.Context(), 2)
	testkit.NoError(t, err)
	if last := l.all[len(l.all)-1]; seq != 4 || len(l.all) != 4 || last.Epoch != 2 || last.At != 2_002 {
		t.Errorf("the claim is turn %d of %d: %+v", seq, len(l.all), last)
	}
}

// TestAClaimOfAnOlderEpochIsRefused, and one behind an unreadable version: nothing is appended.
func TestAClaimOfAnOlderEpochIsRefused(t *testing.T) {
	for what, c := range map[string]struct {
		last record.Turn
		want error
	}{
		"a newer owner":   {record.Turn{LogVersion: 1, Epoch: 9}, ErrTakenOver},
		"a newer version": {record.Turn{LogVersion: 1 << 20, Epoch: 1}, ErrUnreadable},
	} {
		l := &log{all: []record.Turn{c.last}}
		a := New(l, &owner{}, func() uint32 { return 1 }, slog.New(slog.DiscardHandler))
		if _, err := a.Claim(t.Context(), 2); !errors.Is(err, c.want) || l.tries != 0 {
			t.Errorf("%s: %v after %d appends", what, err, l.tries)
		}
	}
}

// TestWhatComesBeforeItsTask waits until the task is admitted: a task that starts with its submit may end before that is read. Others do not wait with it.
func TestWhatComesBeforeItsTask(t *testing.T) {
	a, l, o := claimed(t)
	early := uint64(7)
	o.early = func(e *replica.Events) bool { return e.RequestID == early }
	l.take(cancel(7))
	l.take(cancel(8))
	a.Add(<-a.Arrived())
	o.step(a)
	if len(o.turns) != 1 || len(o.turns[0].Batches) != 1 || o.turns[0].Batches[0].RequestID != 8 || a.Idle() {
		t.Fatalf("turns %+v, idle %v", o.turns, a.Idle())
	}
	a.Begin() // nothing
	early = 0
	o.step(a)
	if len(o.turns) != 2 || o.turns[1].Batches[0].RequestID != 7 || !a.Idle() {
		t.Fatalf("turns %+v, idle %v", o.turns, a.Idle())
	}
}

// TestWhatComesTooEarlyWaitsForSoLong, and no more of it than so much: then it gets its verdict, which is to repeat it. Were it dropped, the other events of
// its batch would be, too, each time: those that make room for the task among them.
func TestWhatComesTooEarlyWaitsForSoLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, l, o := claimed(t)
		o.early = func(*replica.Events) bool { return true }
		for i := range uint64(earlyMax) {
			l.take(cancel(i))
			a.Add(<-a.Arrived())
			a.Begin()
		}
		testkit.Equal(t, "turns while all wait", len(o.turns), 0)
		l.take(cancel(earlyMax))
		a.Add(<-a.Arrived())
		o.step(a)
		if len(o.turns) != 1 || len(o.turns[0].Batches) != 1 || o.turns[0].Batches[0].RequestID != earlyMax {
			t.Fatalf("one more has no place to wait: turns %v", o.turns)
		}
		time.Sleep(earlyFor)
		o.step(a)
		if len(o.turns) != 2 || len(o.turns[1].Batches) != earlyMax || !a.Idle() {
			t.Errorf("idle %v, turns %v", a.Idle(), o.turns)
		}
	})
}
