package replica

import (
	"slices"
	"strconv"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// numbers are those from first to last.
func numbers(first, last int) (all []int) {
	for n := first; n <= last; n++ {
		all = append(all, n)
	}
	return all
}

// TestI5_AHintIsServedInParts: a hint triggers so many, those first whose trigger is the oldest;
// the next one goes on behind them.
func TestI5_AHintIsServedInParts(t *testing.T) {
	b := newBench(t, Config{})
	last := 2*dispatch.MissingMax + 10
	for from := 1; from <= last; from += 1000 {
		b.submit(nil, numbers(from, min(last, from+999))...)
	}
	b.now.MS += dispatch.MissingAgeMS + 1
	b.equal("the first hint", triggered(b.hungry("shop", "mail")), numbers(1, dispatch.MissingMax))
	b.start(3)
	b.equal("the second hint", triggered(b.hungry("shop", "mail")), numbers(dispatch.MissingMax+1, 2*dispatch.MissingMax))
	b.equal("the third hint", triggered(b.hungry("shop", "mail")), numbers(2*dispatch.MissingMax+1, last))
	b.equal("all are on their way", triggered(b.hungry("shop", "mail")), nil)
	b.now.MS += dispatch.MissingAgeMS + 1
	b.equal("but for the one that runs", triggered(b.hungry("shop", "mail")), append([]int{1, 2}, numbers(4, dispatch.MissingMax+1)...))
}

// TestI5_HealingIsServedInParts: a tick looks at so many tasks and tasklists, the next one
// goes on, and nothing is left out, whatever leaves meanwhile.
func TestI5_HealingIsServedInParts(t *testing.T) {
	b := newBench(t, Config{})
	last := 2 * dispatch.HealMax
	for n := 1; n <= last; n += 1000 {
		b.submit(func(t *taskstate.Task) { t.Tasklist = "list-" + strconv.Itoa(n/3000) }, numbers(n, n+999)...)
	}
	b.now.MS += dispatch.OldAgeMS + 1
	seen := triggered(b.step(Tick{}))
	if n := len(seen); n == 0 || n > dispatch.HealMax {
		t.Fatalf("%d are triggered at one tick", n)
	}
	for n := last; n > last-3; n-- {
		b.start(n)
	}
	for range 3 {
		seen = append(seen, triggered(b.step(Tick{}))...)
	}
	slices.Sort(seen)
	b.equal("triggered", seen, numbers(1, last-3))
}

// TestI5_AClockThatIsPutBack does not keep lost triggers for as long.
func TestI5_AClockThatIsPutBack(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1)
	b.now.MS -= 3_600_000
	b.equal("hungry", triggered(b.hungry("shop", "mail")), []int{1})
}

// TestAnAttemptThatIsDueByTheLogOnly: a grab came too early by the log, and the owner's clock is far
// behind that. The task is triggered again when the wait is over by the log.
func TestAnAttemptThatIsDueByTheLogOnly(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1)
	b.start(1)
	b.finish(taskstate.Failed, 1)
	e := b.r.tasks[id(1)]
	b.now.MS -= 60_000
	b.seq++
	grab := taskstate.Event{Kind: taskstate.Started, ID: id(1), Fence: ids.Token{Position: e.Position, Version: 2, Nonce: 9}}
	b.step(&Events{Seq: b.seq, At: e.DueAt - 100, Events: []taskstate.Event{grab}})
	b.now.MS += 99
	b.equal("too early", triggered(b.step(Tick{})), nil)
	b.now.MS++
	b.equal("due by the log", triggered(b.step(Tick{})), []int{1})
}
