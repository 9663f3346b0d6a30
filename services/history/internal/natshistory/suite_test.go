package natshistory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/services/history/internal/turn"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// The suite is for every implementation of the partition's ports: what holds for the real server must hold for the memory, or
// the tests of package partition would prove nothing.

// suitePorts is one implementation, on an empty partition.
type suitePorts struct {
	Log         partition.Log
	TimerStore  partition.TimerStore
	Checkpoints partition.Checkpoints
	// Submit appends a submit batch that domains share, as a frontend does, SubmitOf one of a domain.
	Submit   func(lane ids.Lane, batch []byte) uint64
	SubmitOf func(at replica.Queue, batch []byte) uint64
	// SubmitMember appends tasks of a batch of shop.
	SubmitMember func(lane ids.Lane, id string, tasks []byte) uint64
}

func task(n uint64, at time.Time) *logv1.Record {
	id := ids.NewTaskID(at, 0, n)
	return &logv1.Record{Id: id[:], Domain: "shop", Tasklist: "mail", Type: "t", Policy: &logv1.Policy{MaxAttempts: 1}}
}

func encodedBatch(t *testing.T, tasks ...*logv1.Record) []byte {
	t.Helper()
	return testkit.Encoded(t, &logv1.Batch{Tasks: tasks})
}

// exercisePorts runs the suite; each part on ports of its own.
func exercisePorts(t *testing.T, make func(t *testing.T) suitePorts) {
	t.Helper()
	for name, part := range map[string]func(*testing.T, suitePorts){
		"lanes are read apart, in order, live": lanesApart, "replay ends": replayEnds, "forget": forget,
		"a domain's messages": ofDomain, "forget beside a domain that lags": forgetBeside, "ends": ends, "members": members, "turns are appended behind the last one": turnsInLine, "timer tail": timerTail, "checkpoint is compare-and-set": checkpoints,
	} {
		t.Run(name, func(t *testing.T) { part(t, make(t)) })
	}
}

// members: the last message that has tasks of a batch, in each lane.
func members(t *testing.T, p suitePorts) {
	member := func(n uint64, id string) []byte {
		r := task(n, time.Now())
		r.BatchId = id
		return encodedBatch(t, r)
	}
	p.Submit(2, encodedBatch(t, task(1, time.Now())))
	p.SubmitMember(2, "a", member(2, "a"))
	p.SubmitMember(4, "a", member(3, "a"))
	p.SubmitMember(ids.LaneKeyed, "b", member(4, "b"))
	p.SubmitOf(replica.Queue{Lane: 4, Place: "shop"}, encodedBatch(t, task(5, time.Now())))
	for _, c := range []struct {
		domain, id string
		want       []ids.Position
	}{{"shop", "a", []ids.Position{ids.NewPosition(2, 2), ids.NewPosition(3, 4)}}, {"shop", "b", []ids.Position{ids.NewPosition(4, ids.LaneKeyed)}}, {"shop", "c", nil}, {"depot", "a", nil}} {
		got, err := p.Log.LastMembers(t.Context(), c.domain, c.id)
		testkit.NoError(t, err)
		testkit.Equal(t, c.domain+" "+c.id, fmt.Sprint(got), fmt.Sprint(c.want))
	}
}

// appendTurn appends an empty turn behind the last one.
func appendTurn(t *testing.T, p suitePorts) uint64 {
	t.Helper()
	last, err := p.Log.LastTurn(t.Context())
	testkit.NoError(t, err)
	seq, err := p.Log.Append(t.Context(), (&record.Turn{LogVersion: 1, Epoch: last.Seq + 1}).Append(nil), last.Seq)
	testkit.NoError(t, err)
	return seq
}

