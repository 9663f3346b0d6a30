package natshistory

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// setUp changes how the archive's stream is set up, as an operator may.
func setUp(t *testing.T, c Config, change func(*jetstream.StreamConfig)) {
	t.Helper()
	stream, err := c.JetStream.Stream(t.Context(), topology.ArchiveStream(0))
	testkit.NoError(t, err)
	cfg := stream.CachedInfo().Config
	change(&cfg)
	testkit.NoError(t, testkit.Err(c.JetStream.UpdateStream(t.Context(), cfg)))
}

// fileRest files tasks as the partition does: it reads what is stored after an error, and
// leaves out what is refused. It ends with the first other error.
func fileRest(t *testing.T, a *Archive, tasks []*taskstate.Task) (refused []ids.TaskID, err error) {
	t.Helper()
	for len(tasks) > 0 {
		last, err := a.Last(t.Context())
		testkit.NoError(t, err)
		_, err = a.File(t.Context(), tasks, last)
		var bad *partition.RefusedTaskError
		switch {
		case err == nil:
			return refused, nil
		case errors.As(err, &bad):
			if !errors.Is(err, partition.ErrRefused) || bad.KeepS != int64(time.Hour/time.Second) {
				t.Errorf("refused: %v, kept for %d s", err, bad.KeepS)
			}
			refused = append(refused, bad.Task)
		case !errors.Is(err, partition.ErrArchiveMoved):
			return refused, err
		}
		gone := slices.Clone(refused)
		if err := a.Tail(t.Context(), 0, func(all []replica.Stay) error {
			for _, stay := range all {
				gone = append(gone, stay.ID)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		tasks = slices.DeleteFunc(slices.Clone(tasks), func(task *taskstate.Task) bool { return slices.Contains(gone, task.ID) })
	}
	return refused, nil
}

// R5: what the stream refuses of one task is reported by its id, wherever it lies among good
// ones, and these are filed and found.
func TestARefusedTaskIsToldFromTheOthers(t *testing.T) {
	for what, places := range map[string][]int{"first": {0}, "last": {299}, "some": {7, 8, 150, 290}, "alone": {300}} {
		t.Run(what, func(t *testing.T) {
			owner, reader := serverPorts(t)
			setUp(t, owner, func(c *jetstream.StreamConfig) { c.MaxMsgSize = 40 << 10 })
			var tasks []*taskstate.Task
			for i := range uint64(300) {
				tasks = append(tasks, finishedTask("shop", time.Now(), i))
			}
			if what == "alone" {
				tasks = append(tasks, finishedTask("shop", time.Now(), 300))
			}
			var want []ids.TaskID
			for _, i := range places {
				tasks[i].Payload.Data = make([]byte, 50<<10)
				want = append(want, tasks[i].ID)
			}
			a := NewArchive(owner, suiteRetention)
			if what == "alone" {
				testkit.NoError(t, testkit.Err(fileRest(t, a, tasks[:300])))
				tasks = tasks[300:]
			}
			refused, err := fileRest(t, a, tasks)
			if err != nil || !slices.Equal(refused, want) {
				t.Fatalf("refused are %v, want %v: %v", refused, want, err)
			}
			for _, task := range tasks {
				found, err := reader.Archived(t.Context(), searches(task.Domain, task.ID))
				if err != nil || (found[0] == nil) != slices.Contains(want, task.ID) {
					t.Fatalf("%v is %v: %v", task.ID, found, err)
				}
			}
		})
	}
}

// What the stream refuses of any task is no task's fault, and passes when it is mended.
func TestWhatTheStreamRefusesOfAllPasses(t *testing.T) {
	testkit.Slow(t, "stores much, or waits for the server")
	for what, change := range map[string]func(*jetstream.StreamConfig){
		"sealed":    func(c *jetstream.StreamConfig) { c.Sealed = true },
		"full":      func(c *jetstream.StreamConfig) { c.MaxMsgs = 1 },
		"no index":  func(c *jetstream.StreamConfig) { c.MaxMsgSize = 350 },
		"not there": nil,
	} {
		t.Run(what, func(t *testing.T) {
			owner, _ := serverPorts(t)
			a, last := NewArchive(owner, suiteRetention), uint64(0)
			a.indexAfter.Messages = 64
			var err error
			last, err = a.File(t.Context(), []*taskstate.Task{finishedTask("shop", time.Now(), 1)}, last)
			testkit.NoError(t, err)
			if change == nil {
				err = owner.JetStream.DeleteStream(t.Context(), topology.ArchiveStream(0))
			} else {
				setUp(t, owner, change)
			}
			testkit.NoError(t, err)
			for i := range uint64(300) {
				if last, err = a.File(t.Context(), []*taskstate.Task{finishedTask("shop", time.Now(), 2+i)}, last); err != nil {
					break
				}
			}
			if err == nil || errors.Is(err, partition.ErrRefused) || errors.Is(err, errIndexRefused) != (what == "no index") {
				t.Errorf("filed: %v", err)
			}
		})
	}
}

// R5: letters that no stream takes are reported by their ids, and the others are stored.
func TestARefusedLetterIsToldFromTheOthers(t *testing.T) {
	owner, _ := serverPorts(t)
	var all []*taskstate.Task
	for i := range uint64(10) {
		all = append(all, finishedTask("shop", time.Now(), i))
	}
	all[3].Tasklist, all[7].Tasklist = "not a token", "not a token"
	err := NewArchive(owner, suiteRetention).StoreDead(t.Context(), all)
	var refused *partition.RefusedTaskError
	if !errors.As(err, &refused) || refused.Task != all[3].ID || refused.KeepS != 0 {
		t.Error(err)
	}
	last, err := natslog.LastSeq(t.Context(), owner.JetStream, topology.DeadLetterStream)
	if err != nil || last != 8 {
		t.Errorf("%d letters, want those of the other 8: %v", last, err)
	}
}
