package schedules

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/catalog/catalogtest"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/home"
)

// memLog is a log in memory that has the last message of each subject.
type memLog struct {
	seq  uint64
	last map[string]natslog.Record
	most int
	// before is called once, before the next append: what somebody else does then.
	before func()
	// failure is what the next append returns; the message is stored if stored is true.
	failure error
	stored  bool
}

func (l *memLog) Append(_ context.Context, m natslog.Msg) (seq uint64, duplicate bool, err error) {
	if f := l.before; f != nil {
		l.before = nil
		f()
	}
	failure := l.failure
	l.failure = nil
	if failure != nil && !l.stored {
		return 0, false, failure
	}
	if want := m.Header.Get(jetstream.ExpectedLastSubjSeqHeader); want != strconv.FormatUint(l.last[m.Subject].Seq, 10) {
		return 0, false, natslog.ErrWrongLast
	}
	l.seq++
	l.last[m.Subject] = natslog.Record{Seq: l.seq, Subject: m.Subject, Data: m.Data, Header: m.Header}
	return l.seq, false, failure
}

func (l *memLog) LastFor(_ context.Context, _ int, subject string) (*natslog.Record, error) {
	if m, ok := l.last[subject]; ok {
		return &m, nil
	}
	return nil, nil
}

func (l *memLog) MessageBytesMax() int { return l.most }

// memNames lists what a memLog has.
type memNames struct {
	*memLog
	more int // schedules that the domain has besides
}

func (m memNames) Names(_ context.Context, p int, domain string) ([]string, error) {
	all := make([]string, m.more)
	for subject := range m.last {
		if name, ok := strings.CutPrefix(subject, topology.ScheduleHome(p, domain, "")); ok {
			all = append(all, name)
		}
	}
	return all, nil
}

// rig is the room with everything around it in memory. It is 2026-11-30 10:00 UTC, a Monday.
type rig struct {
	*Schedules
	t       *testing.T
	log     *memLog
	now     time.Time
	catalog *catalog.Catalog
	kv      *catalogtest.KV
	full    bool
	drained error
}

const minute, hour = 60_000, 3_600_000

func newRig(t *testing.T, change ...func(*Deps)) *rig {
	t.Helper()
	r := &rig{
		t: t, log: &memLog{last: map[string]natslog.Record{}, most: 1 << 20}, now: time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC),
		catalog: catalog.New(nil), kv: catalogtest.New(),
	}
	r.kv.OnChange = func(e jetstream.KeyValueEntry) { r.catalog.Take(e) }
	d := Deps{
		Partitioning: topology.Partitioning{History: 3, Matching: 1}, Log: r.log, Names: memNames{memLog: r.log}, Catalog: r.catalog,
		LogVersion: func() uint32 { return 1 }, TakesTasks: func(int) bool { return !r.full },
		Drained:       func(call.Call, *yardv1.SubmitRequest) error { return r.drained },
		AppendTimeout: time.Second,
	}
	for _, f := range change {
		f(&d)
	}
	r.Schedules = New(d)
	return r
}

func (r *rig) nowMs() int64 { return r.now.UnixMilli() }

// asked has a verb carried out.
func asked[Req any](r *rig, do func(context.Context, call.Call, Req) (codec.Message, error), req Req) (codec.Message, error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 3*time.Second)
	defer cancel()
	return do(ctx, call.Call{Domain: "shop", JSON: true, Now: r.now}, req)
}

// done is asked of what must go well.
func done[Resp codec.Message, Req any](r *rig, do func(context.Context, call.Call, Req) (codec.Message, error), req Req) Resp {
	r.t.Helper()
	resp, err := asked(r, do, req)
	testkit.NoError(r.t, err)
	return resp.(Resp)
}

// hourly is a put of a schedule with a run each hour.
func hourly(name string, change ...func(*yardv1.Schedule)) *yardv1.PutScheduleRequest {
	s := &yardv1.Schedule{
		Name: name, Cron: []string{"0 * * * *"},
		Task: &yardv1.NewTask{Type: "report", Tasklist: "reports", Payload: &yardv1.Payload{Data: []byte(`{"day":"{{run_date}}"}`)}},
	}
	for _, f := range change {
		f(s)
	}
	return &yardv1.PutScheduleRequest{Schedule: s}
}

func (r *rig) put(req *yardv1.PutScheduleRequest) *yardv1.ScheduleInfo {
	r.t.Helper()
	return done[*yardv1.PutScheduleResponse](r, r.Put, req).Schedule
}

func (r *rig) get(name string) *yardv1.ScheduleInfo {
	r.t.Helper()
	return done[*yardv1.GetScheduleResponse](r, r.Get, &yardv1.GetScheduleRequest{Name: name}).Schedule
}

// home is what is stored of a schedule, and the headers of its message.
func (r *rig) home(name string) (*logv1.ScheduleHome, natslog.Record) {
	r.t.Helper()
	p := topology.SchedulePartition("shop", name, topology.Partitioning{History: 3, Matching: 1})
	m, ok := r.log.last[topology.ScheduleHome(p, "shop", name)]
	if !ok {
		r.t.Fatalf("nothing is stored of %s", name)
	}
	h, err := home.Decode[logv1.ScheduleHome](home.Place{Partition: p, Noun: "schedule"}, &m)
	testkit.NoError(r.t, err)
	return h, m
}

// keep stores what the keeper makes of a schedule.
func (r *rig) keep(name string, f func(*logv1.ScheduleHome)) {
	r.t.Helper()
	h, m := r.home(name)
	f(h)
	data, err := h.MarshalVT()
	testkit.NoError(r.t, err)
	r.log.seq++
	r.log.last[m.Subject] = natslog.Record{Seq: r.log.seq, Subject: m.Subject, Data: data}
}

// refused checks the code and the path of an error.
func refused(t *testing.T, what string, err error, code fault.Code, path string) {
	t.Helper()
	if e := fault.From(err); e == nil || e.Code != code || e.Path != path {
		t.Errorf("%s: got %v, want %s at %q", what, err, code, path)
	}
}

// runs writes runs as time since the start of the rig's day, and reason.
func runs(r *rig, all []*logv1.ScheduledRun) string {
	var b strings.Builder
	for _, run := range all {
		fmt.Fprintf(&b, "%d %s;", run.RunAtMs-r.now.Truncate(24*time.Hour).UnixMilli(), strings.ToLower(strings.TrimPrefix(run.Reason.String(), "RUN_REASON_")))
	}
	return b.String()
}
