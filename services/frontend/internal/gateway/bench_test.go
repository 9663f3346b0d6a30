package gateway

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
)

// nullLog stores nothing, at once.
type nullLog struct{}

func (nullLog) Append(context.Context, natslog.Msg) (uint64, bool, error)     { return 1, false, nil }
func (nullLog) Message(context.Context, int, uint64) (*natslog.Record, error) { return nil, nil }
func (nullLog) MessageBytesMax() int                                          { return 1 << 20 }

func (nullLog) AppendAtomic(context.Context, []natslog.Msg) (uint64, error)   { return 1, nil }
func (nullLog) LastFor(context.Context, int, string) (*natslog.Record, error) { return nil, nil }

func (nullLog) AppendEach(_ context.Context, msgs []natslog.Msg, outcome func(int, natslog.Appended)) {
	for i := range msgs {
		outcome(i, natslog.Appended{Seq: 1})
	}
}

// BenchmarkSubmit is what the frontend itself costs per task, from the request's
// bytes to the answer's: decode, check, resolve, encode for the log, answer.
func BenchmarkSubmit(b *testing.B) {
	for _, form := range []codec.ContentType{codec.JSON, codec.Protobuf} {
		for _, n := range []int{1, 100} {
			b.Run(fmt.Sprintf("%s/%d", form[len("application/"):], n), func(b *testing.B) { benchmarkSubmit(b, form, n) })
		}
	}
}

func benchmarkSubmit(b *testing.B, form codec.ContentType, n int) {
	g, err := New(Deps{
		Config: DefaultConfig(), Partitioning: topology.DefaultPartitioning(),
		Tokens: rigTokens, History: nullLog{}, Bus: &memBus{}, Owners: noOwners(), Catalog: newMemCatalog().Catalog, Settings: newMemCatalog().kv,
	})
	testkit.NoError(b, err)
	req := tasks(n)
	for _, t := range req.Tasks {
		t.Payload = &yardv1.Payload{Data: fmt.Appendf(nil, `{"text":"%0245d"}`, 1)}
	}
	body, err := codec.Marshal(form, req)
	testkit.NoError(b, err)
	answered := make(chan error, 1)
	answer := func(resp codec.Message, err error) {
		if err == nil {
			_, err = codec.Marshal(form, resp)
		}
		answered <- err
	}
	b.ReportAllocs()
	for b.Loop() {
		now := time.Now()
		req := &yardv1.SubmitRequest{}
		testkit.NoError(b, codec.UnmarshalRequest(form, body, req))
		g.Intake.Submit(call.Call{Domain: "shop", JSON: form == codec.JSON, Received: now, Now: now, Deadline: now.Add(time.Second)}, req, answer)
		testkit.NoError(b, <-answered)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/task")
}