// turnsInLine: a turn is refused that does not follow the last one, also if all before that is forgotten.
func turnsInLine(t *testing.T, p suitePorts) {
	ctx := t.Context()
	if last, err := p.Log.LastTurn(ctx); err != nil || last.Seq != 0 {
		t.Fatalf("an empty log ends with turn %d, %v", last.Seq, err)
	}
	first, second := appendTurn(t, p), appendTurn(t, p)
	p.Submit(1, encodedBatch(t, task(1, time.Now())))
	testkit.NoError(t, p.Log.Forget(ctx, replica.Levels{Events: first}))
	for _, after := range []uint64{0, first, second + 1} {
		if _, err := p.Log.Append(ctx, []byte("late"), after); !errors.Is(err, turn.ErrWrongTurn) {
			t.Errorf("behind %d: %v, want ErrWrongTurn", after, err)
		}
	}
	third, err := p.Log.Append(ctx, (&record.Turn{LogVersion: 1, Number: 3}).Append(nil), second)
	testkit.NoError(t, err)
	last, err := p.Log.LastTurn(ctx)
	if there, readErr := record.ReadTurn(last.Data); err != nil || readErr != nil || last.Seq != third || there.Number != 3 || time.Since(last.Time).Abs() > time.Minute {
		t.Errorf("the last turn is %d, %+v, at %v, %v %v", last.Seq, there, last.Time, err, readErr)
	}
}

func lanesApart(t *testing.T, p suitePorts) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	now := time.Now()
	s1 := p.Submit(1, encodedBatch(t, task(1, now)))
	appendTurn(t, p)
	s3 := p.Submit(2, encodedBatch(t, task(2, now)))
	got := make(chan uint64, 10)
	failed := make(chan error, 1)
	go func() {
		failed <- p.Log.Read(ctx, 1, "", 1, 0, func(r partition.Record) error { got <- r.Seq; return nil })
	}()
	want := []uint64{s1, p.Submit(1, encodedBatch(t, task(3, now))), p.Submit(1, encodedBatch(t, task(4, now)))}
	for _, seq := range want {
		if g := <-got; g != seq {
			t.Fatalf("read %d, want %d", g, seq)
		}
	}
	cancel()
	testkit.NoError(t, <-failed)
	if n, err := p.Log.Backlog(t.Context(), replica.Queue{Lane: 1}, s1); err != nil || n != 2 {
		t.Errorf("backlog %d %v, want 2", n, err)
	}
	if _, of, err := p.Log.Ends(t.Context()); err != nil || of[partition.SourceEvents] != s1+1 || of[2] != s3 {
		t.Errorf("ends %v %v", of, err)
	}
}

func replayEnds(t *testing.T, p suitePorts) {
	ctx := t.Context()
	for range 3 {
		appendTurn(t, p)
		p.Submit(3, encodedBatch(t, task(1, time.Now())))
	}
	var events, submits []uint64
	collect := func(to *[]uint64) func(partition.Record) error {
		return func(r partition.Record) error { *to = append(*to, r.Seq); return nil }
	}
	testkit.NoError(t, p.Log.Read(ctx, partition.SourceEvents, "", 2, 4, collect(&events)))
	testkit.NoError(t, p.Log.Read(ctx, 3, "", 1, 4, collect(&submits)))
	if err := p.Log.Read(ctx, 5, "", 1, 6, collect(&submits)); err != nil {
		t.Fatal(err) // nothing there: it must end all the same
	}
	if !slices.Equal(events, []uint64{3}) || !slices.Equal(submits, []uint64{2, 4}) {
		t.Errorf("events %v, submits %v", events, submits)
	}
}

func forget(t *testing.T, p suitePorts) {
	ctx := t.Context()
	for range 3 {
		p.Submit(1, encodedBatch(t, task(1, time.Now())))
		appendTurn(t, p)
	}
	testkit.NoError(t, p.Log.Forget(ctx, replica.Levels{Lanes: [ids.Lanes]uint64{1: 3}, Events: 2}))
	var left []uint64
	note := func(r partition.Record) error { left = append(left, r.Seq); return nil }
	testkit.NoError(t, errors.Join(p.Log.Read(ctx, 1, "", 1, 6, note), p.Log.Read(ctx, partition.SourceEvents, "", 1, 6, note)))
	if !slices.Equal(left, []uint64{5, 4, 6}) {
		t.Errorf("left %v, want 5 4 6", left)
	}
	if last, _, err := p.Log.Ends(ctx); err != nil || last != 6 {
		t.Errorf("last %d %v: forgetting must not move it", last, err)
	}
}

