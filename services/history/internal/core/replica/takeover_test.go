package replica

import (
	"reflect"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// TestTakeoverSaysNothing: until it is over, a checkpoint says what the one before said, and
// nothing is answered, triggered, stored, proposed or woken. Slots are released: the owner
// before may have died first (I8, R71).
func TestTakeoverSaysNothing(t *testing.T) {
	cp := Checkpoint{Floor: 3, TimerSeq: 5, ArchiveSeq: 6}
	cp.Ack[3], cp.Read[3], cp.Read[4] = 1, 2, 9
	cfg := carryConfig()
	cfg.CheckpointEveryMS = 1
	b := &bench{T: t, r: New(cfg, cp, 0), now: Now{MS: scenarioStart}, seq: 9}
	b.submit(nil, 1, 2)
	b.start(1)
	b.start(2)
	fx := b.finish(taskstate.Succeeded, 2)
	if len(fx.Releases) != 1 || fx.Answers != nil || fx.Triggers != nil || fx.Ended != nil {
		t.Errorf("%+v", fx)
	}
	b.step(&Events{Seq: 20, Events: []taskstate.Event{{Kind: taskstate.Cancel, ID: id(7)}}})
	b.now.MS += 60_000
	fx = b.step(Tick{})
	if fx.Save == nil || !reflect.DeepEqual(*fx.Save, cp) {
		t.Errorf("saved is %+v", fx.Save)
	}
	if fx.Append != nil || fx.Purge != nil || fx.Searches != nil || fx.Archive != nil {
		t.Errorf("%+v", fx)
	}
	if _, ok := b.r.NextWake(); ok {
		t.Error("it would wake")
	}
	if b.step(Saved{OK: true, SentAt: time.Second}); !b.r.LeaseHolds(3*time.Second-1) || b.r.LeaseHolds(3*time.Second) {
		t.Error("a save in a takeover keeps the lease")
	}
	fx = b.step(Recovered{})
	b.step(Draining{})
	if len(fx.Searches) != 1 || fx.Searches[0].ID != id(7) || b.r.ReadLevels()[4] != 9 {
		t.Errorf("%+v, levels %v", fx, b.r.ReadLevels())
	}
	if len(b.r.archive.busy) != 1 {
		t.Error("what has ended is not archived")
	}
	if fx = b.step(Tick{}); len(fx.Append) != 1 || fx.Append[0].Kind != taskstate.Expired {
		t.Errorf("%+v", fx.Append)
	}
	if fx = b.step(Tick{}); fx.Append != nil {
		t.Errorf("proposed twice: %+v", fx.Append)
	}
}

// TestCheckpointIsSavedOneAtATime, and a purge likewise.
func TestCheckpointIsSavedOneAtATime(t *testing.T) {
	cfg := carryConfig()
	cfg.CheckpointEveryMS, cfg.PurgeEveryMS = 1000, 1000
	b := newBench(t, cfg)
	b.submit(nil, 1)
	if fx := b.step(Tick{}); fx.Save == nil || b.r.Idle() {
		t.Fatal("the first is due at once")
	}
	b.now.MS += 5000
	if fx := b.step(Tick{}); fx.Save != nil {
		t.Fatal("two at a time")
	}
	b.step(Saved{OK: true})
	if fx := b.step(Tick{}); fx.Save == nil {
		t.Fatal("it was due")
	}
	b.step(Saved{OK: true})
	b.now.MS += 999
	if fx := b.step(Tick{}); fx.Save != nil {
		t.Fatal("too early")
	}
	b.finish(taskstate.Cancel, 1)
	b.step(Draining{})
	b.step(Stored{Kind: JobArchive})
	b.now.MS++
	b.step(Tick{})
	b.step(Saved{OK: true})
	b.now.Mono += purgeAfter + 1
	b.now.MS += 1000
	fx := b.step(Tick{})
	if fx.Purge == nil || fx.Purge.Lanes[3] != 1 || fx.Purge.Events != 2 {
		t.Fatalf("purge %+v", fx.Purge)
	}
	b.step(Saved{})
	b.submit(nil, 2)
	b.now.MS += 5000
	b.step(Tick{})
	b.step(Saved{OK: true})
	b.now.Mono += purgeAfter + 1
	b.now.MS += 5000
	if fx = b.step(Tick{}); fx.Purge != nil {
		t.Fatal("two purges at a time")
	}
	b.step(Purged{})
}

// TestPurgesKeepTheirDistance, as the configuration says.
func TestPurgesKeepTheirDistance(t *testing.T) {
	cfg := carryConfig()
	cfg.CheckpointEveryMS, cfg.PurgeEveryMS = 1, 50
	b := newBench(t, cfg)
	b.event(taskstate.Heartbeat, 9, ids.Token{}) // moves the floor
	b.step(Tick{})
	b.step(Saved{OK: true})
	b.now.Mono += purgeAfter + 1
	b.now.MS += 49
	if fx := b.step(Tick{}); fx.Purge != nil {
		t.Error("purged early")
	}
	b.now.MS++
	if fx := b.step(Tick{}); fx.Purge == nil {
		t.Error("not purged")
	}
}

// TestRefusedLeaseIsLookedAtAgain: a lease that is over by our clock and not by the log's is
// proposed again after what is left of it (R44).
func TestRefusedLeaseIsLookedAtAgain(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1)
	b.start(1)
	token := b.r.Get(id(1)).Token()
	b.now.MS += 60_000
	if fx := b.step(Tick{}); len(fx.Append) != 1 {
		t.Fatal("not proposed")
	}
	b.step(Stored{Kind: JobAppend})
	b.seq++
	expired := []taskstate.Event{{Kind: taskstate.Expired, ID: id(1), Fence: token}}
	b.step(&Events{Seq: b.seq, At: scenarioStart + 3000, Events: expired})
	if at, ok := b.r.NextWake(); !ok || at != b.now.MS+1000 {
		t.Fatalf("wake in %d ms", at-b.now.MS)
	}
	b.now.MS += 1000
	if fx := b.step(Tick{}); len(fx.Append) != 1 {
		t.Fatal("not proposed again")
	}
	b.seq++
	stale := []taskstate.Event{{Kind: taskstate.Expired, ID: id(1), Fence: ids.Token{Position: token.Position, Version: 9}}}
	b.step(&Events{Seq: b.seq, At: scenarioStart + 3000, Events: stale})
	if _, ok := b.r.NextWake(); ok {
		t.Fatal("another attempt's")
	}
}
