package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/lifecycle"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// diary is what parts write down. In a bubble the parts below take turns by
// virtual time, and the race detector watches that they do.
type diary struct{ lines []string }

func (d *diary) write(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) expect(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(d.lines, want) {
		t.Errorf("got  %q\nwant %q", d.lines, want)
	}
}

// server is a part that takes a while to get ready and a while to stop.
type server struct {
	name  string
	diary *diary
	ready chan struct{}
	boot  time.Duration
	drain time.Duration
}

func (s *server) Ready() <-chan struct{} { return s.ready }

func (s *server) Run(ctx context.Context) error {
	s.diary.write("start %s", s.name)
	time.Sleep(s.boot)
	s.diary.write("ready %s", s.name)
	close(s.ready)
	<-ctx.Done()
	s.diary.write("stop %s", s.name)
	time.Sleep(s.drain)
	s.diary.write("end %s", s.name)
	return ctx.Err()
}

func newServer(d *diary, name string) *server {
	return &server{name: name, diary: d, ready: make(chan struct{}), boot: time.Second, drain: time.Second}
}

func untilCancelled(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestStartsInOrderAndStopsInReverse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		var g lifecycle.Group
		g.Add("a", newServer(&d, "a"))
		g.Add("b", newServer(&d, "b"))
		g.Add("c", newServer(&d, "c"))
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-g.Ready()
			d.write("group ready")
			cancel()
		}()
		testkit.Check(t, g.Run(ctx))
		d.expect(t,
			"start a", "ready a", "start b", "ready b", "start c", "ready c", "group ready",
			"stop c", "end c", "stop b", "end b", "stop a", "end a")
	})
}

func TestFirstErrorWinsAndStopsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		var g lifecycle.Group
		g.Add("base", newServer(&d, "base"))
		g.Add("bad", lifecycle.Func(func(context.Context) error {
			time.Sleep(time.Minute)
			return io.ErrUnexpectedEOF
		}))
		g.Add("worse", lifecycle.Func(func(ctx context.Context) error {
			<-ctx.Done()
			return io.ErrClosedPipe
		}))
		err := g.Run(t.Context())
		if !errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("got %v, want both errors", err)
		}
		if got, want := err.Error(), "bad: unexpected EOF\nworse: io: read/write on closed pipe"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		d.expect(t, "start base", "ready base", "stop base", "end base")
	})
}

func TestFailureWhileStarting(t *testing.T) {
	for name, fail := range map[string]func(ctx context.Context) error{
		"error":  func(context.Context) error { return io.ErrUnexpectedEOF },
		"panic":  func(context.Context) error { panic(io.ErrUnexpectedEOF) },
		"goexit": func(context.Context) error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var d diary
				var g lifecycle.Group
				g.Add("base", newServer(&d, "base"))
				g.Add("bad", neverReady{lifecycle.Func(fail)})
				g.Add("after", newServer(&d, "after"))
				err := g.Run(t.Context())
				if err == nil || !strings.HasPrefix(err.Error(), "bad: ") {
					t.Errorf("got %v, want the error of bad", err)
				}
				if name != "goexit" && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("got %v, which does not wrap the cause", err)
				}
				d.expect(t, "start base", "ready base", "stop base", "end base")
			})
		})
	}
}

// neverReady is a part that does not get ready.
type neverReady struct{ lifecycle.Runner }

func (neverReady) Ready() <-chan struct{} { return nil }

func TestCancelWhileStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		var g lifecycle.Group
		g.Add("slow", neverReady{lifecycle.Func(untilCancelled)})
		g.Add("after", newServer(&d, "after"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		testkit.Check(t, g.Run(ctx))
		d.expect(t)
	})
}

func TestPanicCarriesItsStack(t *testing.T) {
	var g lifecycle.Group
	g.Add("bad", lifecycle.Func(blowUp))
	err := g.Run(t.Context())
	var p *lifecycle.PanicError
	if !errors.As(err, &p) || p.Value != "boom" {
		t.Fatalf("got %v, want a PanicError with the value", err)
	}
	if !strings.Contains(err.Error(), "blowUp") {
		t.Fatalf("the stack does not name the panicking function:\n%v", err)
	}
}

func blowUp(context.Context) error { panic("boom") }

func TestDrainTimeoutIsReportedByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		release := make(chan struct{})
		g := lifecycle.Group{DrainTimeout: 3 * time.Second}
		g.Add("base", newServer(&d, "base"))
		g.Add("stuck", lifecycle.Func(func(context.Context) error {
			<-release
			return nil
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := g.Run(ctx)
		if !errors.Is(err, lifecycle.ErrDrainTimeout) || err.Error() != "stuck: did not stop within 3s" {
			t.Errorf("got %v, want the drain timeout of stuck", err)
		}
		d.expect(t, "start base", "ready base", "stop base", "end base")
		close(release)
	})
}

func TestPartsThatEndByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		var g lifecycle.Group
		g.Add("once", neverReady{lifecycle.Func(func(context.Context) error { return nil })})
		g.Add("server", newServer(&d, "server"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		testkit.Check(t, g.Run(ctx))
		if ran := time.Since(start); ran < time.Minute {
			t.Errorf("the group stopped after %v because one part had done its work", ran)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var g lifecycle.Group
		g.Add("once", lifecycle.Func(func(context.Context) error { return nil }))
		if err := g.Run(t.Context()); err != nil { // returns: nothing is left to run
			t.Error(err)
		}
	})
}

func TestGroupsNest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		var outer, inner lifecycle.Group
		inner.Add("a", newServer(&d, "a"))
		inner.Add("b", newServer(&d, "b"))
		outer.Add("inner", &inner)
		outer.Add("c", newServer(&d, "c"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		testkit.Check(t, outer.Run(ctx))
		d.expect(t,
			"start a", "ready a", "start b", "ready b", "start c", "ready c",
			"stop c", "end c", "stop b", "end b", "stop a", "end a")
	})
}

func TestPartsSeeTheValuesOfTheContext(t *testing.T) {
	type key struct{}
	var g lifecycle.Group
	var got any
	g.Add("reader", lifecycle.Func(func(ctx context.Context) error {
		got = ctx.Value(key{})
		return nil
	}))
	testkit.NoError(t, g.Run(context.WithValue(t.Context(), key{}, "value")))
	testkit.MustEqual(t, "result", got, "value")
}
