package partition_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/memhistory"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
)

// overtakenStore is a timer store that another owner fences just before something is parked, if overtakes.
type overtakenStore struct {
	partition.TimerStore
	t         *testing.T
	overtakes bool
}

func (m overtakenStore) Park(ctx context.Context, bucket int64, batch []byte) (uint64, error) {
	if m.overtakes {
		data, err := (&logv1.Batch{Fence: true, Epoch: 2}).MarshalVT() // that of the owner that follows
		if err != nil {
			m.t.Error(err)
		}
		if err := m.Fence(ctx, data); err != nil {
			return 0, err
		}
	}
	return m.TimerStore.Park(ctx, bucket, batch)
}

// TestLetterOutlivesAVoidStay: an owner that was overtaken parks a task that comes back, and that is void. Its letter stays for the owner that follows.
func TestLetterOutlivesAVoidStay(t *testing.T) {
	for _, overtakes := range []bool{false, true} {
		t.Run(fmt.Sprint(overtakes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShell(t)
				s.works(logv1.EventKind_EVENT_KIND_FAILED)
				d := s.deps("a")
				d.TimerStore = overtakenStore{d.TimerStore, t, overtakes}
				o, stop := run(d)
				<-o.Ready()
				id := newID(1)
				s.submit(0, task(id, "shop"))
				letters := func() int {
					found, err := memhistory.Reader{World: s.world}.Letters(t.Context(), []replica.Search{{ID: id, Domain: "shop"}})
					if err != nil {
						t.Fatal(err)
					}
					if found[0] == nil {
						return 0
					}
					return 1
				}
				time.Sleep(5 * time.Second)
				if letters() != 1 {
					t.Fatal("the task is no dead letter")
				}
				s.event(&logv1.Event{
					Kind: logv1.EventKind_EVENT_KIND_REDRIVEN, TaskId: id[:], Domain: "shop", Redrive: &logv1.Redrive{Letter: 1, Tasklist: "mail", Request: 7},
				})
				time.Sleep(5 * time.Second)
				if got := letters() == 1; got != overtakes {
					t.Errorf("the letter is there: %v", got)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
				s.mu.Lock()
				s.worker = nil
				s.mu.Unlock()
				o, stop = run(s.deps("b"))
				<-o.Ready()
				time.Sleep(5 * time.Second)
				if letters() != 0 {
					t.Error("the next owner does not bring the task back")
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