// ofDomain: what is filed under a domain is read and counted apart, whatever the tasklist, or that of one tasklist; and is in its lane too.
func ofDomain(t *testing.T, p suitePorts) {
	ctx := t.Context()
	shop, depot := replica.Queue{Lane: 2, Place: "shop"}, replica.Queue{Lane: 2, Place: "depot"}
	p.Submit(2, encodedBatch(t, task(1, time.Now())))
	p.SubmitOf(shop, encodedBatch(t, task(2, time.Now())))
	p.SubmitOf(depot, encodedBatch(t, task(3, time.Now())))
	p.SubmitOf(replica.Queue{Lane: 3, Place: "shop"}, encodedBatch(t, task(4, time.Now())))
	p.SubmitOf(shop, encodedBatch(t, task(5, time.Now())))
	p.SubmitOf(replica.Queue{Lane: 2, Place: "shop.bulk"}, encodedBatch(t, task(6, time.Now())))
	for _, c := range []struct {
		at      ids.Place
		want    []uint64
		backlog uint64
	}{
		{"shop", []uint64{2, 5, 6}, 2},
		{"shop.bulk", []uint64{6}, 1},
		{"shop.bul", nil, 0},
		{"depot", []uint64{3}, 1},
		{"", []uint64{1, 2, 3, 5, 6}, 3},
		{"shared", nil, 0},
		{"sho", nil, 0},
	} {
		var got []uint64
		err := p.Log.Read(ctx, 2, c.at, 1, 6, func(r partition.Record) error { got = append(got, r.Seq); return nil })
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q has %v, %v", c.at, got, err)
		}
		if n, err := p.Log.Backlog(ctx, replica.Queue{Lane: 2, Place: c.at}, 2); err != nil || n != c.backlog {
			t.Errorf("%d of %q lie behind, %v", n, c.at, err)
		}
	}
}

// forgetBeside: one domain that needs much of a lane keeps no one else's messages, and loses none of its own.
func forgetBeside(t *testing.T, p suitePorts) {
	ctx := t.Context()
	at := func(place ids.Place) replica.Queue { return replica.Queue{Lane: 2, Place: place} }
	for range 2 {
		p.SubmitOf(at("stuck"), encodedBatch(t, task(1, time.Now())))
		p.SubmitOf(at("shop"), encodedBatch(t, task(2, time.Now())))
		p.Submit(2, encodedBatch(t, task(3, time.Now())))
		p.SubmitOf(at("depot"), encodedBatch(t, task(4, time.Now())))
	}
	for _, place := range []ids.Place{"mall.mail", "mall.bulk", "mall.mail", "mall.bulk"} { // 9 to 12
		p.SubmitOf(at(place), encodedBatch(t, task(5, time.Now())))
	}
	levels := replica.Levels{Lanes: [ids.Lanes]uint64{2: 11}, Queues: []replica.QueueLevel{
		{Queue: at("depot"), Seq: 8}, {Queue: at("mall.bulk"), Seq: 9}, {Queue: at("stuck"), Seq: 1},
	}}
	testkit.NoError(t, p.Log.Forget(ctx, levels))
	var left []uint64
	testkit.NoError(t, p.Log.Read(ctx, 2, "", 1, 12, func(r partition.Record) error { left = append(left, r.Seq); return nil }))
	if !slices.Equal(left, []uint64{5, 10, 12}) {
		t.Errorf("left %v, want those of stuck and of the tasklist bulk", left)
	}
}

