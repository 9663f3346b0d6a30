package natshistory

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/porttest"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

// TestAnEarlierLetterGoes that an owner has left behind: it died after it had stored the next one, and its successor stores that again.
func TestAnEarlierLetterGoes(t *testing.T) {
	t.Parallel()
	owner, _ := archivePorts(t)
	a, ctx := NewArchive(owner, porttest.Retention), t.Context()
	task := porttest.Finished("shop", time.UnixMilli(1_700_000_000_000), 7)
	other := porttest.Finished("shop", time.UnixMilli(1_700_000_000_000), 8)
	task.State, other.State = taskstate.Dead, taskstate.Dead
	if err := a.StoreDead(ctx, []*taskstate.Task{other, task}); err != nil {
		t.Fatal(err)
	}
	task.Parkings++
	subject := topology.Dead("shop", task.Tasklist, task.ID)
	store(t, owner.NATS, subject, a.enc.AppendTask(nil, task))
	if err := a.StoreDead(ctx, []*taskstate.Task{task}); err != nil {
		t.Fatal(err)
	}
	stream, err := owner.JetStream.Stream(ctx, topology.DeadLetterStream)
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(topology.DeadFilter("shop")))
	if err != nil || info.State.Subjects[subject] != 1 || len(info.State.Subjects) != 2 {
		t.Errorf("letters %v: %v", info.State.Subjects, err)
	}
}

// TestManyLettersAreMarked: those that are dropped are gone for all readers, with one sync to disk instead of one each; those that were stored again stay.
func TestManyLettersAreMarked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		version uint32
		settle  func(*jetstream.StreamConfig)
		marked  bool
	}{
		"all know marks":               {logversion.LetterMarks, nil, true},
		"an older member":              {logversion.LetterMarks - 1, nil, false},
		"an older member has settings": {logversion.LetterMarks, func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = false }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owner, reader := archivePorts(t)
			owner.LogVersion = func() uint32 { return c.version }
			a, ctx := NewArchive(owner, porttest.Retention), t.Context()
			if c.settle != nil {
				s, err := owner.JetStream.Stream(ctx, topology.DeadLetterStream)
				if err != nil {
					t.Fatal(err)
				}
				cfg := s.CachedInfo().Config
				c.settle(&cfg)
				if _, err := owner.JetStream.UpdateStream(ctx, cfg); err != nil {
					t.Fatal(err)
				}
			}
			all := dead(t, a, 30)
			drop := wanted(t, reader, all)
			if err := a.DropDead(ctx, drop[:20]); err != nil {
				t.Fatal(err)
			}
			wantLeft(t, owner, reader, all, drop, 20, c.marked)
			if err := a.DropDead(ctx, drop[:20]); err != nil { // the answer was lost
				t.Fatal(err)
			}
			// One comes back, and dies again; an owner that is late drops what it knows.
			all[3].Parkings++
			if err := a.StoreDead(ctx, all[3:4]); err != nil {
				t.Fatal(err)
			}
			if err := a.DropDead(ctx, drop); err != nil {
				t.Fatal(err)
			}
			for i, l := range find(t, reader, all) {
				if (l != nil) != (i == 3) || i == 3 && l.Record.Parkings != 1 {
					t.Errorf("the letter of task %d is %v", i, l)
				}
			}
		})
	}
}

