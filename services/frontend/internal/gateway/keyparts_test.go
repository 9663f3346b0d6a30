package gateway

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// keysOf are n keys that fall into a partition.
func keysOf(p, n int) (all []string) {
	for i := 0; len(all) < n; i++ {
		if key := fmt.Sprint("key", i); topology.UniqueKeyPartition("shop", key, topology.Partitioning{History: rigPartitions}) == p {
			all = append(all, key)
		}
	}
	return all
}

// The server takes so many messages in one atomic batch: a request whose keys all fall into one partition is several.
func TestManyKeysOfOnePartitionAreSeveralBatches(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		_, created := outcomesOf(t, <-r.submit(t, withID(keyed(keysOf(1, 1000)...), true)))
		testkit.Equal(t, "of 1000 are created", len(created), 1000)
		most, n := 0, 0
		for _, m := range r.log.partitions[1] {
			if n++; !topology.IsUniqueKey(1, m.Subject) {
				most, n = max(most, n-1), 0
			}
		}
		if most == 0 || most > partTasksMax {
			t.Errorf("%d keys in one batch", most)
		}
	})
}

// One partition has no room: what another one has stored of the request is not nothing.
func TestI2_AKeyThatIsStoredIsNotNothing(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		r.log.fault = func(p int, _ natslog.Msg) (bool, error) {
			if p == 1 {
				return false, natslog.ErrFull
			}
			return true, nil
		}
		req := withID(keyed(append(keysOf(0, 1), keysOf(1, 1)...)...), true)
		wantCode(t, (<-r.submit(t, req)).err, fault.Unknown)
		if len(r.log.partitions[0]) == 0 {
			t.Error("the other partition has nothing")
		}
		wantCode(t, (<-r.submit(t, withID(keyed(keysOf(1, 1)...), true))).err, fault.ResourceExhausted)
	})
}

// I14: what waits for a partition with keys is bounded for each domain.
func TestI14_KeyedTasksThatWaitAreBounded(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		r.log.gate = make(chan struct{}) // the log stands still
		var waiting []<-chan reply
		refused := make(chan reply, 1)
		for len(refused) == 0 {
			req := withID(keyed(keysOf(1, 1)...), true)
			req.Tasks[0].Payload = &yardv1.Payload{Data: make([]byte, 200<<10), Encoding: yardv1.Encoding_ENCODING_BINARY}
			got := r.submit(t, req)
			synctest.Wait()
			select {
			case one := <-got:
				refused <- one
			default:
				waiting = append(waiting, got)
			}
		}
		wantLater(t, (<-refused).err, fault.ResourceExhausted)
		close(r.log.gate)
		for _, got := range waiting {
			outcomesOf(t, <-got)
		}
		outcomesOf(t, <-r.submit(t, withID(keyed(keysOf(1, 1)...), true)))
	})
}
