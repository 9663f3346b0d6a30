package partition_test

import (
	"maps"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// hintsOf are the hints that were published for each shard.
type hintsOf struct {
	wire
	mu       sync.Mutex
	triggers map[string][]*logv1.TriggerBatch
	releases map[string]int
}

func (w *hintsOf) Publish(subject string, data []byte) {
	var h logv1.Hints
	if subject == topology.HintLoad || h.UnmarshalVT(data) != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.triggers[subject] = append(w.triggers[subject], h.Triggers...)
	for range h.Releases {
		w.releases[subject]++
	}
}

func (w *hintsOf) Store(subject string, data []byte) { w.Publish(subject, data) }

// Triggers go to the shard of the partition that they name, and what an attempt holds is freed at the shard that was granted it.
func TestTriggersNameTheirPartition(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		w := &hintsOf{triggers: map[string][]*logv1.TriggerBatch{}, releases: map[string]int{}, wire: wire{answered: map[string]int{}}}
		d := s.deps("a")
		d.Wire, d.Partitioning.Matching = w, 3
		d.TasklistPartitions = func(domain, tasklist string) int {
			if domain == "shop" && tasklist == "mail" {
				return 3
			}
			return 1
		}
		s.serves(d)
		for n := range uint64(3) {
			s.submit(3, task(newID(n), "shop"))
			synctest.Wait()
		}
		got := map[int32]string{}
		w.mu.Lock()
		for subject, all := range w.triggers {
			for _, b := range all {
				got[b.TasklistPartition] = subject
			}
		}
		w.mu.Unlock()
		want := map[int32]string{}
		for p := range 3 {
			want[int32(p)] = topology.Matching(ids.MatchingShard("shop", "mail", p, 3))
		}
		if !maps.Equal(got, want) {
			t.Errorf("triggers of %v, want %v", got, want)
		}
		// Whichever shard is granted it is where it is counted. Batches of this test are of shard 0.
		s.batch(1, 1, 0, inbox("poll"), grab(newID(0), 2, 1, "type/t"))
		s.event(&logv1.Event{Kind: logv1.EventKind_EVENT_KIND_COMPLETED, TaskId: idBytes(newID(0)), Position: uint64(ids.NewPosition(2, 3)), Version: 1, Nonce: 1})
		synctest.Wait()
		w.mu.Lock()
		if released := map[string]int{topology.Matching(0): 1}; !maps.Equal(w.releases, released) || want[0] == topology.Matching(0) {
			t.Errorf("released at %v, want %v and not at %s", w.releases, released, want[0])
		}
		w.mu.Unlock()
	})
}

func idBytes(id ids.TaskID) []byte { return id[:] }
