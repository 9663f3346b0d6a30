package partition_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// fatArchive takes no task of the domain "fat".
type fatArchive struct{ partition.Archive }

func (a fatArchive) fat(tasks []*taskstate.Task) error {
	for _, t := range tasks {
		if t.Domain == "fat" {
			return &partition.RefusedTaskError{Task: t.ID, KeepS: 60, Reason: errors.New("it is too large")}
		}
	}
	return nil
}

func (a fatArchive) File(ctx context.Context, tasks []*taskstate.Task, last uint64) (uint64, error) {
	if err := a.fat(tasks); err != nil {
		return last, err
	}
	return a.Archive.File(ctx, tasks, last)
}

func (a fatArchive) StoreDead(ctx context.Context, tasks []*taskstate.Task) error {
	return errors.Join(a.fat(tasks), a.Archive.StoreDead(ctx, tasks))
}

// TestAFatTaskDoesNotHoldUpTheArchive: R5. A task that fits into no message goes to the
// quarantine, and those of other domains into the archive.
func TestAFatTaskDoesNotHoldUpTheArchive(t *testing.T) {
	for name, end := range map[string]logv1.EventKind{
		"completed": logv1.EventKind_EVENT_KIND_COMPLETED, "dead": logv1.EventKind_EVENT_KIND_FAILED,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *shell) {
				s.works(end)
				s.archive = fatArchive{s.archive}
				s.serves(s.deps("a"))
				slim := newID(2)
				s.submit(3, task(newID(1), "fat"), task(slim, "slim"), task(newID(3), "fat"))
				time.Sleep(time.Minute)
				if got := s.archived(); got[slim] != 1 || len(got) != 1 {
					t.Errorf("archived: %v", got)
				}
				s.mu.Lock()
				if len(s.quarantined) < 2 {
					t.Errorf("%d records are in the quarantine", len(s.quarantined))
				}
				for _, q := range s.quarantined {
					testkit.Equal(t, "kept for s", q.KeepS, 60)
				}
				s.mu.Unlock()
			})
		})
	}
}
