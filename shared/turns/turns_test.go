package turns

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// callers is a line, and who had a turn of a second in it.
type callers struct {
	*Line
	mu  sync.Mutex
	ran []string
	// running have their turn now, and most ever had at once.
	running, most int
}

// call has a caller enter, and returns what it ends with.
func (c *callers) call(ctx context.Context, key, who string) chan error {
	ended := make(chan error, 1)
	go func() {
		ended <- c.Run(ctx, key, func() error {
			c.mu.Lock()
			c.running++
			c.most = max(c.most, c.running)
			c.ran = append(c.ran, who)
			c.mu.Unlock()
			time.Sleep(time.Second)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.running--
			return nil
		})
	}()
	synctest.Wait()
	return ended
}

// had are those who have had a turn by now.
func (c *callers) had() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.ran)
}

// isFree checks that no one has the turn, or waits for it.
func (c *callers) isFree(t *testing.T) {
	t.Helper()
	time.Sleep(time.Hour)
	synctest.Wait()
	if c.taken > 0 || c.waiting.Len() > 0 || len(c.of) > 0 {
		t.Errorf("the turn is not over: %+v", c.Line)
	}
}

// However many callers a key has, the others wait for one turn of it.
func TestI14_KeysTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &callers{Line: NewLine(Config{Most: 8, Rest: 1})}
		refused := 0
		for i := range 50 {
			select {
			case err := <-c.call(t.Context(), "flood", fmt.Sprint("flood", i)):
				testkit.Equal(t, "one too many", err, ErrBusy)
				refused++
			default:
			}
		}
		c.call(t.Context(), "shop", "shop0")
		c.call(t.Context(), "shop", "shop1")
		c.isFree(t)
		testkit.Equal(t, "refused", refused, 41)
		want := []string{"flood0", "flood1", "shop0", "flood2", "shop1", "flood3", "flood4", "flood5", "flood6", "flood7", "flood8"}
		testkit.Equal(t, "order", c.ran, want)
	})
}

// In any order of coming and leaving: one has the turn, each that stays gets it once, and nothing is left over.
func TestEachWhoStaysGetsOneTurn(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			draw := rand.New(rand.NewPCG(seed, 1))
			c := &callers{Line: NewLine(Config{Most: 3, Rest: 1})}
			ended, leave := make([]chan error, 300), make([]func(), 300)
			for who := range ended {
				ctx, cancel := context.WithCancel(t.Context())
				ended[who], leave[who] = c.call(ctx, fmt.Sprint(draw.IntN(4)), fmt.Sprint(who)), cancel
				if draw.IntN(3) == 0 {
					leave[draw.IntN(who+1)]()
				}
				time.Sleep(time.Duration(draw.IntN(3)) * time.Second)
			}
			c.isFree(t)
			if c.most > 1 {
				t.Fatalf("seed %d: %d had the turn at once", seed, c.most)
			}
			turns := map[string]int{}
			for _, who := range c.ran {
				turns[who]++
			}
			for who := range ended {
				leave[who]()
				err := <-ended[who]
				had := turns[fmt.Sprint(who)]
				if had > 1 || err == nil && had == 0 || err != nil && had > 0 || err != nil && err != ErrBusy && err != context.Canceled {
					t.Fatalf("seed %d: %d had %d turns and ended with %v", seed, who, had, err)
				}
			}
		})
	}
}

// TestARestFollowsEachTurn: it lasts for as many times as long as the turn as is configured, and for 100 ms at most, whatever the turn ended with.
func TestARestFollowsEachTurn(t *testing.T) {
	for _, c := range []struct {
		rest       int
		turn, next time.Duration
	}{{1, 30 * time.Millisecond, 60 * time.Millisecond}, {3, 30 * time.Millisecond, 120 * time.Millisecond}, {3, 3 * time.Second, 3100 * time.Millisecond}} {
		restFollows(t, c.rest, c.turn, c.next)
	}
}

func restFollows(t *testing.T, rest int, turn, next time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		l, began := NewLine(Config{Most: 1, Rest: rest}), time.Now()
		failed := errors.New("failed")
		var at []time.Duration
		run := func() error {
			return l.Run(t.Context(), "a", func() error {
				at = append(at, time.Since(began))
				time.Sleep(turn)
				return failed
			})
		}
		for range 3 {
			if err := run(); err != failed {
				t.Error(err)
			}
		}
		testkit.Equal(t, "they began at", at, []time.Duration{0, next, 2 * next})
	})
}

// TestWhoGivesUpIsNotRun: one whose context ends while it waits, or before its turn comes at once, does not run, and the next one has its turn. One too many is
// refused.
func TestWhoGivesUpIsNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &callers{Line: NewLine(Config{Most: 2, Rest: 1})}
		gone, leave := context.WithCancel(t.Context())
		first, second, last := c.call(t.Context(), "a", "first"), c.call(gone, "a", "gone"), c.call(t.Context(), "a", "last")
		testkit.Equal(t, "one too many ended with", <-c.call(t.Context(), "a", "one too many"), ErrBusy)
		leave()
		testkit.Equal(t, "the first ended with", <-first, nil)
		testkit.Equal(t, "the one that is gone ended with", <-second, context.Canceled)
		testkit.Equal(t, "the last ended with", <-last, nil)
		c.isFree(t)
		testkit.Equal(t, "a late one ended with", <-c.call(gone, "a", "late"), context.Canceled)
		c.isFree(t)
		testkit.Equal(t, "they ran", c.ran, []string{"first", "last"})
	})
}

