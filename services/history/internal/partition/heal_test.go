package partition_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/memhistory"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestI5_AnOvertakenTaskIsTriggeredAgain: a trigger is lost while its tasklist is
// busy, so that no poll is ever hungry. That younger tasks of its column are granted gives it away.
func TestI5_AnOvertakenTaskIsTriggeredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		triggered := map[ids.TaskID]int{}
		var w *memhistory.World
		lost := ids.NewTaskID(time.Now(), 0, 1)
		publish := func(_ string, data []byte) {
			var h logv1.Hints
			if h.UnmarshalVT(data) != nil {
				return
			}
			for _, g := range h.Triggers {
				for i := range len(g.Triggers) / ids.TriggerBytes {
					tr := ids.TriggerAt(g.Triggers, i)
					mu.Lock()
					triggered[tr.ID]++
					mu.Unlock()
					if tr.ID != lost { // the lost one is never grabbed
						go w.SendEvents(started(t, tr))
					}
				}
			}
		}
		w = memhistory.NewWorld(publish, func(string, []byte) bool { return true })
		o := partition.New(partition.Deps{
			Shards: 1, Node: "heal", Config: partition.DefaultConfig(),
			Log: w, Archive: memhistory.Archive{World: w, Retention: func(string) time.Duration { return time.Hour }},
			Reader: memhistory.Reader{World: w}, TimerStore: w, Timer: w, Checkpoints: w, Snapshots: memhistory.Snapshots{World: w}, Wire: w,
			LogVersion: func() uint32 { return 1 }, Tokens: ids.NewTokens([ids.TokenSecretBytes]byte{}),
			Logger: slog.New(slog.DiscardHandler), Metrics: partition.NewMetrics(nil),
		})
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- o.Run(ctx) }()
		<-o.Ready()
		for n := range uint64(20) {
			id := lost
			if n > 0 {
				id = ids.NewTaskID(time.Now(), 0, n+1)
			}
			w.AppendSubmit(3, submitted(t, id))
			time.Sleep(time.Second)
		}
		stop()
		testkit.Check(t, <-ended)
		if triggered[lost] < 2 {
			t.Errorf("the overtaken task was triggered %d times", triggered[lost])
		}
		for id, n := range triggered {
			if id != lost && n > 1 {
				t.Errorf("%s was granted at once and triggered %d times", id, n)
			}
		}
	})
}

func submitted(t *testing.T, id ids.TaskID) []byte {
	b, err := (&logv1.Batch{Tasks: []*logv1.Record{{
		Id: id[:], Domain: "shop", Tasklist: "mail", Type: "t", Priority: 3,
		Policy: &logv1.Policy{MaxAttempts: 1, StartToCloseMs: 600_000},
	}}}).MarshalVT()
	testkit.Check(t, err)
	return b
}

func started(t *testing.T, tr ids.Trigger) []byte {
	b, err := (&logv1.EventBatch{ReplyTo: "asker", Events: []*logv1.Event{{
		Kind: logv1.EventKind_EVENT_KIND_STARTED, TaskId: tr.ID[:], Position: uint64(tr.Position), Version: tr.Version, Nonce: 1,
	}}}).MarshalVT()
	testkit.Check(t, err)
	return b
}
