package gateway

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// keys are n keys that begin alike.
func keys(of string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(of, i))
	}
	return all
}

// Tasks with unique keys count in a queue with a cap until their owners have counted them, as others do; those that exist do not.
func TestKeyedTasksFillAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := capped(t, 10)
		accepted(t, <-r.submit(t, withID(keyed(keys("a", 6)...), true)))
		r.wantQueued(t, "stored", 6)
		// Two of these exist, and one is not due.
		some := keyed("a0", "a1", "b0", "b1")
		some.Tasks[3].DelayMs = 60_000
		accepted(t, <-r.submit(t, withID(some, true)))
		r.wantQueued(t, "two exist", 7)
		for i := range 3 {
			accepted(t, <-r.submit(t, withID(keyed(fmt.Sprint("c", i)), true)))
		}
		r.wantQueued(t, "full", 10)
		stored := r.log.messages()
		wantFull(t, <-r.submit(t, withID(keyed("d"), true)), "/tasks/0/tasklist")
		if now := r.log.messages(); now != stored {
			t.Errorf("%d messages are stored", now-stored)
		}
		r.reportQueued(t, 4)
		r.wantQueued(t, "reported", 4)
		accepted(t, <-r.submit(t, withID(keyed(keys("e", 6)...), true)))
		wantFull(t, <-r.submit(t, withID(keyed("d"), true)), "/tasks/0/tasklist")
	})
}

// Of a request whose replacement no one can tell about, the other tasks are stored all the same, and count.
func TestKeyedTasksBesideAForgottenReplacementFillAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := capped(t, 10)
		accepted(t, <-r.submit(t, withID(keyed("one"), true)))
		req := keyed("one", "two", "three")
		req.Tasks[0].OnConflict = yardv1.OnConflict_ON_CONFLICT_REPLACE
		got := r.submit(t, withID(req, true))
		r.verdictOn(t, &logv1.EventVerdict{Code: string(fault.Unknown), Final: true})
		wantCode(t, (<-got).err, fault.Unknown)
		r.wantQueued(t, "two are stored", 3)
	})
}
