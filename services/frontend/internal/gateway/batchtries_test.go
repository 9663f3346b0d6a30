package gateway

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
)

func membersRigs(t *testing.T, change ...func(*Deps)) []*rig {
	t.Helper()
	with := append([]func(*Deps){func(d *Deps) { d.Batches, d.LogVersion = memBatches{}, func() uint32 { return logversion.Batches } }}, change...)
	a := newKnowingRig(t, with...)
	b := newKnowingRig(t, append(with, func(d *Deps) { d.History = a.log })...)
	b.log = a.log
	if _, err := asked(a, "shop", false, a.CreateBatch, &yardv1.CreateBatchRequest{BatchId: "a"}); err != nil {
		t.Fatal(err)
	}
	return []*rig{a, b}
}

// The client's clock may be ahead: its request seems to be younger than the word that counts its repeat.
func TestI1_AFirstTryOfAClockAheadIsCountedOnce(t *testing.T) {
	for _, ahead := range []time.Duration{0, time.Second, 1900 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			rigs := membersRigs(t)
			store := func(by int, req *yardv1.SubmitRequest) []string {
				t.Helper()
				for _, task := range req.Tasks {
					task.BatchId, task.OrderKey = "a", "k"
				}
				_, created := outcomesOf(t, <-rigs[by].submit(t, req))
				return created
			}
			members := store(0, withID(tasks(1), true))
			req := withID(tasks(3), true)
			req.RequestId = ids.NewRequestID(time.Now().Add(ahead)).String()
			req.Tries = 2
			again := store(0, req)
			members = append(members, again...)
			time.Sleep(100 * time.Millisecond)
			req.Tries = 1
			equalIDs(t, store(0, req), again)
			wantOnce(t, rigs[0].log, members)
			if n := rigs[0].log.membersOf(t); n != int64(len(members)) {
				t.Errorf("%v ahead: %d members are counted, and there are %d", ahead, n, len(members))
			}
		})
	}
}

// The task of a repeat has ended, and another one has had its key since.
func TestI1_AFirstTryWhoseKeyIsFreeAgainIsCountedOnce(t *testing.T) {
	for name, between := range map[string]bool{"free": false, "another one has had it": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rigs := membersRigs(t)
				log := rigs[0].log
				store := func(by int, req *yardv1.SubmitRequest) []string {
					t.Helper()
					for _, task := range req.Tasks {
						task.BatchId = "a"
					}
					_, created := outcomesOf(t, <-rigs[by].submit(t, req))
					return created
				}
				req := withID(keyed("one"), true)
				req.Tries = 2
				again := store(0, req)
				members := again
				log.ends(t, "shop", "one", time.Now())
				if between {
					members = append(members, store(1, withID(keyed("one"), true))...)
					log.ends(t, "shop", "one", time.Now())
				}
				req.Tries = 1
				equalIDs(t, store(1, req), again)
				wantOnce(t, log, members)
				if n := log.membersOf(t); n != int64(len(members)) {
					t.Errorf("%d members are counted, and there are %d", n, len(members))
				}
			})
		})
	}
}
