package partition_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// wire keeps apart what an owner publishes and what it answers.
type wire struct {
	mu        sync.Mutex
	published map[string][]byte // the last by subject
	answered  map[string]int
}

func newWire() *wire { return &wire{published: map[string][]byte{}, answered: map[string]int{}} }

// load is the last load report, after a while.
func (w *wire) load(t *testing.T, after time.Duration) *rpcv1.HistoryLoad {
	t.Helper()
	time.Sleep(after)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	var load rpcv1.HistoryLoad
	testkit.NoError(t, load.UnmarshalVT(w.published[topology.HintLoad]))
	return &load
}

func (w *wire) Publish(subject string, data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.published[subject] = data
}

func (w *wire) Store(subject string, data []byte) { w.Publish(subject, data) }

func (w *wire) Answer(subject string, _ []byte, _ func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answered[subject]++
}

// R1: a subject that came out of the log is answered, which looks at it first, whether attempts are granted or not.
func TestR1_SubjectsOfTheLogAreAnswered(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		w := newWire()
		d := s.deps("a")
		d.Wire = w
		s.serves(d)
		id := newID(1)
		seq := s.submit(3, task(id, "shop"))
		s.batch(1, 1, 0, inbox("poll"), grab(id, seq, 1))
		synctest.Wait()
		testkit.Equal(t, "the grant was answered times", w.answered["asker"], 1)
		s.event(&logv1.Event{Kind: logv1.EventKind_EVENT_KIND_COMPLETED, TaskId: id[:], Position: uint64(ids.NewPosition(1, 3)), Version: 1, Nonce: 1})
		synctest.Wait()
		testkit.Equal(t, "the outcome was answered, with the grant, times", w.answered["asker"], 2)
		if w.published["asker"] != nil {
			t.Error("what the log named was published to")
		}
	})
}

// I7, R43: the report tells frontends how much is left for shared messages, as of what is read, and whether there is room at all.
func TestI7_R43_TheLoadReportTellsWhatIsLeft(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		w := newWire()
		d := s.deps("a")
		d.Wire = w
		var full atomic.Bool
		d.StorageFull = func() string {
			if full.Load() {
				return "full"
			}
			return ""
		}
		s.serves(d)
		report := func() *rpcv1.HistoryLoad { t.Helper(); return w.load(t, 2*time.Second) }
		before := report()
		if before.SharedTasks != int64(d.Config.WindowTasks/2) || before.SharedBytes != d.Config.WindowBytes/2 || before.SharedRead != 0 || before.StorageFull {
			t.Errorf("nothing is there: %v", before)
		}
		s.submit(3, task(newID(1), "shop"))
		first := s.submit(ids.LaneFirst, task(newID(2), "shop"))
		s.submit(3, task(newID(3), "shop"))
		full.Store(true)
		load := report()
		if load.SharedTasks != before.SharedTasks-1 || load.SharedBytes >= before.SharedBytes || load.SharedRead != first || !load.StorageFull {
			t.Errorf("one task is read on the first lane, and the storage is full: %v", load)
		}
	})
}

// TestL16_TheLoadReportNamesFullOrderKeys, and no other ones: frontends refuse what is submitted to them.
func TestL16_TheLoadReportNamesFullOrderKeys(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		w, d := newWire(), s.deps("a")
		d.Wire, d.Config.OrderKeyTasks = w, 3
		s.serves(d)
		for n, key := range []string{"red", "blue", "red", "red", "blue"} {
			r := task(newID(uint64(n+1)), "shop")
			r.Order = &logv1.Order{Key: key}
			s.submit(ids.LaneKeyed, r)
		}
		load := w.load(t, 2*time.Second)
		if len(load.FullKeys) != 1 || load.FullKeys[0].OrderKey != "red" || load.FullKeys[0].Tasks != 3 || load.FullKeys[0].Domain != "shop" {
			t.Errorf("full are %v", load.FullKeys)
		}
	})
}