// A caller whose context ends in the moment in which its turn comes ends that turn, whether it ran or not: the next one is not delayed.
func TestATurnThatComesTooLateIsOver(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			c := &callers{Line: NewLine(Config{Most: 1})}
			gone, leave := context.WithCancel(t.Context())
			first := make(chan error, 1)
			go func() {
				first <- c.Run(t.Context(), "a", func() error {
					time.Sleep(time.Second)
					leave()
					return nil
				})
			}()
			synctest.Wait()
			second := c.call(gone, "a", "gone")
			testkit.Equal(t, "the first ended with", <-first, nil)
			if err := <-second; err != nil && err != context.Canceled {
				t.Error(err)
			}
			testkit.Equal(t, "the next one ended with", <-c.call(t.Context(), "a", "next"), nil)
		})
	}
}

// A turn that panics is over, too.
func TestATurnThatPanicsIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &callers{Line: NewLine(Config{})}
		func() {
			defer func() { testkit.Equal(t, "it panics with", recover(), any("defect")) }()
			_ = c.Run(t.Context(), "a", func() error { panic("defect") })
		}()
		testkit.Equal(t, "the next one ended with", <-c.call(t.Context(), "a", "next"), nil)
	})
}

// As many have a turn at once as may; who comes then waits for one turn of each other key, and a key with weight 3 gets three turns for each one.
func TestI14_SeveralHaveTheirTurnAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		weight := func(key string) int { return map[string]int{"heavy": 2}[key] + 1 }
		c := &callers{Line: NewLine(Config{AtOnce: 3, Most: 20, Weight: weight})}
		for i := range 12 {
			c.call(t.Context(), "flood", fmt.Sprint("flood", i))
		}
		c.call(t.Context(), "shop", "shop")
		for range 10 {
			c.call(t.Context(), "heavy", "heavy")
		}
		testkit.Equal(t, "had a turn at first", len(c.had()), 3)
		time.Sleep(time.Second)
		synctest.Wait()
		testkit.Equal(t, "had one after a second", len(c.had()), 6)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		count := map[string]int{}
		for _, who := range c.had()[3:12] {
			count[who]++
		}
		testkit.Equal(t, "of nine turns the heavy one and the one with one caller had", []int{count["heavy"], count["shop"]}, []int{6, 1})
		c.isFree(t)
		testkit.Equal(t, "at once", c.most, 3)
	})
}

// With a rest, callers that come in a turn have the next one together, which begins after the last of the turn is done and the rest is over.
func TestWithARestCallersHaveTheirTurnTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, began := NewLine(Config{AtOnce: 2, Most: 9, Rest: 2}), time.Now()
		var mu sync.Mutex
		at := map[string]time.Duration{}
		for _, c := range []struct {
			who   string
			takes time.Duration
		}{{"first", 10 * time.Millisecond}, {"quick", 10 * time.Millisecond}, {"slow", 40 * time.Millisecond}, {"last", 10 * time.Millisecond}} {
			go func() {
				testkit.Check(t, l.Run(t.Context(), "a", func() error {
					mu.Lock()
					at[c.who] = time.Since(began)
					mu.Unlock()
					time.Sleep(c.takes)
					return nil
				}))
			}()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		testkit.Equal(t, "they began at", at, map[string]time.Duration{
			"first": 0, "quick": 30 * time.Millisecond, "slow": 30 * time.Millisecond, "last": 150 * time.Millisecond,
		})
	})
}

// What takes long has a turn for each step, and others have theirs between. Once it has begun it is not refused.
func TestI14_StepsLetOthersIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &callers{Line: NewLine(Config{Most: 1})}
		steps, ended := 0, make(chan error, 1)
		go func() {
			ended <- c.Steps(t.Context(), "flood", func() (bool, error) {
				steps++
				c.ran = append(c.ran, fmt.Sprint("step", steps))
				time.Sleep(time.Second)
				return steps == 3, nil
			})
		}()
		synctest.Wait()
		c.call(t.Context(), "shop", "shop")
		c.call(t.Context(), "flood", "other")
		testkit.NoError(t, <-ended)
		c.isFree(t)
		testkit.Equal(t, "they ran", c.ran, []string{"step1", "shop", "other", "step2", "step3"})
	})
}

// A step that fails is the last one, and so is one whose caller has left.
func TestStepsEndWithAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &callers{Line: NewLine(Config{})}
		failed, steps := errors.New("failed"), 0
		step := func() (bool, error) { steps++; return false, failed }
		if err := c.Steps(t.Context(), "shop", step); err != failed || steps != 1 {
			t.Errorf("%d steps, %v", steps, err)
		}
		gone, leave := context.WithCancel(t.Context())
		if err := c.Steps(gone, "shop", func() (bool, error) { leave(); return false, nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("its caller has left: %v", err)
		}
		c.isFree(t)
	})
}
