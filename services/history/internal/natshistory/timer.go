package natshistory

import (
	"context"
	"fmt"
	"hash/maphash"
	"strconv"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

// TimerStore is the stream of waiting tasks beside this partition.
type TimerStore struct {
	Config
	seed maphash.Seed
}

// NewTimerStore makes the store.
func NewTimerStore(c Config) TimerStore { return TimerStore{Config: c, seed: maphash.MakeSeed()} }

// Park implements partition.TimerStore. The message's identity is its content, so that a
// write repeated since its outcome was unknown is stored once, within the dedupe window.
func (t TimerStore) Park(ctx context.Context, bucket int64, batch []byte) (uint64, error) {
	id := strconv.FormatUint(maphash.Bytes(t.seed, batch), 36) + strconv.Itoa(len(batch))
	return appendTo(ctx, t.Config, natslog.Msg{Subject: topology.Timer(t.Partition, bucket), Data: batch, MsgID: id})
}

// Fence implements partition.TimerStore.
func (t TimerStore) Fence(ctx context.Context, batch []byte) error {
	_, err := appendTo(ctx, t.Config, natslog.Msg{Subject: topology.TimerFence(t.Partition), Data: batch})
	return err
}

// Fenced implements partition.TimerStore. The timer purges no fence but those before the last.
func (t TimerStore) Fenced(ctx context.Context) (uint64, error) {
	last, err := natslog.LastForSubject(ctx, t.JetStream, topology.TimerStream(t.Partition), topology.TimerFence(t.Partition))
	if err != nil || last == nil {
		return 0, err
	}
	var fence logv1.Batch
	if err := fence.UnmarshalVT(last.Data); err != nil {
		return 0, fmt.Errorf("read the last fence of the timer store: %w", err)
	}
	return fence.Epoch, nil
}

// Last implements partition.TimerStore.
func (t TimerStore) Last(ctx context.Context) (uint64, error) {
	return natslog.LastSeq(ctx, t.JetStream, topology.TimerStream(t.Partition))
}

// Tail implements partition.TimerStore.
func (t TimerStore) Tail(ctx context.Context, after uint64, handle func(batch []byte) error) error {
	cfg := natslog.ReadConfig{Stream: topology.TimerStream(t.Partition), StartSeq: after + 1, Log: t.Log}
	return natslog.ReadAll(ctx, t.JetStream, cfg, func(r natslog.Record) error { return handle(r.Data) })
}

// Timer reaches the timer partition of the same number.
type Timer struct{ Config }

// FireEarly implements partition.Timer.
func (t Timer) FireEarly(ctx context.Context, wanted []replica.Search) (early partition.Early, err error) {
	req := &rpcv1.FireEarlyRequest{}
	for i := range wanted {
		req.TaskIds = append(req.TaskIds, wanted[i].ID[:])
		req.Domains = append(req.Domains, wanted[i].Domain)
	}
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	resp, err := natsrpc.Call[rpcv1.FireEarlyResponse](ctx, t.NATS, topology.TimerCall(t.Partition, "fire"), req)
	if err != nil {
		return early, err
	}
	early = partition.Early{Coming: make(map[ids.TaskID]bool, len(resp.Coming)), Fired: make(map[ids.TaskID]uint64, len(resp.Fired))}
	for _, b := range resp.Coming {
		id, err := ids.TaskIDFromBytes(b)
		if err != nil {
			return early, err
		}
		early.Coming[id] = true
	}
	for i, b := range resp.Fired {
		id, err := ids.TaskIDFromBytes(b)
		if err != nil {
			return early, err
		}
		early.Fired[id] = 0
		if i < len(resp.FiredSeqs) {
			early.Fired[id] = resp.FiredSeqs[i]
		}
	}
	return early, nil
}

// Locate implements partition.Timer.
func (t Timer) Locate(ctx context.Context, id ids.TaskID) (*logv1.Record, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	resp, err := natsrpc.Call[rpcv1.LocateTaskResponse](ctx, t.NATS, topology.TimerCall(t.Partition, "locate"), &rpcv1.LocateTaskRequest{TaskId: id[:]})
	if err != nil {
		return nil, 0, err
	}
	return resp.Waiting, resp.FiredSeq, nil
}
