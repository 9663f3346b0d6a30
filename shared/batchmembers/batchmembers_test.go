package batchmembers_test

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/shared/batchmembers"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// memory is a log that has one subject.
type memory struct {
	seq  uint64
	data []byte
	// others is how many members others store before each append, read when the last record is read.
	others int
	err    error
}

func (m *memory) LastFor(context.Context, int, string) (*natslog.Record, error) {
	if m.seq == 0 || m.err != nil {
		return nil, m.err
	}
	return &natslog.Record{Seq: m.seq, Data: m.data}, nil
}

func (m *memory) Append(_ context.Context, msg natslog.Msg) (uint64, bool, error) {
	if m.others > 0 {
		m.others--
		var said logv1.BatchMembers
		if err := said.UnmarshalVT(m.data); err != nil {
			return 0, false, err
		}
		m.put(said.Tasks+1, said.Closed)
	}
	if expected := msg.Header.Get(jetstream.ExpectedLastSubjSeqHeader); expected != (natslog.Msg{}).Over(m.seq).Header.Get(jetstream.ExpectedLastSubjSeqHeader) {
		return 0, false, natslog.ErrWrongLast
	}
	m.seq, m.data = m.seq+1, msg.Data
	return m.seq, false, nil
}

func (m *memory) put(tasks int64, closed bool) {
	m.data, _ = (&logv1.BatchMembers{BatchId: "a", LogVersion: 1, Tasks: tasks, Closed: closed, RepeatedAtMs: 7}).MarshalVT()
	m.seq++
}

var key = batchmembers.Key{Partition: 1, Domain: "shop", ID: "a", Made: 3}

// TestCloseCountsAllThatIsStored, also what is stored while it closes; and a record that is closed stays as it is.
func TestCloseCountsAllThatIsStored(t *testing.T) {
	for _, c := range []struct {
		tasks  int64 // -1 = there is no record
		others int
		want   int64
	}{{-1, 0, 0}, {2, 0, 2}, {2, 5, 7}} {
		log := &memory{others: c.others}
		if c.tasks >= 0 {
			log.put(c.tasks, false)
		}
		for range 2 {
			tasks, err := batchmembers.Close(t.Context(), log, key, 1)
			testkit.NoError(t, err)
			testkit.Equal(t, "members", tasks, c.want)
		}
		said, seq, err := batchmembers.Read(t.Context(), log, key)
		testkit.NoError(t, err)
		if !said.Closed || said.Tasks != c.want || c.tasks >= 0 && said.RepeatedAtMs != 7 || seq != log.seq {
			t.Errorf("the log has %v at %d", said, seq)
		}
	}
}

// TestCloseGivesUp if more members are stored all the time, if the log does not answer, or if it has what cannot be read.
func TestCloseGivesUp(t *testing.T) {
	away := errors.New("away")
	busy, bad := &memory{others: 1000}, &memory{seq: 1, data: []byte{0xff}}
	busy.put(1, false)
	for log, want := range map[*memory]error{busy: nil, bad: batchmembers.ErrUnreadable, {err: away}: away} {
		if _, err := batchmembers.Close(t.Context(), log, key, 1); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}
