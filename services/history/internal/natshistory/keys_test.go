package natshistory

import (
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// keyOf is the last word on a key; nil = there is none.
func keyOf(t *testing.T, c Config, domain, key string) (*logv1.UniqueKey, *natslog.Record) {
	t.Helper()
	r, err := natslog.LastForSubject(t.Context(), c.JetStream, topology.HistoryStream(0), topology.UniqueKey(0, domain, key))
	testkit.NoError(t, err)
	if r == nil {
		return nil, nil
	}
	said := new(logv1.UniqueKey)
	testkit.NoError(t, said.UnmarshalVT(r.Data))
	return said, r
}

// gives appends that a task has a key, in place of a message, and returns the task as its owner has it.
func gives(t *testing.T, c Config, key string, n uint64, over uint64) *taskstate.Task {
	t.Helper()
	task := finishedTask("shop", time.Now(), n)
	task.FinishedAt = time.Now().UnixMilli()
	data, err := (&logv1.UniqueKey{TaskId: task.ID[:], Key: key}).MarshalVT()
	testkit.NoError(t, err)
	seq, _, err := natslog.Append(t.Context(), c.NATS, natslog.Msg{
		Subject: topology.UniqueKey(0, "shop", key), Data: data,
		Header: nats.Header{jetstream.ExpectedLastSubjSeqHeader: []string{strconv.FormatUint(over, 10)}},
	})
	testkit.NoError(t, err)
	task.Extra = &taskstate.Extra{Unique: &taskstate.Unique{Key: key, ForMS: 1000, Seq: seq}}
	return task
}

// TestEndKeys: the end of a task is the only word on its key, also where it is repeated, and nothing about the keys of others; a purge of all
// that is read leaves keys.
func TestEndKeys(t *testing.T) {
	t.Parallel()
	owner, _ := serverPorts(t)
	c := Config{NATS: owner.NATS, JetStream: owner.JetStream, LogVersion: version1}
	a := NewArchive(c, hour)
	first, other := gives(t, c, "one", 1, 0), gives(t, c, "two", 2, 0)
	for range 2 { // the second is by an owner that does not know of the first
		testkit.Eventually(t, 10*time.Second, func() error { return a.EndKeys(t.Context(), []*taskstate.Task{first}) })
	}
	said, last := keyOf(t, c, "shop", "one")
	if ids.TaskID(said.TaskId) != first.ID || said.FreeAtMs != first.FinishedAt+1000 {
		t.Errorf("the log says %v", said)
	}
	if said, _ := keyOf(t, c, "shop", "two"); said.FreeAtMs != 0 || ids.TaskID(said.TaskId) != other.ID {
		t.Errorf("of another key it says %v", said)
	}
	next := gives(t, c, "one", 3, last.Seq)
	testkit.NoError(t, a.EndKeys(t.Context(), []*taskstate.Task{first, other}))
	if said, _ := keyOf(t, c, "shop", "one"); ids.TaskID(said.TaskId) != next.ID || said.FreeAtMs != 0 {
		t.Errorf("an owner that is late took the key from the next task: %v", said)
	}
	end := store(t, c.NATS, topology.Event(0), []byte("e"))
	levels := replica.Levels{Events: end}
	for lane := range levels.Lanes {
		levels.Lanes[lane] = end
	}
	testkit.NoError(t, NewLog(c).Forget(t.Context(), levels))
	for _, key := range []string{"one", "two"} {
		if said, _ := keyOf(t, c, "shop", key); said == nil {
			t.Errorf("the purge of the log took the key %q", key)
		}
	}
}

// The server forgets the last word on a key once it says nothing any more, and what was said before does not come back.
func TestTheServerForgetsKeys(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for the server")
	owner, _ := serverPorts(t)
	c := Config{NATS: owner.NATS, JetStream: owner.JetStream, LogVersion: version1}
	task := gives(t, c, "one", 1, 0)
	msg, err := c.keyEnded(task, time.UnixMilli(task.FinishedAt+1000).Add(topology.UniqueKeyKept))
	testkit.NoError(t, err)
	testkit.Equal(t, "it is kept for s", msg.Header[jetstream.MsgTTLHeader][0], strconv.Itoa(int(topology.UniqueKeyKept/time.Second)))
	msg.Header[jetstream.MsgTTLHeader] = []string{"1"}
	if _, _, err := natslog.Append(t.Context(), c.NATS, msg); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 30*time.Second, func() error {
		if said, r := keyOf(t, c, "shop", "one"); said != nil {
			return errStillThere(r.Seq)
		}
		return nil
	})
}

type errStillThere uint64

func (e errStillThere) Error() string {
	return "message " + strconv.FormatUint(uint64(e), 10) + " is there"
}
