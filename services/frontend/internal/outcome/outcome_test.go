package outcome

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/owners"
)

// silentBus publishes to an owner that answers nothing.
type silentBus struct{ ids chan uint64 }

func (b silentBus) PublishEvents(_ int, id uint64, _ []byte) error {
	b.ids <- id
	return nil
}
func (silentBus) VerdictsTo() string                     { return "here" }
func (silentBus) PublishCancelHint(string, []byte) error { return nil }

// TestNothingIsKeptOfAnsweredEvents: neither of a batch with its verdicts, nor of one whose time is over, nor of the cancels of a domain.
func TestNothingIsKeptOfAnsweredEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := catalog.New(nil)
		bus := silentBus{make(chan uint64, 100)}
		o := New(Deps{
			Env: owners.Env{
				Run: call.NewRunner(call.Bounds{}, known, nil), Tasks: owners.Tasks{Partitions: 1},
				Partitioning: topology.Partitioning{History: 1, Matching: 1}, Catalog: known, LogVersion: func() uint32 { return 1 },
			},
			VerdictTimeout: time.Second, Bus: bus,
		})
		for _, kind := range []logv1.EventKind{logv1.EventKind_EVENT_KIND_COMPLETED, logv1.EventKind_EVENT_KIND_CANCEL} {
			for _, answered := range []bool{true, false} {
				now := time.Now()
				id := ids.NewTaskID(now, 0, 1)
				c := call.Call{Domain: "shop", Received: now, Now: now, Deadline: now.Add(5 * time.Second)}
				entry := validate.Outcome{ID: id, Event: &logv1.Event{Kind: kind, TaskId: id[:]}}
				got := make(chan string, 1)
				go func() {
					v, err := o.DecideOne(t.Context(), c, entry)
					testkit.Check(t, err)
					got <- v.Code
				}()
				want := string(fault.Unknown)
				if sent := <-bus.ids; answered {
					want = CodeOK
					o.TakeVerdicts(testkit.Encoded(t, &logv1.VerdictBatch{RequestId: sent, Verdicts: []*logv1.EventVerdict{{}}}))
				}
				testkit.Equal(t, kind.String(), <-got, want)
				synctest.Wait()
				for len(bus.ids) > 0 { // what was sent again
					<-bus.ids
				}
				testkit.Equal(t, "batches are kept", len(o.sendings), 0)
				testkit.Equal(t, "group commits of cancels are kept", len(o.cancels), 0)
			}
		}
	})
}

// TestEventsOfAnotherClusterAreNotSent whatever they are.
func TestEventsOfAnotherClusterAreNotSent(t *testing.T) {
	known := catalog.New(nil)
	o := New(Deps{Env: owners.Env{
		Run: call.NewRunner(call.Bounds{}, known, nil), Tasks: owners.Tasks{Partitions: 1}, Partitioning: topology.Partitioning{History: 1}, Catalog: known,
	}})
	_, err := o.DecideOne(t.Context(), call.Call{Now: time.Now()}, validate.Outcome{ID: ids.NewTaskID(time.Now(), 7, 1)})
	if fault.CodeOf(err) != fault.Internal || !strings.Contains(err.Error(), "cluster") {
		t.Errorf("got %v", err)
	}
}
