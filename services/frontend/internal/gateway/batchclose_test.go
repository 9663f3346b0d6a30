package gateway

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// closers close a batch.
var closers = map[string]func(r *rig) (codec.Message, error){
	"close": func(r *rig) (codec.Message, error) {
		return asked(r, "shop", false, r.CloseBatch, &yardv1.CloseBatchRequest{BatchId: "a"})
	},
	"cancel": func(r *rig) (codec.Message, error) {
		return asked(r, "shop", false, r.CancelBatch, &yardv1.CancelBatchRequest{BatchId: "a"})
	},
}

// closing are two frontends on one log, which know a batch that has a member in each partition.
func closing(t *testing.T) (rigs []*rig, add func(r *rig, key int) error) {
	t.Helper()
	with := func(d *Deps) { d.Batches = memBatches{} }
	a := newKnowingRig(t, with)
	b := newKnowingRig(t, with, func(d *Deps) { d.History = a.log })
	b.log = a.log
	testkit.NoError(t, testkit.Err(asked(a, "shop", false, a.CreateBatch, &yardv1.CreateBatchRequest{BatchId: "a"})))
	add = func(r *rig, key int) error {
		t.Helper()
		req := tasks(1)
		req.Tasks[0].BatchId, req.Tasks[0].OrderKey = "a", fmt.Sprint(key)
		return (<-r.submit(t, req)).err
	}
	for key := range keysOfAll {
		for _, r := range []*rig{a, b} {
			testkit.NoError(t, add(r, key))
		}
	}
	return []*rig{a, b}, add
}

// keysOfAll are so many order keys that some lie in each partition.
const keysOfAll = 20

// members is how many tasks are stored.
func members(l *memLog, t *testing.T) int {
	t.Helper()
	found := l.tasks(t)
	for id, times := range found {
		if times != 1 {
			t.Errorf("task %s is stored %d times", id, times)
		}
	}
	return len(found)
}

// TestNoMemberIsStoredBehindAClose: once it is answered OK, though no keeper runs, and whatever the frontends know of the batch.
func TestNoMemberIsStoredBehindAClose(t *testing.T) {
	for name, ends := range closers {
		inBubble(t, name, func(t *testing.T) {
			rigs, add := closing(t)
			testkit.NoError(t, testkit.Err(ends(rigs[0])))
			had := members(rigs[0].log, t)
			for key := range keysOfAll {
				for _, r := range rigs {
					testkit.Equal(t, "a member behind the close", fault.CodeOf(add(r, key)), fault.FailedPrecondition)
				}
			}
			testkit.Equal(t, "members", members(rigs[0].log, t), had)
			stored := rigs[0].log.messages()
			testkit.NoError(t, testkit.Err(ends(rigs[1])))
			testkit.Equal(t, "messages of a repeat", rigs[0].log.messages()-stored, 0)
		})
	}
}

// TestACloseThatAPartitionDoesNotTake is not answered OK; a repeat goes on with what is left.
func TestACloseThatAPartitionDoesNotTake(t *testing.T) {
	for name, ends := range closers {
		inBubble(t, name, func(t *testing.T) {
			rigs, add := closing(t)
			log := rigs[0].log
			last := len(log.partitions) - 1
			log.fault = func(p int, m natslog.Msg) (bool, error) {
				if p == last && strings.Contains(m.Subject, ".batch.closed.") {
					return false, natslog.ErrNotStored
				}
				return true, nil
			}
			wantLater(t, second(ends(rigs[0])), fault.Unavailable)
			time.Sleep(openKnownFor)
			repeat := withID(ofBatch(tasks(1)), true)
			repeat.Tries = 2 // an earlier try may be stored where it is not closed
			testkit.Equal(t, "a repeat meanwhile", fault.CodeOf((<-rigs[0].submit(t, repeat)).err), fault.Unknown)
			log.fault = nil
			testkit.NoError(t, testkit.Err(ends(rigs[1])))
			for key := range keysOfAll {
				testkit.Equal(t, "a member behind the close", fault.CodeOf(add(rigs[0], key)), fault.FailedPrecondition)
			}
		})
	}
}

// TestMembersThatMeetAClose are counted, or refused.
func TestMembersThatMeetAClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rigs, _ := closing(t)
		before := members(rigs[0].log, t)
		var met []<-chan reply
		send := func() {
			for key := range keysOfAll {
				req := tasks(1)
				req.Tasks[0].BatchId, req.Tasks[0].OrderKey = "a", fmt.Sprint(key)
				met = append(met, rigs[key%2].submit(t, req))
			}
		}
		send()
		answer, closed := rigs[0].answers(t)
		c := rigs[0].from("shop")
		rigs[0].CloseBatch(c, &yardv1.CloseBatchRequest{BatchId: "a"}, answer)
		send()
		stored := 0
		testkit.NoError(t, (<-closed).err)
		for _, m := range met {
			switch err := (<-m).err; fault.CodeOf(err) {
			case "":
				stored++
			case fault.FailedPrecondition:
			default:
				t.Error(err)
			}
		}
		testkit.Equal(t, "members", members(rigs[0].log, t), before+stored)
	})
}
