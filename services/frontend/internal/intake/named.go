package intake

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/shared/natslog"

	core "github.com/yardmaster-io/yardmaster/services/frontend/internal/core/intake"
)

// storeNamed stores s in a message of its own, unless it is stored.
func (in *Intake) storeNamed(s *submission) {
	s.begin(core.Named)
	in.Run.Query(s.call.Domain, s.call.Deadline, in.failed(s), func(ctx context.Context) (codec.Message, error) {
		in.finish(s, in.run(ctx, s))
		return nil, nil
	})
}

// do implements stepper.
func (s *submission) do(ctx context.Context, in *Intake, step core.Step) {
	switch step.Do {
	case core.Search:
		found, err := in.reads.find(ctx, s)
		s.Searched(found, err == nil)
	case core.Count:
		in.count(s)
	case core.Append:
		in.appendNamed(s, step.Within)
	case core.Verify:
		stored, err := in.reads.holds(ctx, s, s.counted.seq)
		s.Verified(stored, err == nil)
	case core.ReadClose:
		refused, _ := in.reads.refusedBy(ctx, s)
		s.closeRead(refused)
	default:
	}
}

// appendNamed appends s at its home, in a message that the log takes once.
func (in *Intake) appendNamed(s *submission, within time.Duration) {
	s.place(s.home)
	s.date(within)
	data, err := merged([]*submission{s}, in.LogVersion()).MarshalVT()
	if err != nil {
		s.broken(notEncoded(err))
		return
	}
	seq, duplicate, err := in.appender.append(s.home, s.member(natslog.Msg{Subject: subject(s.home, s.destination()), MsgID: s.message.String(), Data: data}))
	if err == nil {
		s.counted.lane, s.counted.seq = s.destination().Lane, seq
		if !duplicate {
			in.metrics.submitMessages.Add(1)
		}
	}
	s.Appended(outcomeOf(err, duplicate), s.now())
}

// store brings s into the log as one message. It answers s, now or later.
func (in *Intake) store(s *submission) {
	if core.Alone(s.HasID, s.Tries, s.call.Now.Sub(s.Made)) {
		in.storeNamed(s)
		return
	}
	s.begin(core.First)
	in.appender.carry(s)
}
