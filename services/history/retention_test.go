package history

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestATypeSaysHowLongItsCompletedTasksAreKept, and the domain says so of all others.
func TestATypeSaysHowLongItsCompletedTasksAreKept(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	testkit.NoError(t, testkit.Err(catalog.Domains.Put(t.Context(), b.kv, "", &yardv1.Domain{Name: "shop", RetentionMs: 3_600_000})))
	for name, ms := range map[string]int64{"ping": 900_000, "odd": 900_001, "long": 7_000_000} {
		testkit.NoError(t, testkit.Err(catalog.Types.Put(t.Context(), b.kv, "shop", &yardv1.TaskType{Name: name, CompletedRetentionMs: ms})))
	}
	redriven := taskstate.Task{Domain: "shop", Type: "ping", State: taskstate.Completed, Extra: &taskstate.Extra{Redriven: &taskstate.Redriven{Count: 1}}}
	all, err := catalog.Watch(t.Context(), b.kv, nil)
	testkit.NoError(t, err)
	kept := retention(all)
	for name, c := range map[string]struct {
		task taskstate.Task
		want time.Duration
	}{
		"completed":             {taskstate.Task{Domain: "shop", Type: "ping", State: taskstate.Completed}, 15 * time.Minute},
		"rounded up":            {taskstate.Task{Domain: "shop", Type: "odd", State: taskstate.Completed}, 30 * time.Minute},
		"longer than others":    {taskstate.Task{Domain: "shop", Type: "long", State: taskstate.Completed}, 2 * time.Hour},
		"redriven":              {redriven, time.Hour},
		"dead":                  {taskstate.Task{Domain: "shop", Type: "ping", State: taskstate.Dead}, time.Hour},
		"of another type":       {taskstate.Task{Domain: "shop", Type: "pay", State: taskstate.Completed}, time.Hour},
		"of a domain without":   {taskstate.Task{Domain: "bank", Type: "ping", State: taskstate.Completed}, retentionDefault},
		"of a domain that went": {taskstate.Task{Domain: "gone", Type: "ping", State: taskstate.Completed}, retentionDefault},
	} {
		testkit.Equal(t, name, kept(&c.task), c.want)
	}
}
