package natshistory

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// laggingFor is JetStream with a server that has no message yet for the calls that lags names.
func laggingFor(t *testing.T, nc *nats.Conn, lags func(call string) bool) jetstream.JetStream {
	t.Helper()
	testkit.NoError(t, testkit.Err(nc.Subscribe("LAG.API.>", func(m *nats.Msg) {
		call := strings.TrimPrefix(m.Subject, "LAG.API.")
		if lags(call) {
			testkit.Check(t, nc.PublishMsg(&nats.Msg{Subject: m.Reply, Header: nats.Header{"Status": {"404"}, "Description": {"No Messages"}}}))
			return
		}
		testkit.Check(t, nc.PublishRequest("$JS.API."+call, m.Reply, m.Data))
	})))
	js, err := jetstream.NewWithAPIPrefix(nc, "LAG.API")
	testkit.NoError(t, err)
	return js
}

// TestL7_TheEndOfTheLogIsReadAsTheLeaderHasIt, and the fence of the timer store: any server may answer a direct get, also one that lags.
func TestL7_TheEndOfTheLogIsReadAsTheLeaderHasIt(t *testing.T) {
	t.Parallel()
	c := snapshots(t).Config
	seq, err := NewLog(c).Append(t.Context(), (&record.Turn{LogVersion: 1, Epoch: 3}).Append(nil), 0)
	testkit.NoError(t, err)
	testkit.NoError(t, NewTimerStore(c).Fence(t.Context(), testkit.Encoded(t, &logv1.Batch{Fence: true, Epoch: 3, LogVersion: 1})))
	c.JetStream = laggingFor(t, c.NATS, func(call string) bool { return strings.HasPrefix(call, "DIRECT.GET.") })
	if last, err := NewLog(c).LastTurn(t.Context()); err != nil || last.Seq != seq {
		t.Errorf("the last turn is %d, %v, want %d", last.Seq, err, seq)
	}
	if last, of, err := NewLog(c).Ends(t.Context()); err != nil || last != seq || of[partition.SourceEvents] != seq {
		t.Errorf("the log ends at %d, its turns at %d, %v, want %d", last, of[partition.SourceEvents], err, seq)
	}
	if epoch, err := NewTimerStore(c).Fenced(t.Context()); err != nil || epoch != 3 {
		t.Errorf("the fence is of epoch %d, %v", epoch, err)
	}
}
