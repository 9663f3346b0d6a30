package gateway

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// A first try may come to its frontend behind its repeat, which another frontend has stored, or the same one. Its tasks are members already: counted once
// more, the batch would wait for them without end.
func TestI1_AFirstTryBehindItsRepeatIsCountedOnce(t *testing.T) {
	const repeatedBy, other = 0, 1
	for name, c := range map[string]struct {
		// before are the frontends that store members before the repeat, and behind it.
		before, behind []int
		late           time.Duration
	}{
		"it knows no word":              {nil, nil, 0},
		"its word is out of date":       {[]int{other}, nil, 0},
		"it has read the word since":    {[]int{other}, []int{other}, time.Second},
		"others have stored on":         {[]int{other}, []int{repeatedBy}, 0},
		"the repeat's word is the last": {[]int{repeatedBy}, nil, 0},
	} {
		for by, of := range []string{"of the same frontend", "of another one"} {
			inBubble(t, name+", "+of, func(t *testing.T) {
				with := func(d *Deps) { d.Batches = memBatches{} }
				a := newKnowingRig(t, with)
				b := newKnowingRig(t, with, func(d *Deps) { d.History = a.log })
				b.log = a.log
				rigs := []*rig{a, b}
				testkit.NoError(t, testkit.Err(asked(a, "shop", false, a.CreateBatch, &yardv1.CreateBatchRequest{BatchId: "a"})))
				var members []string
				store := func(by int, req *yardv1.SubmitRequest) []string {
					t.Helper()
					for _, task := range req.Tasks {
						task.BatchId, task.OrderKey = "a", "k" // all of a key lie in one partition
					}
					_, created := outcomesOf(t, <-rigs[by].submit(t, req))
					return created
				}
				for _, f := range c.before {
					members = append(members, store(f, withID(tasks(1), true))...)
				}
				req := withID(tasks(3), true)
				req.Tries = 2
				again := store(repeatedBy, req)
				members = append(members, again...)
				for _, f := range c.behind {
					members = append(members, store(f, withID(tasks(1), true))...)
				}
				time.Sleep(c.late)
				req.Tries = 1
				equalIDs(t, store(by, req), again)
				wantOnce(t, a.log, members)
				testkit.Equal(t, "members are counted", a.log.membersOf(t), int64(len(members)))
			})
		}
	}
}

// membersOf is how many members the words on all batches count.
func (l *memLog) membersOf(t *testing.T) (n int64) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for p, msgs := range l.partitions {
		last := map[string]int64{}
		for _, m := range msgs {
			if topology.BatchOfMembers(p, m.Subject) == "" {
				continue
			}
			var said logv1.BatchMembers
			testkit.NoError(t, said.UnmarshalVT(m.Data))
			last[m.Subject] = said.Tasks
		}
		for _, of := range last {
			n += of
		}
	}
	return n
}
