package natstimer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/schedules"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

// scheduleTimeout bounds one write of a schedule, and one question about a task.
const scheduleTimeout = 5 * time.Second

// Schedules are those of one partition in the history log. They implement schedules.Store and schedules.History.
type Schedules struct {
	JetStream jetstream.JetStream
	NATS      *nats.Conn
	Partition int
	// LogVersion is the version to write.
	LogVersion func() uint32
	Log        *slog.Logger
}

// Follow implements schedules.Store.
func (s Schedules) Follow(ctx context.Context, handle func(schedules.Name, schedules.Loaded) error) error {
	cfg := natslog.ReadConfig{Stream: topology.HistoryStream(s.Partition), Filters: []string{topology.ScheduleHomeAny(s.Partition)}, Log: s.Log}
	return natslog.Read(ctx, s.JetStream, cfg, func(r natslog.Record) error {
		home, err := scheduleOf(&r)
		var unknown *logversion.UnknownError
		switch {
		case errors.As(err, &unknown):
			return err
		case err != nil: // the partition goes on without it
			s.Log.Error("a schedule cannot be decoded, and makes no runs", "partition", s.Partition, "subject", r.Subject, "error", err)
			return nil
		}
		domain := topology.DomainOfScheduleHome(s.Partition, r.Subject)
		name := r.Subject[strings.LastIndexByte(r.Subject, '.')+1:]
		return handle(schedules.Name{Domain: domain, Schedule: name}, schedules.Loaded{Seq: r.Seq, Home: home})
	})
}

func scheduleOf(r *natslog.Record) (*logv1.ScheduleHome, error) {
	home := &logv1.ScheduleHome{}
	if err := home.UnmarshalVT(r.Data); err != nil {
		return nil, fmt.Errorf("message %d of the log is no schedule: %w", r.Seq, err)
	}
	if err := logversion.Check(home.LogVersion); err != nil {
		return nil, fmt.Errorf("message %d of the log: %w", r.Seq, err)
	}
	return home, nil
}

// Load implements schedules.Store.
func (s Schedules) Load(ctx context.Context, n schedules.Name) (*schedules.Loaded, error) {
	m, err := natslog.LastForSubject(ctx, s.JetStream, topology.HistoryStream(s.Partition), topology.ScheduleHome(s.Partition, n.Domain, n.Schedule))
	if err != nil || m == nil {
		return nil, err
	}
	home, err := scheduleOf(m)
	if err != nil {
		return nil, err
	}
	return &schedules.Loaded{Seq: m.Seq, Home: home}, nil
}

// Change implements schedules.Store. The schedule comes first, so its sequence is known from that of the last message.
func (s Schedules) Change(ctx context.Context, n schedules.Name, was uint64, home *logv1.ScheduleHome, tasks []*logv1.Record) (seq uint64, err error) {
	data, err := home.MarshalVT()
	if err != nil {
		return 0, fmt.Errorf("encode a schedule: %w", err)
	}
	msgs := []natslog.Msg{natslog.Msg{Subject: topology.ScheduleHome(s.Partition, n.Domain, n.Schedule), Data: data}.Only().Over(was)}
	for _, t := range tasks {
		data, err := (&logv1.Batch{Tasks: []*logv1.Record{t}, LogVersion: s.LogVersion()}).MarshalVT()
		if err != nil {
			return 0, fmt.Errorf("encode the run of a schedule: %w", err)
		}
		msgs = append(msgs, natslog.Msg{Subject: topology.Submit(s.Partition, ids.Lane(t.Priority), t.Domain, t.Tasklist), Data: data})
	}
	ctx, cancel := context.WithTimeout(ctx, scheduleTimeout)
	defer cancel()
	last, err := natslog.AppendAtomic(ctx, s.NATS, msgs)
	if errors.Is(err, natslog.ErrWrongLast) {
		return 0, schedules.ErrChanged
	}
	return last - uint64(len(tasks)), err
}

// Ended implements schedules.History. A task may go from the timer store into history between two questions, so history is asked twice.
func (s Schedules) Ended(ctx context.Context, domain string, id ids.TaskID) (bool, error) {
	req := &rpcv1.GetTaskRequest{TaskId: id[:], Domain: domain, Brief: true}
	for _, owner := range []func(int, string) string{topology.HistoryCall, topology.TimerCall, topology.HistoryCall} {
		ctx, cancel := context.WithTimeout(ctx, scheduleTimeout)
		resp, err := natsrpc.Call[rpcv1.GetTaskResponse](ctx, s.NATS, owner(s.Partition, "get"), req)
		cancel()
		if err != nil {
			return false, fmt.Errorf("whether a run has ended: %w", err)
		}
		if resp.Task != nil && resp.Task.State != yardv1.TaskState_TASK_STATE_UNSPECIFIED {
			return resp.Task.State.Finished(), nil
		}
	}
	return true, nil
}

// Cancel implements schedules.History.
func (s Schedules) Cancel(domain string, id ids.TaskID) error {
	e := &logv1.Event{Kind: logv1.EventKind_EVENT_KIND_CANCEL, TaskId: id[:], Domain: domain, Message: "the next run of its schedule is due"}
	data, err := (&logv1.EventBatch{Events: []*logv1.Event{e}, LogVersion: s.LogVersion()}).MarshalVT()
	if err != nil {
		return fmt.Errorf("encode a cancel: %w", err)
	}
	return s.NATS.Publish(topology.EventRequests(s.Partition), data)
}
