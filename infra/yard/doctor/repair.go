package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// Repair does what the kinds of the findings say that it does, one by one, and notes in each what became of it.
func (r *Report) Repair(ctx context.Context) {
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.mend == nil {
			continue
		}
		if err := f.mend(ctx); err != nil {
			f.RepairError = err.Error()
			continue
		}
		f.Repaired = true
	}
}

// freeKey stores that a unique key is free, in place of the record of a finding, unless a later record is there. It is the record that history stores when
// a task has ended, and the server removes it as soon.
func (s source) freeKey(partition int, f Finding) func(context.Context) error {
	return func(ctx context.Context) error {
		_, number, _ := strings.Cut(f.Where, "#")
		seq, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			return fmt.Errorf("which message: %w", err)
		}
		r, err := natslog.Get(ctx, s.js, topology.HistoryStream(partition), seq)
		if err != nil {
			return err
		}
		if r == nil || !topology.IsUniqueKey(partition, r.Subject) {
			return nil // it is gone
		}
		var w logv1.UniqueKey
		if err := w.UnmarshalVT(r.Data); err != nil {
			return err
		}
		data, err := (&logv1.UniqueKey{TaskId: w.TaskId, Key: w.Key, FreeAtMs: r.Time.UnixMilli()}).MarshalVT()
		if err != nil {
			return err
		}
		msg := natslog.Msg{Subject: r.Subject, Data: data, Header: nats.Header{
			jetstream.MsgRollup:    []string{jetstream.MsgRollupSubject},
			jetstream.MsgTTLHeader: []string{strconv.FormatInt(int64(topology.UniqueKeyKept.Seconds()), 10)},
		}}.Over(seq)
		_, _, err = natslog.Append(ctx, s.js.Conn(), msg)
		return err
	}
}
