package bench

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/report"
	"github.com/yardmaster-io/yardmaster/shared/parallel"
)

// question is one kind of request that makes the services search. Its answer may be an error of one code.
type question struct {
	name, endpoint string
	body           func() codec.Message
	answer         fault.Code
}

// questions are the floods of W13: none of them stores anything.
func questions() []question {
	return []question{
		{"gets of unknown tasks", "tasks.get", func() codec.Message {
			return &yardv1.GetRequest{TaskId: ids.NewTaskID(time.Now(), 0, uint64(time.Now().UnixNano())).String()}
		}, fault.NotFound},
		// Such an old request is only searched for, in all partitions.
		{"repeats of unknown requests", "tasks.submit", func() codec.Message {
			return &yardv1.SubmitRequest{
				RequestId: ids.NewRequestID(time.Now().Add(-w13RepeatAge)).String(),
				Tasks:     []*yardv1.NewTask{{Type: typeName(0), Tasklist: tasklist}},
			}
		}, fault.FailedPrecondition},
		{"lists", "tasks.list", func() codec.Message {
			return &yardv1.ListRequest{Group: "none"} // groups have no index, so each list reads all tasks that it may
		}, ""},
	}
}

// asking runs W13: tasks as in W3, by turns alone and while another domain asks without end, one kind of question after the other. A shared
// machine changes by more than a flood costs, so the phases are short and compared in pairs.
func (l *load) asking(ctx context.Context) (report.Result, error) {
	err := l.target.domains(ctx, []string{floodDomain}, topology.RetentionMin)
	if err != nil {
		return report.Result{}, err
	}
	// The lists read these.
	if _, err = (&load{target: l.target, tasks: min(l.tasks, w13Filled), brief: true}).drain(ctx, floodShape); err != nil {
		return report.Result{}, fmt.Errorf("fill: %w", err)
	}
	out := &report.Asking{}
	var worst report.Result
	for _, q := range questions() {
		rounds := make([]askRound, w13Rounds)
		for i := range rounds {
			if rounds[i], err = l.askRound(ctx, q, max(l.tasks/(w13Rounds*2*len(questions())), 1)); err != nil {
				return report.Result{}, fmt.Errorf("beside %s: %w", q.name, err)
			}
		}
		flood := floodOf(q.name, rounds)
		l.say("%s", flood)
		if out.Floods = append(out.Floods, flood); flood.Worst() >= out.Worst() {
			worst = rounds[0].beside
		}
	}
	worst.Tasks, worst.Asking = l.tasks, out
	return worst, nil
}

// askRound is one round of W13.
type askRound struct {
	alone, beside     report.Result
	answered, refused float64 // per second
}

// askRound runs tasks alone, and then as many beside a flood.
func (l *load) askRound(ctx context.Context, q question, tasks int) (r askRound, err error) {
	if r.alone, err = (&load{target: l.target, tasks: tasks}).latency(ctx, w13Rate); err != nil {
		return r, err
	}
	f, err := l.newAskers(q, max(time.Duration(tasks*l.target.slower)*time.Second/w13Rate, w13FloodMin))
	if err != nil {
		return r, err
	}
	r.beside, err = (&load{target: l.target, tasks: tasks}).beside(ctx, w13Rate, f.run)
	r.answered, r.refused = float64(f.answered.Load())/f.lasts.Seconds(), float64(f.refused.Load())/f.lasts.Seconds()
	return r, err
}

// askers are closed loops of one question, of the domain that floods.
type askers struct {
	question question
	nc       *nats.Conn
	lasts    time.Duration

	answered, refused atomic.Int64
}

func (l *load) newAskers(q question, lasts time.Duration) (*askers, error) {
	nc, err := l.target.connect()
	return &askers{question: q, nc: nc, lasts: lasts}, err
}

// run asks until its time is over, and waits for the last answers, so that nothing of it goes on beside the next phase. A request that is
// refused is repeated at once: the client is careless.
func (f *askers) run(ctx context.Context) error {
	end := time.Now().Add(f.lasts)
	ctx, cancel := context.WithDeadline(ctx, end.Add(w13AnswerMax))
	defer cancel()
	err := parallel.Each(ctx, w13Askers, w13Askers, func(ctx context.Context, _ int) (err error) {
		for err == nil && time.Now().Before(end) {
			err = f.ask(ctx)
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%s: %w", f.question.name, err)
	}
	return nil
}

func (f *askers) ask(ctx context.Context) error {
	body, err := codec.Marshal(codec.Protobuf, f.question.body())
	if err != nil {
		return err
	}
	m, err := f.nc.RequestMsgWithContext(ctx, &nats.Msg{
		Subject: topology.API(floodDomain, f.question.endpoint), Data: body,
		Header: nats.Header{codec.HeaderContentType: {string(codec.Protobuf)}},
	})
	if err != nil {
		return err
	}
	switch e := fault.Decode(m.Header.Get(fault.HeaderCode), m.Header.Get(fault.HeaderDescription), m.Data); {
	case e == nil || e.Code == f.question.answer:
		f.answered.Add(1)
		return nil
	case e.Code.Retryable():
		f.refused.Add(1)
		return nil
	default:
		return e
	}
}

// floodOf has the medians of the rounds.
func floodOf(name string, rounds []askRound) report.AskFlood {
	of := func(number func(r askRound) float64) float64 {
		all := make([]float64, len(rounds))
		for i, r := range rounds {
			all[i] = number(r)
		}
		slices.Sort(all)
		return report.Round(all[len(all)/2])
	}
	return report.AskFlood{
		Of:                name,
		AnsweredPerSecond: of(func(r askRound) float64 { return r.answered }),
		RefusedPerSecond:  of(func(r askRound) float64 { return r.refused }),
		QuietP99:          of(func(r askRound) float64 { return r.alone.Start.P99 }),
		P99:               of(func(r askRound) float64 { return r.beside.Start.P99 }),
		StartRatio:        of(func(r askRound) float64 { return r.beside.Start.P99 / r.alone.Start.P99 }),
		SubmitRatio:       of(func(r askRound) float64 { return r.beside.Submit.P99 / r.alone.Submit.P99 }),
	}
}
