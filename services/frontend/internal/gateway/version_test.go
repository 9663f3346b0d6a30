package gateway

import (
	"testing"
	"testing/synctest"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestI13BatchesCarryTheClustersVersion: of tasks, of one tasklist or of several, and
// of events. R21.
func TestI13BatchesCarryTheClustersVersion(t *testing.T) {
	for _, version := range []uint32{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, func(d *Deps) { d.LogVersion = func() uint32 { return version } }).running(t)
			spanning := &yardv1.SubmitRequest{Tasks: tasks(2).Tasks}
			spanning.Tasks[0].Tasklist, spanning.Tasks[1].Tasklist = "mail", "other"
			accepted(t, <-r.submit(t, tasks(3)))
			accepted(t, <-r.submit(t, spanning))
			n := 0
			for _, msgs := range r.log.partitions {
				for _, m := range msgs {
					if n++; decode(t, m.Data).LogVersion != version {
						t.Errorf("version %d: a batch carries %d", version, decode(t, m.Data).LogVersion)
					}
				}
			}
			testkit.Equal(t, "messages", n, 2)
			done := r.complete(t, completion(1, 1))
			synctest.Wait()
			sent := r.bus.sentEvents()
			if len(sent) != 1 || sent[0].batch.LogVersion != version {
				t.Errorf("version %d: events %+v", version, sent)
			}
			r.verdict(t, sent[0], 0, 1)
			verdicts(t, <-done)
		})
	}
}
