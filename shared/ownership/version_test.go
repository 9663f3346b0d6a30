package ownership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/signalkit"
)

// TestAnnouncements: heartbeats of programs that announced more are read; those that cannot be read are of no version. R21.
func TestAnnouncements(t *testing.T) {
	for value, want := range map[string]Announcement{
		"":                                      {},
		"rubbish":                               {},
		`{"log_version":3}`:                     {LogVersion: 3},
		`{"log_version":2,"stopped":[4],"x":1}`: {LogVersion: 2, Stopped: []int{4}},
	} {
		if got := readAnnouncement([]byte(value)); !got.equal(want) {
			t.Errorf("%q: %+v, want %+v", value, got, want)
		}
	}
	a := Announcement{LogVersion: 2, Stopped: []int{1, 3}, Leaving: true, Holds: []int{0}}
	if got := readAnnouncement(a.encode()); !got.equal(a) {
		t.Errorf("%+v", got)
	}
}

// TestI13WhoCannotReadIsNoCandidate. R21.
func TestI13WhoCannotReadIsNoCandidate(t *testing.T) {
	now := time.Unix(1000, 0)
	v := newView("me", 1, 250*time.Millisecond, time.Second)
	v.announces(Announcement{LogVersion: 2, Stopped: []int{0}})
	v.take(signal{node: "old", revision: 1, shows: Announcement{LogVersion: 1}}, now)
	v.take(signal{node: "new", revision: 2, shows: Announcement{LogVersion: 3, Stopped: []int{5}}}, now)
	v.take(signal{node: "leaving", revision: 3, shows: Announcement{LogVersion: 3, Leaving: true}}, now)
	for version, want := range map[uint32]string{1: "[{me [0]} {new [5]} {old []}]", 2: "[{me [0]} {new [5]}]", 3: "[{new [5]}]", 4: "[]"} {
		testkit.Equal(t, fmt.Sprintf("version %d", version), fmt.Sprint(v.candidates(version)), want)
	}
}

// TestRefusedPartitionsPassOn: a partition is never with who refuses it, always with
// somebody who does not, and the others stay where they were as far as shares allow.
func TestRefusedPartitionsPassOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "partitions")
		var nodes []Candidate
		for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
			nodes = append(nodes, Candidate{
				Node:    fmt.Sprintf("n%d", i),
				Refuses: rapid.SliceOfDistinct(rapid.IntRange(0, n-1), rapid.ID).Draw(t, "refuses"),
			})
		}
		owners := Assign(nodes, n)
		if !slices.Equal(owners, Assign(rapid.Permutation(nodes).Draw(t, "order"), n)) {
			t.Fatal("the order of the nodes decides")
		}
		for p, owner := range owners {
			willing := 0
			for _, c := range nodes {
				refuses := slices.Contains(c.Refuses, p)
				if refuses && owner == c.Node {
					t.Fatalf("partition %d is with %s, which refuses it", p, owner)
				}
				if !refuses {
					willing++
				}
			}
			if (owner == "") != (willing == 0) {
				t.Fatalf("partition %d is with %q, %d nodes are willing", p, owner, willing)
			}
		}
	})
}

func TestRefusalsAreTriedAgainWhereNobodyServes(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1000+int64(s), 0) }
	r := newRefusals(30 * time.Second)
	step := func(s int, owners []string, want ...int) {
		t.Helper()
		if got := r.retry(owners, at(s)); !slices.Equal(got, want) {
			t.Errorf("at %d: %v, want %v", s, got, want)
		}
	}
	r.giveUp(1, at(0))
	step(29, []string{"", ""})
	step(100, []string{"", "b"}) // somebody serves it
	step(100, []string{"", ""}, 1)
	step(200, []string{"", ""}) // it is being tried
	r.giveUp(1, at(200))
	step(259, []string{"", ""})
	testkit.Equal(t, "given up", r.partitions(), []int{1})
	step(260, []string{"", ""}, 1) // twice as late as the first time
	if got := r.partitions(); len(got) > 0 {
		t.Errorf("given up: %v", got)
	}
}

