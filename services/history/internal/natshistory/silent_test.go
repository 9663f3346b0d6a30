package natshistory

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestASearchWithoutAnAnswerEnds: the server takes the question and does not answer. A search
// that waited forever would keep its place from all others.
func TestASearchWithoutAnAnswerEnds(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for answers that do not come")
	owner, reader := serverPorts(t)
	reader.cfg.Partition = 9 // has no stream: the requests are ours
	testkit.NoError(t, testkit.Err(owner.NATS.Subscribe("$JS.API.DIRECT.GET."+topology.HistoryStream(9), func(*nats.Msg) {})))
	testkit.NoError(t, owner.NATS.Flush())
	ctx, cancel := context.WithTimeout(t.Context(), 4*readTimeout)
	defer cancel()
	if _, _, err := reader.Unread(ctx, replica.Search{ID: ids.NewTaskID(time.Now(), 9, 1)}, 0, replica.Levels{}); err == nil {
		t.Error("there was an answer")
	}
	if ctx.Err() != nil {
		t.Error("the search did not end before its caller's time was over")
	}
}

// TestAPoisonMessageDoesNotHideATask: R19. A submit message that cannot be read lies before
// the one with the task.
func TestAPoisonMessageDoesNotHideATask(t *testing.T) {
	t.Parallel()
	owner, reader := serverPorts(t)
	id := ids.NewTaskID(time.Now(), 0, 1)
	batch, err := (&logv1.Batch{Tasks: []*logv1.Record{{Id: id[:], Domain: "shop"}}}).MarshalVT()
	testkit.NoError(t, err)
	for _, data := range [][]byte{[]byte("\xff\xff poison"), batch} {
		if _, _, err := natslog.Append(t.Context(), owner.NATS, natslog.Msg{Subject: topology.Submit(0, 3, "shop", "mail"), Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	found, at, err := reader.Unread(t.Context(), replica.Search{ID: id}, 0, replica.Levels{})
	if err != nil || found == nil || at.Seq() != 2 {
		t.Errorf("found %v at %v, %v", found, at, err)
	}
}
