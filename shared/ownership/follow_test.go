package ownership

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// followed is a node of four partitions in fake time, beside another one that leaves and holds some. Its heartbeats come back at once.
type followed struct {
	*Share
	serving serving
	members *members
	told    chan signal
	revised uint64
	// theirs are what the other node is not done with; nil = it is gone.
	theirs []int
	// release ends the drain of a partition.
	release chan struct{}
}

// follows runs a test beside such a node.
func follows(t *testing.T, theirs []int, test func(t *testing.T, f *followed)) {
	synctest.Test(t, func(t *testing.T) {
		f := &followed{told: make(chan signal), theirs: theirs, release: make(chan struct{})}
		f.Share = New(Config{
			Service: "test", Node: "a", Count: 4, Beat: beat, Expiry: expiry, Version: versionOne, Newest: 1, Unfenced: true, Log: slog.New(slog.DiscardHandler),
			Serve: f.serving.with(new(serving), f.release),
		})
		f.members = newMembers(nil, "test", "a", beat, f.cfg.Log)
		ctx, stop := context.WithCancel(t.Context())
		a := newAssignment(ctx, f.cfg, f.members.beats.Load)
		f.members.announce(f.announcement(a))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			f.follow(ctx, f.members, f.told, a)
		}()
		test(t, f)
		stop()
		<-ended
		close(f.release)
		for a.busy() {
			a.forget(<-a.ended)
		}
	})
}

func (f *followed) hears(node string, shows Announcement) {
	f.revised++
	f.told <- signal{node: node, revision: f.revised, date: time.Now(), shows: shows}
	synctest.Wait()
}

// beats has all show a heartbeat ten times a second, for a time.
func (f *followed) beats(d time.Duration) {
	for over := time.Now().Add(d); time.Now().Before(over); time.Sleep(beat) {
		if f.theirs != nil {
			f.hears("b", Announcement{LogVersion: 1, Leaving: true, Holds: f.theirs, EveryMs: beat.Milliseconds()})
		}
		shows := *f.members.shows.Load()
		shows.Run, shows.Beat, shows.EveryMs = f.members.run, f.members.beats.Add(1), beat.Milliseconds()
		f.hears("a", shows)
	}
}

func (f *followed) serves(t *testing.T, what string, want ...int) {
	t.Helper()
	synctest.Wait()
	testkit.Equal(t, what, fmt.Sprint(f.serving.partitions()), fmt.Sprint(want))
}

// A partition that another node holds for very long is served anyway, without any other change.
func TestAShareTakesWhatIsHeldForTooLong(t *testing.T) {
	follows(t, []int{1, 3}, func(t *testing.T, f *followed) {
		f.told <- signal{loaded: true}
		f.beats(handoverMax - time.Second)
		f.serves(t, "while the other node may be draining", 0, 2)
		f.beats(2 * time.Second)
		f.serves(t, "after it could have drained", 0, 1, 2, 3)
	})
}

// A node that hears itself no more ends what is unfenced when others believe it dead, and not much later.
func TestWhatIsUnfencedEndsInTime(t *testing.T) {
	follows(t, []int{}, func(t *testing.T, f *followed) {
		f.told <- signal{loaded: true}
		f.beats(2 * time.Second)
		time.Sleep(expiry - beat - 1)
		testkit.Equal(t, "owned while others wait for it", slices.Clone(f.Owned()), []int{0, 1, 2, 3})
		time.Sleep(beat/2 + 1)
		testkit.Equal(t, "owned when others do not", len(f.Owned()), 0)
	})
}

// A partition that comes back to a node while it drains there is served again when that is done, though nothing else changes then.
func TestADrainedPartitionThatCameBackIsServedAgain(t *testing.T) {
	follows(t, []int{}, func(t *testing.T, f *followed) {
		f.told <- signal{loaded: true}
		f.beats(time.Second)
		f.serves(t, "at first", 0, 1, 2, 3)
		b := func(leaves bool) {
			f.hears("b", Announcement{LogVersion: 1, Leaving: leaves, EveryMs: beat.Milliseconds()})
		}
		b(false)
		moves := len(f.Owned())
		if moves == 4 {
			t.Fatal("nothing moves to the other node")
		}
		b(true)
		f.beats(time.Second)
		testkit.Equal(t, "owned while it drains", len(f.Owned()), moves)
		for range 4 - moves {
			f.release <- struct{}{}
		}
		synctest.Wait()
		testkit.Equal(t, "owned when it has drained", f.Owned(), []int{0, 1, 2, 3})
	})
}

// putsBucket notes when heartbeats are shown, how often that is said to be, and for how long a write may take.
type putsBucket struct {
	jetstream.KeyValue
	began time.Time
	puts  []string
}

func (b *putsBucket) Put(ctx context.Context, _ string, value []byte) (uint64, error) {
	until, _ := ctx.Deadline()
	b.puts = append(b.puts, fmt.Sprint(time.Since(b.began), " every ", readAnnouncement(value).every(), " within ", time.Until(until)))
	return 1, nil
}

// A heartbeat says how often it is shown. If that changes, the next one is shown at once.
func TestHowOftenAHeartbeatIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := &putsBucket{began: time.Now()}
		m := newMembers(kv, "test", "a", 400*time.Millisecond, slog.New(slog.DiscardHandler))
		m.announce(Announcement{LogVersion: 1})
		<-m.changed // the first one is shown in any case
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			m.show(ctx)
		}()
		time.Sleep(500 * time.Millisecond)
		m.showEvery(400 * time.Millisecond)
		time.Sleep(100 * time.Millisecond)
		m.showEvery(800 * time.Millisecond)
		time.Sleep(time.Second)
		m.announce(Announcement{LogVersion: 1})
		m.announce(Announcement{LogVersion: 1, Leaving: true})
		time.Sleep(100 * time.Millisecond)
		stop()
		<-ended
		testkit.Equal(t, "shown", kv.puts, []string{
			"0s every 400ms within 500ms", "400ms every 400ms within 500ms", "600ms every 800ms within 800ms", "1.4s every 800ms within 800ms", "1.6s every 800ms within 800ms",
		})
	})
}