func ends(t *testing.T, p suitePorts) {
	ctx := t.Context()
	if last, of, err := p.Log.Ends(ctx); err != nil || last != 0 || of != [partition.Sources]uint64{} {
		t.Errorf("an empty log ends at %d, %v, %v", last, of, err)
	}
	p.Submit(0, encodedBatch(t, task(1, time.Now())))
	later := p.Submit(0, encodedBatch(t, task(2, time.Now())))
	urgent := p.Submit(1, encodedBatch(t, task(3, time.Now())))
	want := [partition.Sources]uint64{0: later, 1: urgent}
	if last, of, err := p.Log.Ends(ctx); err != nil || last != urgent || of != want {
		t.Errorf("the log ends at %d, %v, %v; want %d, %v", last, of, err, urgent, want)
	}
}

func timerTail(t *testing.T, p suitePorts) {
	ctx := t.Context()
	var last uint64
	for i := range uint64(3) {
		seq, err := p.TimerStore.Park(ctx, int64(i), encodedBatch(t, task(i+1, time.Now())))
		if err != nil || seq <= last {
			t.Fatalf("park: %d after %d, %v", seq, last, err)
		}
		last = seq
	}
	if end, err := p.TimerStore.Last(ctx); err != nil || end != last {
		t.Errorf("the store ends at %d, %v; want %d", end, err, last)
	}
	fence := testkit.Encoded(t, &logv1.Batch{Fence: true, Epoch: 7})
	if epoch, err := p.TimerStore.Fenced(ctx); err != nil || epoch != 0 {
		t.Errorf("Fenced of a store without a fence = %d, %v", epoch, err)
	}
	testkit.NoError(t, p.TimerStore.Fence(ctx, fence))
	if epoch, err := p.TimerStore.Fenced(ctx); err != nil || epoch != 7 {
		t.Errorf("Fenced behind a fence of epoch 7 = %d, %v", epoch, err)
	}
	last++
	n := 0
	if err := p.TimerStore.Tail(ctx, last-2, func([]byte) error { n++; return nil }); err != nil || n != 2 {
		t.Errorf("tail of 2 has %d, %v", n, err)
	}
	if err := p.TimerStore.Tail(ctx, last, func([]byte) error { n++; return nil }); err != nil || n != 2 {
		t.Errorf("an empty tail has %d, %v", n-2, err)
	}
}

func checkpoints(t *testing.T, p suitePorts) {
	ctx := t.Context()
	cp, rev, err := p.Checkpoints.Load(ctx)
	if cp != nil || rev != 0 || err != nil {
		t.Fatalf("a new partition has a checkpoint: %v %d %v", cp, rev, err)
	}
	rev, err = p.Checkpoints.Save(ctx, &logv1.Checkpoint{Epoch: 1}, 0)
	testkit.NoError(t, err)
	if _, err := p.Checkpoints.Save(ctx, &logv1.Checkpoint{Epoch: 9}, 0); !errors.Is(err, partition.ErrTakenOver) {
		t.Errorf("created twice: %v", err)
	}
	named := &logv1.SnapshotRef{Epoch: 1, Seq: 7, Chunks: 3, Bytes: 9, Digest: []byte("digest")}
	next, err := p.Checkpoints.Save(ctx, &logv1.Checkpoint{Epoch: 2, Snapshot: named}, rev)
	testkit.NoError(t, err)
	if _, err := p.Checkpoints.Save(ctx, &logv1.Checkpoint{Epoch: 3}, rev); !errors.Is(err, partition.ErrTakenOver) {
		t.Errorf("an old owner's checkpoint was taken: %v", err)
	}
	if cp, rev, err := p.Checkpoints.Load(ctx); err != nil || cp.Epoch != 2 || rev != next || !proto.Equal(cp.Snapshot, named) {
		t.Errorf("loaded %v %d %v", cp, rev, err)
	}
}
