package shard

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/question"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tablecall"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// The shard is shown as served until that succeeds.
func TestOpenIsTriedUntilItSucceeds(t *testing.T) {
	inWorld(t, func(w *world) {
		w.opens = []error{errAway, errAway}
		w.run(match.Effects{Open: true}, time.Minute)
		w.expect("open", "0s open", "250ms open", "500ms open")
	})
}

// A newer owner, no matter who notices it, ends the loop at once; what was asked for before goes out.
func TestOvertakenEndsTheLoop(t *testing.T) {
	for name, overtake := range map[string]func(w *world){
		"by a verdict": func(w *world) {
			w.run(match.Effects{Acks: []uint64{7}, Overtaken: true}, 0)
			w.expect("ack", "0s ack 7")
		},
		"by the epoch": func(w *world) {
			w.opens = []error{errors.Join(errAway, ErrOvertaken)}
			w.run(match.Effects{Open: true}, 0)
		},
		"by the hint stream": func(w *world) {
			w.shard.Overtaken()
			w.shard.Overtaken() // once more does no harm
			synctest.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				overtake(w)
				if err := <-w.done; !errors.Is(err, ErrOvertaken) {
					t.Errorf("ended with %v", err)
				}
				testkit.Equal(t, "counted", w.shard.Metrics.Overtaken.Value(), 1)
				steps := len(w.log)
				w.shard.Put(func(in *match.Inputs) { in.Bounced = append(in.Bounced, 1) })
				synctest.Wait()
				testkit.Equal(t, "there was a step after the end", len(w.log), steps)
				w.done <- nil
			})
		})
	}
}

// leaving runs a shard whose context ends, with the core's steps as given.
func leaving(t *testing.T, step func(w *world, fx *match.Effects)) (took time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		inBubble(t, func(w *world, cancel context.CancelFunc) {
			var drains []bool
			w.mu.Lock()
			w.step = func(in *match.Inputs, fx *match.Effects) {
				drains = append(drains, in.Drain)
				step(w, fx)
			}
			w.mu.Unlock()
			began := time.Now()
			cancel()
			testkit.Check(t, <-w.done)
			took = time.Since(began)
			if slices.Contains(drains, false) {
				t.Errorf("the core was asked to drain by %v", drains)
			}
		})
	})
	return took
}

// The drain lasts until the core has nothing under way, each step is reported to it.
func TestDrainLastsUntilTheCoreIsDone(t *testing.T) {
	steps := 0
	took := leaving(t, func(w *world, fx *match.Effects) {
		if steps++; steps < 3 {
			fx.Wake = w.shard.Clock.Now().Mono + time.Second
		}
	})
	testkit.Equal(t, "it took", took, 2*time.Second)
}

func TestDrainIsCutShort(t *testing.T) {
	took := leaving(t, func(w *world, fx *match.Effects) { fx.Wake = w.shard.Clock.Now().Mono + time.Second })
	testkit.Equal(t, "it took", took, drainTimeout)
}

// Calls that hang do not outlive the shard.
func TestNothingRunsOnBesideTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inBubble(t, func(w *world, cancel context.CancelFunc) {
			w.hung["1"] = true
			w.run(match.Effects{Requests: tablecall.Requests{Calls: calls("a1"), Opens: []string{"b1"}}, Asks: []question.Question{{ID: 1}}}, 0)
			cancel()
			began := time.Now()
			if err := <-w.done; err != nil || time.Since(began) != 0 {
				t.Errorf("ended with %v after %v", err, time.Since(began))
			}
			w.expect("outcome opened answer")
		})
	})
}