// lines is a log that tests read.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// TestI13AGivenUpPartitionPassesOn, with an alarm, and is tried again only where no
// node is left. R21.
func TestI13AGivenUpPartitionPassesOn(t *testing.T) {
	srv := server(t)
	var broken atomic.Bool
	broken.Store(true)
	const p = 5
	metrics := map[string]*telemetry.Metrics{"a": signalkit.Metrics(t), "b": signalkit.Metrics(t)}
	log := &lines{}
	refusing := func(name string) *node {
		return joinWith(t, srv, name, func(c *Config, s *serving) {
			c.Metrics, c.StoppedRetry = metrics[name], expiry
			c.Log = slog.New(slog.NewTextHandler(log, nil))
			c.Serve = func(ctx context.Context, partition int) error {
				if partition == p && broken.Load() {
					return fmt.Errorf("the record is of another world: %w", ErrGiveUp)
				}
				return s.serve(ctx, partition)
			}
		})
	}
	alarm := func(name string) int64 {
		return metrics[name].Gauge(signals.PartitionStopped, "test", "5").Value()
	}
	a := refusing("a")
	testkit.Eventually(t, soon, func() error {
		if alarm("a") != 1 || !log.has("another world") {
			return errors.New("no alarm")
		}
		return nil
	})
	c := join(t, srv, "c", normal) // it accepts what a does not
	testkit.Eventually(t, soon, func() error {
		if !slices.Contains(c.serving.partitions(), p) {
			return errors.New("c does not serve what a gave up")
		}
		return nil
	})
	if slices.Contains(a.Owned(), p) {
		t.Errorf("a serves %v", a.Owned())
	}
	testkit.NoError(t, c.stop())
	b := refusing("b")
	testkit.Eventually(t, soon, func() error { // the node that is left tries it too
		if alarm("b") != 1 {
			return errors.New("no alarm of b")
		}
		return nil
	})
	broken.Store(false) // a person has mended it
	testkit.Eventually(t, soon, func() error {
		served := slices.Concat(a.serving.partitions(), b.serving.partitions())
		if n := len(slices.DeleteFunc(served, func(q int) bool { return q != p })); n != 1 {
			return fmt.Errorf("%d nodes serve it", n)
		}
		if alarm("a")+alarm("b") > 1 {
			return errors.New("the alarm goes on")
		}
		return nil
	})
}

// TestI13ARaisedVersionMovesPartitions from who cannot read it, and back. R21.
func TestI13ARaisedVersionMovesPartitions(t *testing.T) {
	srv := server(t)
	var version atomic.Uint32
	version.Store(1)
	member := func(name string, newest uint32) *node {
		return joinWith(t, srv, name, func(c *Config, s *serving) {
			c.Version, c.Newest, c.Serve = version.Load, newest, s.serve
		})
	}
	older, newer := member("older", 1), member("newer", 2)
	balanced(t, map[string]*node{"older": older, "newer": newer})
	kv := bucket(t, srv.Connect(t))
	all, err := List(t.Context(), kv)
	if err != nil || len(all) != 2 || all[0].Node != "newer" || all[0].LogVersion != 2 || all[1].LogVersion != 1 || all[1].Service != "test" || all[1].Silent > soon {
		t.Errorf("members %+v: %v", all, err)
	}
	version.Store(2)
	balanced(t, map[string]*node{"newer": newer})
	testkit.Eventually(t, soon, func() error {
		if len(older.serving.partitions()) > 0 {
			return fmt.Errorf("older serves %v", older.serving.partitions())
		}
		return nil
	})
	var unknown *logversion.UnknownError
	if err := older.Check(); !errors.As(err, &unknown) || unknown.Version != 2 || unknown.Newest != 1 {
		t.Errorf("older is ready: %v", err)
	}
	testkit.Check(t, newer.Check())
}

func TestABeaconIsAmongTheMembers(t *testing.T) {
	kv := bucket(t, server(t).Connect(t))
	b := &Beacon{Service: "front", Node: "x", KV: kv, Log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.Run(ctx) }()
	members := func(n int) {
		t.Helper()
		testkit.Eventually(t, soon, func() error {
			all, err := List(t.Context(), kv)
			if err == nil && (len(all) != n || n == 1 && all[0].LogVersion != logversion.Newest()) {
				return fmt.Errorf("%+v", all)
			}
			return err
		})
	}
	members(1)
	cancel()
	testkit.Check(t, <-done)
	members(0)
}
