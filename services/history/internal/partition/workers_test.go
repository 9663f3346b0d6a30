package partition_test

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/hearing"
	"github.com/yardmaster-io/yardmaster/services/history/internal/queries"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const deadWorker = "a-worker-that-dies"

// sign is a sign of life.
func sign(id string) []byte {
	return fmt.Appendf(nil, `{"worker_id":%q,"every_ms":1000,"worker":"ann"}`, id)
}

// hears has a process hear itself ten times a second, until stop is called; who falls silent is added to heard.
func hears(w *hearing.Workers, heard *[]string) (stop func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := uint64(1); ; n++ {
			w.Listens(n, w.Now())
			w.Fall(func(all *rpcv1.Silent, fresh bool) {
				for _, one := range all.Workers {
					if fresh {
						*heard = append(*heard, one.Domain+"/"+one.WorkerId)
					}
				}
			})
			select {
			case <-over:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return func() { close(over); <-ended }
}

// TestTheAttemptsOfASilentWorkerAreReadyAgain within two signs and a second.
func TestTheAttemptsOfASilentWorkerAreReadyAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		d.Workers = hearing.New()
		var heard []string
		deaf := hears(d.Workers, &heard)
		o := s.serves(d)
		id := newID(1)
		seq := s.submit(3, task(id, "shop"))
		time.Sleep(time.Second)
		s.batch(1, 1, 1, []*logv1.PollRef{{Worker: "ann", WorkerId: deadWorker, ReplyTo: "inbox"}}, grab(id, seq, 1))
		d.Workers.Heard("shop", sign(deadWorker))
		d.Workers.Heard("shop", []byte("no JSON"))
		d.Workers.Heard("shop", sign("short"))
		time.Sleep(time.Second)
		list := func() *rpcv1.ListWorkersResponse {
			t.Helper()
			got, err := queries.Of(o).ListWorkers(t.Context(), &rpcv1.ListWorkersRequest{Domain: "shop", Limit: 10})
			testkit.NoError(t, err)
			return got
		}
		got := list()
		if len(got.Workers) != 1 || got.More || got.KnownForMs < 1000 {
			t.Fatalf("%v", got)
		}
		if one := got.Workers[0]; one.WorkerId != deadWorker || one.Worker != "ann" || one.HeardAgoMs != 1000 || one.RunningForMs != 1000 || one.AttemptsCount != 1 ||
			len(one.Attempts) != 1 || one.Attempts[0].TaskId != id.String() || one.Attempts[0].RunningForMs != 1000 {
			t.Errorf("%v", one)
		}
		for named, want := range map[string]int{deadWorker: 1, "another-worker-id": 0} {
			if some, err := queries.Of(o).ListWorkers(t.Context(), &rpcv1.ListWorkersRequest{Domain: "shop", Limit: 10, WorkerIds: []string{named}}); err != nil || len(some.Workers) != want {
				t.Errorf("of %s: %v %v", named, some, err)
			}
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		s.mu.Lock()
		again := s.triggered[id] == 2
		s.mu.Unlock()
		if !again || len(heard) != 1 || heard[0] != "shop/"+deadWorker || len(list().Workers) != 0 {
			t.Errorf("again %v, silent %v, alive %v", again, heard, list().Workers)
		}
		deaf()
	})
}

// TestAnOwnerKnowsWhatItsProcessHeardBefore: a worker dies while no one owns the partition; the next owner in a process that has heard it goes on at
// once, and one in a process that has not leaves its attempts alone.
func TestAnOwnerKnowsWhatItsProcessHeardBefore(t *testing.T) {
	for _, listened := range []bool{true, false} {
		inBubble(t, func(t *testing.T, s *shell) {
			d := s.deps("a")
			d.Workers = hearing.New()
			_, stop := ready(d)
			id := newID(1)
			seq := s.submit(3, task(id, "shop"))
			time.Sleep(time.Second)
			s.batch(1, 1, 1, []*logv1.PollRef{{WorkerId: deadWorker, ReplyTo: "inbox"}}, grab(id, seq, 1))
			time.Sleep(time.Second)
			testkit.NoError(t, stop())
			d = s.deps("b")
			d.Workers = hearing.New()
			var heard []string
			deaf := hears(d.Workers, &heard)
			if listened {
				d.Workers.Heard("shop", sign(deadWorker))
			}
			time.Sleep(2 * time.Second)
			_, stop = ready(d)
			time.Sleep(5 * time.Second)
			synctest.Wait()
			s.mu.Lock()
			if again := s.triggered[id] == 2; again != listened {
				t.Errorf("listened %v, triggered %d times", listened, s.triggered[id])
			}
			s.mu.Unlock()
			deaf()
			testkit.Check(t, stop())
		})
	}
}

// TestTheNextOwnerMissesAWorkerThatDiedWithTheOneBefore: its process has never heard the worker. The log says that it gave signs of life, and so does a
// snapshot; what a worker holds that gave none is left to its lease, and so is what one holds that lives.
func TestTheNextOwnerMissesAWorkerThatDiedWithTheOneBefore(t *testing.T) {
	for name, c := range map[string]struct {
		signs, lives bool
		ran          time.Duration
		want         int
	}{
		"dead": {signs: true, ran: time.Second, want: 2}, "dead, in a snapshot": {signs: true, ran: 30 * time.Second, want: 2},
		"alive": {signs: true, lives: true, ran: time.Second, want: 1}, "without signs": {ran: time.Second, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *shell) {
				d := s.deps("a")
				d.Workers = hearing.New()
				_, stop := ready(d)
				id := newID(1)
				seq := s.submit(3, task(id, "shop"))
				if c.signs {
					d.Workers.Heard("shop", sign(deadWorker))
				}
				s.batch(1, 1, 1, []*logv1.PollRef{{Domain: "shop", WorkerId: deadWorker, ReplyTo: "inbox"}}, grab(id, seq, 1))
				time.Sleep(c.ran)
				testkit.NoError(t, stop())
				d = s.deps("b")
				d.Workers = hearing.New()
				var heard []string
				deaf := hears(d.Workers, &heard)
				o, stop := ready(d)
				for n := range 30 {
					if c.lives && n > 4 {
						d.Workers.Heard("shop", sign(deadWorker))
					}
					time.Sleep(time.Second)
					alive, err := queries.Of(o).ListWorkers(t.Context(), &rpcv1.ListWorkersRequest{Domain: "shop", Limit: 10})
					if err != nil || len(alive.Workers) > 0 != (c.lives && n > 4) {
						t.Errorf("alive after %d s: %v, %v", n, alive, err)
					}
				}
				deaf()
				testkit.Check(t, stop())
				s.mu.Lock()
				defer s.mu.Unlock()
				if s.triggered[id] != c.want || len(heard) != c.want-1 {
					t.Errorf("triggered %d times, silent %v", s.triggered[id], heard)
				}
			})
		})
	}
}

// I14: a sign that is far too large is left out unread: to read many such would make the process late for all domains.
func TestASignThatIsTooLargeIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hearing.New()
		var heard []string
		deaf := hears(w, &heard)
		w.Heard("shop", append(sign("worker-of-many-words"), bytes.Repeat([]byte(" "), 5000)...))
		w.Heard("shop", sign(deadWorker))
		time.Sleep(5 * time.Second)
		deaf()
		if len(heard) != 1 || heard[0] != "shop/"+deadWorker {
			t.Errorf("heard of %v", heard)
		}
	})
}
