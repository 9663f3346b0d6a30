package scenario_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestFinishedTasksStayListed: a quiet domain lists its finished tasks, each once and the newest first, in pages of any
// size, whatever another domain finishes meanwhile, and after a restart too.
func TestFinishedTasksStayListed(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "restarts a system of its own")
	cfg := stack.Config{DataDir: t.TempDir(), Partitioning: topology.Partitioning{History: 2, Matching: 1}}
	s := own(t, cfg)
	quiet, loud := enter(t, s), enter(t, s)
	var want []string
	for range 5 {
		want = append(want, quiet.submitOne(&yardv1.NewTask{Type: "quiet"}))
		equal(t, "complete", quiet.complete(quiet.takeOne()), "OK")
	}
	slices.Sort(want)
	slices.Reverse(want)

	const messages = 1400 // of the archive: each of these tasks fills one
	var ended atomic.Int64
	loud.work(list, func(k *yard.Worker) {
		k.HandleFunc("loud", func(context.Context, *yard.Attempt) (yard.Payload, error) {
			ended.Add(1)
			return yard.Payload{}, nil
		})
	})
	payload := `"` + strings.Repeat("x", 17<<10) + `"`
	for range messages / 20 {
		var some []*yardv1.NewTask
		for range 20 {
			some = append(some, &yardv1.NewTask{Type: "loud", Payload: &yardv1.Payload{Data: []byte(payload)}})
		}
		loud.submit(some...)
	}
	loud.eventually(func() error {
		if n := ended.Load(); n < messages {
			return fmt.Errorf("%d of %d tasks have ended", n, messages)
		}
		return nil
	})

	for range 2 {
		for _, limit := range []int{1, 2, 3, 100} {
			var got []string
			for task, err := range quiet.client.Tasks(quiet.soon(), yard.Filter{Limit: limit, States: []yard.State{yard.StateCompleted}}) {
				testkit.NoError(t, err)
				got = append(got, task.ID)
			}
			if !slices.Equal(got, want) {
				t.Errorf("listed in pages of %d are %v, want %v", limit, got, want)
			}
		}
		quiet = quiet.restarted(cfg)
	}
}