// dead are n tasks that have letters.
func dead(t *testing.T, a *Archive, n uint64) (all []*taskstate.Task) {
	for i := range n {
		task := porttest.Finished("shop", time.UnixMilli(1_700_000_000_000), i)
		task.State = taskstate.Dead
		all = append(all, task)
	}
	if err := a.StoreDead(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	return all
}

func find(t *testing.T, r *Reader, all []*taskstate.Task) []*partition.Letter {
	var searches []replica.Search
	for _, task := range all {
		searches = append(searches, replica.Search{ID: task.ID, Domain: task.Domain})
	}
	found, err := r.Letters(t.Context(), searches)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func wanted(t *testing.T, r *Reader, all []*taskstate.Task) (drop []replica.Letter) {
	for i, l := range find(t, r, all) {
		drop = append(drop, replica.Letter{Domain: all[i].Domain, Tasklist: all[i].Tasklist, ID: all[i].ID, Seq: l.Seq})
	}
	return drop
}

// wantLeft holds that the first letters are gone, and that the others are read.
func wantLeft(t *testing.T, c Config, r *Reader, all []*taskstate.Task, were []replica.Letter, gone int, marked bool) {
	t.Helper()
	for i, l := range find(t, r, all) {
		if (l == nil) != (i < gone) {
			t.Errorf("the letter of task %d is %v", i, l)
		}
	}
	page, err := r.Oldest(t.Context(), "shop", 0, 8, 1<<20)
	if err != nil || len(page.Letters) == 0 || page.Letters[0].Seq != were[gone].Seq || !page.Sure || marked && page.Marks != uint64(gone) {
		t.Errorf("the oldest are %+v: %v", page, err)
	}
	s, err := c.JetStream.Stream(t.Context(), topology.DeadLetterStream)
	if err != nil {
		t.Fatal(err)
	}
	// A mark each, and one message that says so.
	if want := len(all) - gone; marked && s.CachedInfo().State.Msgs != uint64(len(all)+1) || !marked && s.CachedInfo().State.Msgs != uint64(want) {
		t.Errorf("the stream has %d messages", s.CachedInfo().State.Msgs)
	}
}

// TestLettersAreNotCountedAfterAnOutage: a server that comes back removes what has run out meanwhile in any order, what is said of marks before the marks too.
func TestLettersAreNotCountedAfterAnOutage(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits until marks run out")
	srv := natskit.Run(t)
	owner, reader := archivePortsAt(t, srv)
	reader.certainty.young = 0 // as if they lay there for long
	a, ctx := NewArchive(owner, porttest.Retention), t.Context()
	const letters, gone = 420, 400
	all := dead(t, a, letters)
	var marks []natslog.Msg
	for _, l := range wanted(t, reader, all)[letters-gone:] {
		marks = append(marks, natslog.Msg{Subject: topology.Dead(l.Domain, l.Tasklist, l.ID)}.InPlace(time.Second).Over(l.Seq))
	}
	marks = append(marks, natslog.Msg{Subject: topology.DeadMarked("shop"), Data: []byte("400"), Header: nats.Header{jetstream.MsgTTLHeader: []string{"1"}}})
	if _, err := natslog.AppendAtomic(ctx, owner.NATS, marks); err != nil {
		t.Fatal(err)
	}
	srv.Stop()
	select { // past their end
	case <-time.After(3 * time.Second):
	case <-ctx.Done():
	}
	srv.Restart(t)
	testkit.Eventually(t, time.Minute, func() error {
		page, err := reader.Oldest(ctx, "shop", 0, 10, 1<<20)
		if err != nil {
			return err
		}
		n := len(page.Letters) + int(page.Behind)
		if counted := n - int(page.Marks); page.Sure && counted > letters-gone {
			t.Fatalf("%d letters are there, and %d are counted", letters-gone, counted)
		}
		if n > letters-gone {
			return errors.New("some marks are left")
		}
		return nil
	})
}

// TestLettersBehindManyMarksAreRead, and no more than are wanted.
func TestLettersBehindManyMarksAreRead(t *testing.T) {
	t.Parallel()
	owner, reader := archivePorts(t)
	owner.LogVersion = func() uint32 { return logversion.LetterMarks }
	a := NewArchive(owner, porttest.Retention)
	all := dead(t, a, 5*oldestRounds)
	const left = 3
	drop := wanted(t, reader, all)
	if err := a.DropDead(t.Context(), drop[left:]); err != nil {
		t.Fatal(err)
	}
	if err := a.DropDead(t.Context(), drop[:left]); err != nil { // the first sequence is that of a mark
		t.Fatal(err)
	}
	for _, task := range all[:left] {
		task.Parkings++
	}
	if err := a.StoreDead(t.Context(), all[:left]); err != nil {
		t.Fatal(err)
	}
	page, err := reader.Oldest(t.Context(), "shop", 0, 1, 1<<20)
	if err != nil || len(page.Letters) != 1 || page.Behind-page.Marks != left-1 || !page.Sure {
		t.Errorf("of %d letters %d are read, %d lie behind them with %d marks: %v", left, len(page.Letters), page.Behind, page.Marks, err)
	}
}

func TestWhenAllMarksAreSaid(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	s := certainty{young: time.Minute, since: now}
	old := now.Add(-time.Hour)
	if s.all(0, old, now.Add(sureAfter-1)) || !s.all(0, old, now.Add(sureAfter)) || !s.all(0, now.Add(-time.Second), now) {
		t.Error("of a reader that was connected once")
	}
	if later := now.Add(2 * sureAfter); s.all(1, old, later) || s.all(1, old, later.Add(sureAfter-1)) || !s.all(1, old, later.Add(sureAfter)) {
		t.Error("of one that lost its connection")
	}
}
