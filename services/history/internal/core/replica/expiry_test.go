package replica

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// TestALapseThatTheLogRefusesIsProposedAgain, after a while; and the tasklist counts what has expired.
func TestALapseThatTheLogRefusesIsProposedAgain(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(func(t *taskstate.Task) {
		t.Extra = &taskstate.Extra{Expiry: taskstate.Expiry{StartWithinMS: 1000}}
	}, 1)
	b.now.MS += 1000
	fx := b.step(Tick{})
	if len(fx.Append) != 1 || fx.Append[0].Kind != taskstate.Lapse || fx.Append[0].Domain != "shop" {
		t.Fatalf("proposed %+v", fx.Append)
	}
	b.step(Stored{Kind: JobAppend, Refused: fx.Append})
	if fx := b.step(Tick{}); fx.Append != nil {
		t.Fatalf("proposed at once: %+v", fx.Append)
	}
	b.now.MS += refusedWaitMS
	if fx = b.step(Tick{}); len(fx.Append) != 1 {
		t.Fatal("not proposed again")
	}
	b.seq++
	b.step(&Events{Seq: b.seq, At: b.now.MS, Events: []taskstate.Event{{Kind: taskstate.Lapse, ID: id(1), Fence: fx.Append[0].Fence, Domain: "shop"}}})
	if got := b.r.Describe("shop", "mail"); got != (dispatch.Census{Expired: 1, Admitted: 1}) {
		t.Errorf("%+v", got)
	}
}
