package partition_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/events"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// heard are the events of a domain, as kinds with the types of their tasks.
type heard struct {
	mu  sync.Mutex
	all []string
}

// withEvents turns events of the domain shop on: tasks are late after 5 s, attempts stuck after 10 s.
func withEvents(t *testing.T, d *partition.Deps) *heard {
	h := &heard{}
	d.Events.Domain = func(domain string) events.Settings {
		return events.Settings{On: domain == "shop", LateMS: 5000, StuckMS: 10_000}
	}
	d.Events.Publish = func(_ string, data []byte) error {
		var e yardv1.DomainEvents
		testkit.Check(t, codec.Unmarshal(codec.JSON, data, &e))
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, task := range e.Tasks {
			h.all = append(h.all, e.Kind+" "+task.Type)
		}
		return nil
	}
	return h
}

// within is what is heard in a time, sorted.
func (h *heard) within(d time.Duration) []string {
	time.Sleep(d)
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.all
	h.all = nil
	slices.Sort(all)
	return all
}

// TestClientsHearOfTasks: of each that is late, stuck or over, once; of none of a domain without events. The next owner says again that a task is late,
// and nothing of one that has ended.
func TestClientsHearOfTasks(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		h := withEvents(t, &d)
		_, stop := ready(d)
		named := func(n uint64, name, domain string) *logv1.Record {
			r := task(newID(n), domain)
			r.Type = name
			return r
		}
		slow, waits := named(1, "slow", "shop"), named(2, "waits", "shop")
		seq := s.submit(3, slow, waits, named(3, "other", "bank"))
		tell := func(kind logv1.EventKind) {
			s.event(outcome(ids.Trigger{ID: ids.TaskID(slow.Id), Version: 1, Position: ids.NewPosition(seq, 3)}, kind))
		}
		testkit.Equal(t, "before they are late", h.within(4*time.Second), nil)
		testkit.Equal(t, "late", h.within(3*time.Second), []string{"late slow", "late waits"})
		tell(logv1.EventKind_EVENT_KIND_STARTED)
		testkit.Equal(t, "while it runs", h.within(9*time.Second), nil)
		testkit.Equal(t, "stuck", h.within(3*time.Second), []string{"stuck slow"})
		tell(logv1.EventKind_EVENT_KIND_FAILED)
		testkit.Equal(t, "over", h.within(time.Minute), []string{"dead slow"})
		testkit.Check(t, stop())
		_, stop = ready(d)
		testkit.Equal(t, "of the next owner", h.within(time.Minute), []string{"late waits"})
		testkit.Check(t, stop())
	})
}
