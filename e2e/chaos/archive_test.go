package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/e2e/chaos/audit"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// archive reads the finished tasks straight from JetStream, and each message once.
type archive struct {
	js     jetstream.JetStream
	next   map[string]uint64 // by stream
	copies []audit.Copy
	tasks  map[string]bool // printed ids of those archived, dead letters apart
}

// openArchive connects to NATS until the test's end.
func openArchive(t *testing.T, c *cluster.Cluster) *archive {
	t.Helper()
	js, err := jetstream.New(c.Inside(nats.MaxReconnects(-1)))
	testkit.NoError(t, err)
	return &archive{js: js, next: map[string]uint64{}, tasks: map[string]bool{}}
}

// finished returns the tasks of one stored message, and none of an index message.
// All that this test knows of the archive's layout is here: a message with tasks
// is a batch of records, of any number of domains, in whatever order.
func finished(data []byte) []*logv1.Record {
	var batch logv1.Batch
	if batch.UnmarshalVT(data) != nil {
		return nil // a task in it would be missing, and so be found
	}
	return slices.DeleteFunc(batch.Tasks, func(r *logv1.Record) bool {
		_, err := ids.TaskIDFromBytes(r.Id)
		return err != nil || r.Domain != domain || !yardv1.TaskState(r.State).Finished()
	})
}

// read takes in what has been archived since the last time.
func (a *archive) read(ctx context.Context) error {
	for p := 0; ; p++ {
		err := a.readStream(ctx, topology.ArchiveStream(p), false)
		if errors.Is(err, jetstream.ErrStreamNotFound) && p > 0 {
			break
		}
		if err != nil {
			return err
		}
	}
	return a.readStream(ctx, topology.DeadLetterStream, true)
}

func (a *archive) readStream(ctx context.Context, name string, letters bool) error {
	stream, err := a.js.Stream(ctx, name)
	if err != nil {
		return err
	}
	last := stream.CachedInfo().State.LastSeq
	if last < max(a.next[name], 1) {
		return nil
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(a.next[name], 1),
	})
	if err != nil {
		return err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	for {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		meta, err := msg.Metadata()
		if err != nil {
			return err
		}
		for _, r := range finished(msg.Data()) {
			if !letters {
				a.tasks[ids.TaskID(r.Id).String()] = true
			}
			a.copies = append(a.copies, audit.Copy{Where: fmt.Sprintf("%s #%d", name, meta.Sequence.Stream), Letter: letters, Record: r})
		}
		a.next[name] = meta.Sequence.Stream + 1
		if meta.NumPending == 0 || a.next[name] > last {
			return nil
		}
	}
}
