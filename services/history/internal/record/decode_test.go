package record_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var readable = func() *logv1.Record {
	id := ids.NewTaskID(time.UnixMilli(1), 0, 7)
	return &logv1.Record{Id: id[:], Domain: "shop", Tasklist: "mail", Type: "email.send", Priority: 3, Position: uint64(ids.NewPosition(5, 3))}
}()

// changed is a readable record with a change.
func changed(change func(r *logv1.Record)) *logv1.Record {
	r := proto.Clone(readable).(*logv1.Record)
	change(r)
	return r
}

// R19: a record that could never be finished, since no subject holds its names or no lane its
// priority, is set apart when it is read. The others of its message go on.
func TestARecordThatCannotBeFiledIsBad(t *testing.T) {
	var bad []*logv1.Record
	for _, name := range []string{"", "a b", "a/b", ">", "*", "a\r\nb", "\xff", strings.Repeat("a", ids.NameBytesMax+1)} {
		bad = append(
			bad,
			changed(func(r *logv1.Record) { r.Domain = name }),
			changed(func(r *logv1.Record) { r.Tasklist = name }),
			changed(func(r *logv1.Record) { r.Type = name }),
		)
	}
	// A name that is good for a type and no subject token.
	bad = append(bad, changed(func(r *logv1.Record) { r.Domain = r.Type }), changed(func(r *logv1.Record) { r.Tasklist = r.Type }))
	for _, priority := range []int32{-1, 0, 6, 256 + 3} {
		bad = append(bad, changed(func(r *logv1.Record) { r.Priority = priority }))
	}
	data, err := (&logv1.Batch{Tasks: append(append([]*logv1.Record{readable}, bad...), readable)}).MarshalVT()
	testkit.NoError(t, err)
	dec := record.NewDecoder()
	for range 2 { // what it remembers changes nothing
		tasks, apart, err := dec.Submits(data, time.Now())
		if err != nil || len(tasks) != 2 || len(apart) != len(bad) {
			t.Fatalf("%d tasks, %d of %d set apart: %v", len(tasks), len(apart), len(bad), err)
		}
	}
}

// A submit that the log took too late is void, by the log's own time: the sender relies on it.
// The others of its message count.
func TestI1_ASubmitThatTheLogTookTooLateIsLeftOut(t *testing.T) {
	created := ids.TaskID(readable.Id).Time()
	data, err := (&logv1.Batch{Tasks: []*logv1.Record{readable, changed(func(r *logv1.Record) { r.WithinMs = 6000 })}}).MarshalVT()
	testkit.NoError(t, err)
	for after, want := range map[time.Duration]int{-time.Second: 2, 0: 2, 6000 * time.Millisecond: 2, 6001 * time.Millisecond: 1, time.Hour: 1} {
		tasks, bad, err := record.NewDecoder().Submits(data, created.Add(after))
		if err != nil || len(bad) > 0 || len(tasks) != want {
			t.Errorf("stored after %v: %d tasks, %v, %v", after, len(tasks), bad, err)
		}
	}
}

// TestAStartThatIsStoredTooLate counts as none: the frontend has not given the task to the worker. The decoder's records are used again, and the next task has
// no start of an earlier one.
func TestAStartThatIsStoredTooLate(t *testing.T) {
	const notAfterMS = 1_800_000_000_000
	starts := changed(func(r *logv1.Record) {
		r.Start = &logv1.DirectStart{Nonce: 9, Worker: "w", NotAfterMs: notAfterMS}
	})
	dec := record.NewDecoder()
	for _, c := range []struct {
		task  *logv1.Record
		atMS  int64
		nonce uint64
	}{{starts, notAfterMS, 9}, {starts, notAfterMS + 1, 0}, {readable, notAfterMS, 0}} {
		data := testkit.Encoded(t, &logv1.Batch{Tasks: []*logv1.Record{c.task}})
		tasks, _, err := dec.Submits(data, time.UnixMilli(c.atMS))
		if err != nil || len(tasks) != 1 {
			t.Fatal(len(tasks), err)
		}
		clear(data)
		if a := tasks[0].Attempt; a.Nonce != c.nonce || c.nonce != 0 && a.Worker.Name() != "w" {
			t.Errorf("stored at %d: attempt %+v, want nonce %d", c.atMS, a, c.nonce)
		}
	}
}
