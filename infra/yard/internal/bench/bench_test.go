package bench

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/report"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestEveryWorkloadProvesItsTasks(t *testing.T) {
	testkit.Slow(t, "runs every workload, which takes seconds")
	t.Chdir(t.TempDir())
	var progress bytes.Buffer
	measured, err := Run(t.Context(), Options{
		Tasks: 300, LoadOptions: report.LoadOptions{Runs: 1, Domains: 20}, Tables: "memory", Syncs: []string{"2m"}, Progress: &progress, Rest: time.Millisecond, slower: 5,
		Partitions: topology.Partitioning{History: 2, Matching: 1},
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	if len(measured.Results) != len(workloads) || len(measured.Ratios) > 0 {
		t.Fatalf("%+v, %+v", measured.Results, measured.Ratios)
	}
	for i, r := range measured.Results {
		latency := r.Start != nil && r.Submit != nil
		open := slices.Contains([]string{"W3", "W6", "W7", "W9", "W10", "W11", "W12", "W13"}, r.Workload)
		if r.Workload != workloads[i].name || r.Tasks != 300 || r.TasksPerSecond <= 0 || len(r.Runs) != 1 || latency != open || foundOf(r) != workloads[i].name && foundOf(r) != "" {
			t.Errorf("%+v", r)
		}
		if r.Sync != "2m" || r.LogMessages == 0 || r.Overload == nil && r.LogMessages > 4*300 || r.TasksPerSync <= 0 {
			t.Errorf("%s, sync %s: %d messages of the log, %v tasks per sync", r.Workload, r.Sync, r.LogMessages, r.TasksPerSync)
		}
		if len(r.Memory) != 1 || r.Memory[0].BeforeMB <= 0 || r.Memory[0].PeakMB < r.Memory[0].BeforeMB || r.Memory[0].RestMB <= 0 {
			t.Errorf("%s: memory %+v", r.Workload, r.Memory)
		}
		if b := r.Backlog; (b != nil) != workloads[i].shape.ahead || b != nil && (b.BytesPerTask < payloadBytes || b.MemoryMB <= 0 || b.DrainedPerSecond <= 0) {
			t.Errorf("%s: backlog %+v", r.Workload, b)
		}
		if q := r.Start; q != nil && (q.P50 <= 0 || q.P50 > q.P90 || q.P90 > q.P99 || q.P99 > q.Max) {
			t.Errorf("%s: %+v", r.Workload, *q)
		}
		if g := r.Reads; g != nil && (g.Gets != 1500 || g.Get.P50 <= 0 || g.Get.P50 > g.Get.Max || g.QuietStart.P50 <= 0) {
			t.Errorf("%s: %+v", r.Workload, *g)
		}
		if o := r.Overload; o != nil && !flooded(o) {
			t.Errorf("%+v", *o)
		}
	}
	f := measured.Results[len(workloads)-4].Fairness
	if f.Small != 10 || f.QuietStart.P50 <= 0 || f.DomainStart.P50 <= 0 || f.GroupRatio <= 0 || f.DomainRatio <= 0 || f.FloodPerSecond <= 0 || len(f.Shares) != 3 {
		t.Errorf("%+v", f)
	}
	if d := measured.Results[len(workloads)-3].Redrive; d.DeadLetters != 300 || d.PerSecond <= 0 || d.QuietStart.P50 <= 0 || d.Ratio <= 0 {
		t.Errorf("%+v", d)
	}
	n := measured.Results[len(workloads)-5].Neighbours
	if n.Waits != 1000 || n.Polls != 3000 || n.Get.P50 <= 0 || n.QuietGet.P50 <= 0 || n.QuietSubmit.P50 <= 0 || n.GetRatio <= 0 || n.SubmitRatio <= 0 {
		t.Errorf("%+v", n)
	}
	checkFindings(t, measured.Results)
	checkAsking(t, measured.Results[len(workloads)-2].Asking)
	if s := measured.Settings; s.TablesAt != "memory" || s.HistoryPartitions != 2 || s.MatchingShards != 1 || s.Sync != "2m" {
		t.Errorf("%+v", s)
	}
	var table, file bytes.Buffer
	testkit.NoError(t, measured.WriteTable(&table))
	for _, w := range workloads {
		if !strings.Contains(table.String(), "\n"+w.name+" ") {
			t.Errorf("the table lacks %s:\n%s", w.name, &table)
		}
	}
	var back report.Report
	testkit.NoError(t, measured.WriteJSON(&file))
	if err := json.Unmarshal(file.Bytes(), &back); err != nil || len(back.Results) != len(workloads) || back.Machine.Cores < 1 || back.Machine.NATSServer == "" {
		t.Errorf("%v\n%s", err, &file)
	}
}

// foundOf is the workload of what a result has beside the numbers of all.
func foundOf(r report.Result) string {
	switch {
	case r.Timers != nil && r.Timers.WindowSeconds == 0:
		return "W4"
	case r.Timers != nil:
		return "W6"
	case r.Overload != nil:
		return "W7"
	case r.Reads != nil:
		return "W9"
	case r.Neighbours != nil:
		return "W10"
	case r.Fairness != nil:
		return "W11"
	case r.Redrive != nil:
		return "W12"
	case r.Asking != nil:
		return "W13"
	case r.Answers != nil:
		return "W14"
	default:
		return ""
	}
}

// checkFindings: each workload that measures more than all do has that.
func checkFindings(t *testing.T, results []report.Result) {
	t.Helper()
	for _, r := range results {
		if r.Timers != nil {
			checkTimers(t, r.Timers)
		}
		if want := []string{"W4", "W6", "W7", "W9", "W10", "W11", "W12", "W13", "W14"}; foundOf(r) == "" && slices.Contains(want, r.Workload) {
			t.Errorf("%s has only the numbers of all: %+v", r.Workload, r)
		}
	}
}

func checkTimers(t *testing.T, m *report.Timers) {
	t.Helper()
	fired := 0
	for _, n := range m.Fired {
		fired += n
	}
	if m.Tasks != 300 || fired != 300 || m.StoredPerSecond <= 0 || m.DonePerSecond <= 0 || m.Late.P50 <= 0 || len(m.LateP99s) != len(m.Fired) {
		t.Errorf("%+v", m)
	}
	if picture, err := m.PNG(); err != nil || len(picture) == 0 {
		t.Errorf("%d bytes, %v", len(picture), err)
	}
}

func checkAsking(t *testing.T, a *report.Asking) {
	t.Helper()
	answered := 0.0 // of all kinds: with few tasks a flood is short, and a slow machine answers not each kind
	for _, f := range a.Floods {
		answered += f.AnsweredPerSecond
		if f.StartRatio <= 0 || f.SubmitRatio <= 0 || f.P99 <= 0 || f.QuietP99 <= 0 {
			t.Errorf("%+v", f)
		}
	}
	if len(a.Floods) != 3 || answered <= 0 {
		t.Errorf("%+v", a)
	}
}

// flooded tells whether there were two floods of 128 tasks each of the others, at 40/s, one of them over its quota.
func flooded(o *report.Overload) bool {
	all := true
	for _, f := range []report.Flood{o.WithQuota, o.WithoutQuota} {
		all = all && f.Ratio > 0 && f.Start.P50 > 0 && len(f.P99s) == 1 && f.AcceptedPerSecond > 0 && f.CompletedPerSecond > 0
	}
	return all && o.Domains == 10 && o.PerDomain == 20 && o.QuietStart.P50 > 0 && o.AlonePerSecond > 0 &&
		o.WithQuota.Quota > 0 && o.WithQuota.Refused > 0 && o.WithQuota.OfferedPerSecond > o.WithQuota.AcceptedPerSecond &&
		o.WithoutQuota.Quota == 0 && o.WithoutQuota.Refused == 0
}

// W8 has a worker for each domain, and each domain its part of the tasks.
func TestManyDomainsHaveTheirShare(t *testing.T) {
	t.Chdir(t.TempDir())
	o := Options{Workloads: []string{"W8", "W8s"}, Tasks: 90, LoadOptions: report.LoadOptions{Runs: 1, Domains: 30, Producers: 7}, Tables: "memory"}
	testkit.NoError(t, o.Fill())
	target, err := o.open(t.Context(), "2m")
	testkit.NoError(t, err)
	defer func() {
		testkit.Check(t, target.close(t.Context()))
	}()
	spy, err := target.connect()
	testkit.NoError(t, err)
	requests := make(chan *nats.Msg, 10*o.Tasks)
	for _, subject := range []string{topology.APIAny("tasks.submit"), topology.PollOfAny} {
		testkit.NoError(t, testkit.Err(spy.ChanSubscribe(subject, requests)))
	}
	testkit.NoError(t, spy.Flush())
	for _, workload := range o.Workloads {
		w := o.workload(workload)
		shape := w.shape
		if shape.producers != 7 || shape.request != 1 || shape.ahead != (workload == "W8s") {
			t.Errorf("%s: %+v", workload, shape)
		}
		testkit.NoError(t, target.domains(t.Context(), shape.domains, w.retention))
		testkit.NoError(t, testkit.Err((&load{target: target, tasks: o.Tasks}).drain(t.Context(), shape)))
		testkit.NoError(t, spy.Flush())
		submits, polls := map[string]int{}, map[string]int{}
		for range len(requests) {
			subject := (<-requests).Subject
			if strings.HasSuffix(subject, ".submit") {
				submits[topology.DomainOf(subject)]++
			} else {
				polls[topology.DomainOf(subject)]++
			}
		}
		if len(submits) != o.Domains || len(polls) != o.Domains {
			t.Errorf("%s: %d domains submitted, %d polled", workload, len(submits), len(polls))
		}
		for d, n := range submits {
			if n != o.Tasks/o.Domains {
				t.Errorf("%s: %d submits of domain %s", workload, n, d)
			}
		}
	}
}

// What runs before something is measured leaves no polls behind: the engine would grant tasks to
// them, and grant those again.
func TestABriefDrainLeavesNoPolls(t *testing.T) {
	t.Chdir(t.TempDir())
	o := Options{Tables: "memory"}
	testkit.NoError(t, o.Fill())
	target, err := o.open(t.Context(), "2m")
	testkit.NoError(t, err)
	defer func() {
		testkit.Check(t, target.close(t.Context()))
	}()
	testkit.NoError(t, target.prepare(t.Context(), bulk, topology.RetentionMin))
	clients, err := target.clients([]string{domain})
	testkit.NoError(t, err)
	if d, err := clients[0].Wire().DescribeTasklist(t.Context(), tasklist); err != nil || d.WaitingPolls != 0 {
		t.Errorf("%d polls wait, %v", d.GetWaitingPolls(), err)
	}
}

// Runs with several settings of sync take turns, so that a slower hour slows both.
func TestSettingsOfSyncTakeTurns(t *testing.T) {
	testkit.Slow(t, "runs a workload several times")
	t.Chdir(t.TempDir())
	var progress bytes.Buffer
	measured, err := Run(t.Context(), Options{
		Workloads: []string{"W1"}, Tasks: 200, LoadOptions: report.LoadOptions{Runs: 2}, Tables: "memory", Syncs: []string{"always", "2m"}, Progress: &progress,
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	var turns []string
	for line := range strings.Lines(progress.String()) {
		if _, sync, ok := strings.Cut(line, ", sync "); ok {
			turns = append(turns, strings.TrimSpace(sync))
		}
	}
	testkit.Equal(t, "turns", turns, []string{"always", "2m", "always", "2m"})
	if r := measured.Results; len(r) != 2 || r[0].Sync != "always" || r[1].Sync != "2m" || len(r[0].Runs) != 2 {
		t.Errorf("%+v", r)
	}
	if r := measured.Ratios; len(r) != 1 || r[0].Workload != "W1" || r[0].Sync != "always" || r[0].By != "2m" || len(r[0].Runs) != 2 || r[0].Ratio <= 0 {
		t.Errorf("%+v", r)
	}
	var table bytes.Buffer
	if err := measured.WriteTable(&table); err != nil || !strings.Contains(table.String(), "sync always by 2m: ") {
		t.Errorf("%v\n%s", err, &table)
	}
}

func TestProof(t *testing.T) {
	for name, c := range map[string]struct {
		accepted, completed []string
		want                string
	}{
		"all once":          {[]string{"a", "b"}, []string{"b", "a"}, ""},
		"one refused":       {[]string{"a"}, []string{"a"}, "1 tasks were accepted of 2"},
		"one id twice":      {[]string{"a", "a"}, []string{"a"}, "given twice"},
		"one lost":          {[]string{"a", "b"}, []string{"a"}, "2 tasks were accepted, 1 completed"},
		"one twice":         {[]string{"a", "b"}, []string{"a", "a"}, "completed twice"},
		"an unknown client": {[]string{"a", "b"}, []string{"a", "c"}, "never accepted"},
		"one more twice":    {[]string{"a", "b"}, []string{"a", "b", "b"}, "completed twice"},
	} {
		err := prove(2, c.accepted, c.completed)
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestStartsAreCountedOnce(t *testing.T) {
	s := newStarts(2)
	s.called[1] = time.Now()
	one := append(bytes.Repeat([]byte{'x'}, payloadBytes-1), 1)
	copy(one[payloadBytes-8:], make([]byte, 7))
	s.begin(time.Now(), one)
	if err := s.err(); err != nil || s.began[0].Load() != 0 || s.began[1].Load() == 0 {
		t.Errorf("%v", err)
	}
	s.begin(time.Now(), one)
	if err := s.err(); err == nil || !strings.Contains(err.Error(), "started twice") {
		t.Errorf("%v", err)
	}
	s = newStarts(1)
	s.begin(time.Now(), one)
	s.begin(time.Now(), []byte("short"))
	if err := s.err(); err == nil || !strings.HasPrefix(err.Error(), "2 handlers") {
		t.Errorf("%v", err)
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	for _, o := range []Options{
		{Workloads: []string{"W0"}},
		{LoadOptions: report.LoadOptions{Runs: -1}},
		{Tasks: -1},
		{LoadOptions: report.LoadOptions{Producers: -1}},
		{LoadOptions: report.LoadOptions{Domains: -1}},
		{LoadOptions: report.LoadOptions{Domains: domainsMax + 1}},
		{LoadOptions: report.LoadOptions{IdleDomains: -1}},
		{Syncs: []string{"always", "often"}},
		{Syncs: []string{"always", "1s"}, URL: "nats://127.0.0.1:1"},
	} {
		if _, err := Run(t.Context(), o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

func TestAWrongAddressOfRedisShowsNoPassword(t *testing.T) {
	if err := new(target).openRedis("redis://ann:secret@:x"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}
