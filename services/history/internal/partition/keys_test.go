package partition_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/memhistory"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// deafToKeys is an archive that does not take the ends of keys while it is down.
type deafToKeys struct {
	partition.Archive
	down atomic.Bool
}

func (a *deafToKeys) EndKeys(ctx context.Context, tasks []*taskstate.Task) error {
	if a.down.Load() {
		return errors.New("the log is away")
	}
	return a.Archive.EndKeys(ctx, tasks)
}

// TestAKeyEndsBeforeItsTaskIsFiled: what a takeover finds in the archive it does not write again, so an owner that dies between the two would leave the key
// to a task that has ended.
func TestAKeyEndsBeforeItsTaskIsFiled(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		archive := &deafToKeys{Archive: s.archive}
		archive.down.Store(true)
		s.works(logv1.EventKind_EVENT_KIND_COMPLETED)
		id := ids.NewTaskID(time.Now(), 0, 1)
		s.world.AppendKey(memhistory.Key{Domain: "shop", Key: "order-7", Task: id})
		r := task(id, "shop")
		r.Unique = &logv1.Unique{Key: "order-7", Before: 1}
		s.submit(3, r)
		d := s.deps("first")
		d.Archive = archive
		_, stop := run(d)
		time.Sleep(10 * time.Second)
		testkit.Equal(t, "tasks are filed while the end of their key", len(s.world.ArchivedTasks()), 0)
		if err := stop(); err != nil {
			t.Log(err) // it could not store all it had to
		}
		d = s.deps("second")
		_, stop = run(d)
		time.Sleep(10 * time.Second)
		if keys := s.world.Keys(); len(keys) != 0 || len(s.world.ArchivedTasks()) != 1 {
			t.Errorf("%v still have keys, %d tasks are filed", keys, len(s.world.ArchivedTasks()))
		}
		testkit.Check(t, stop())
	})
}
