package bench

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

func TestEveryWorkloadProvesItsTasks(t *testing.T) {
	t.Chdir(t.TempDir())
	var progress bytes.Buffer
	report, err := Run(t.Context(), Options{
		Tasks: 300, Runs: 1, Tables: "memory", Sync: "2m", Progress: &progress, Rest: time.Millisecond, slower: 5,
		Partitions: topology.Partitioning{History: 2, Matching: 1},
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	if len(report.Results) != len(workloads) {
		t.Fatalf("%+v", report.Results)
	}
	for i, r := range report.Results {
		latency := r.Start != nil && r.Submit != nil
		open := r.Workload == "W3" || r.Workload == "W9" || r.Workload == "W10"
		if r.Workload != workloads[i] || r.Tasks != 300 || r.TasksPerSecond <= 0 || len(r.Runs) != 1 || latency != open || (r.Reads != nil) != (r.Workload == "W9") || (r.Neighbours != nil) != (r.Workload == "W10") {
			t.Errorf("%+v", r)
		}
		if len(r.Memory) != 1 || r.Memory[0].BeforeMB <= 0 || r.Memory[0].PeakMB < r.Memory[0].BeforeMB || r.Memory[0].RestMB <= 0 {
			t.Errorf("%s: memory %+v", r.Workload, r.Memory)
		}
		if q := r.Start; q != nil && (q.P50 <= 0 || q.P50 > q.P90 || q.P90 > q.P99 || q.P99 > q.Max) {
			t.Errorf("%s: %+v", r.Workload, *q)
		}
		if g := r.Reads; g != nil && (g.Gets != 1500 || g.Get.P50 <= 0 || g.Get.P50 > g.Get.Max || g.QuietStart.P50 <= 0) {
			t.Errorf("%s: %+v", r.Workload, *g)
		}
	}
	n := report.Results[len(workloads)-1].Neighbours
	if n.Waits != 1000 || n.Polls != 3000 || n.Get.P50 <= 0 || n.QuietGet.P50 <= 0 || n.QuietSubmit.P50 <= 0 || n.GetRatio <= 0 || n.SubmitRatio <= 0 {
		t.Errorf("%+v", n)
	}
	if s := report.Settings; s.TablesAt != "memory" || s.HistoryPartitions != 2 || s.MatchingShards != 1 || s.Sync != "2m" {
		t.Errorf("%+v", s)
	}
	var table, file bytes.Buffer
	if err := report.WriteTable(&table); err != nil || strings.Count(table.String(), "\n") != 21 {
		t.Errorf("%v\n%s", err, &table)
	}
	var back Report
	if err := report.WriteJSON(&file); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(file.Bytes(), &back); err != nil || len(back.Results) != 5 || back.Machine.Cores < 1 || back.Machine.NATSServer == "" {
		t.Errorf("%v\n%s", err, &file)
	}
}

func TestProof(t *testing.T) {
	for name, c := range map[string]struct {
		accepted, completed []string
		want                string
	}{
		"all once":       {[]string{"a", "b"}, []string{"b", "a"}, ""},
		"one refused":    {[]string{"a"}, []string{"a"}, "1 tasks were accepted of 2"},
		"one id twice":   {[]string{"a", "a"}, []string{"a"}, "given twice"},
		"one lost":       {[]string{"a", "b"}, []string{"a"}, "2 tasks were accepted, 1 completed"},
		"one twice":      {[]string{"a", "b"}, []string{"a", "a"}, "completed twice"},
		"a stranger":     {[]string{"a", "b"}, []string{"a", "c"}, "never accepted"},
		"one more twice": {[]string{"a", "b"}, []string{"a", "b", "b"}, "completed twice"},
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
	if err := s.err(); err != nil || s.count.Load() != 1 {
		t.Errorf("%d begun, %v", s.count.Load(), err)
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

func TestMedianAndQuantiles(t *testing.T) {
	m := median([]Result{{TasksPerSecond: 30}, {TasksPerSecond: 10}, {TasksPerSecond: 20}})
	if m.TasksPerSecond != 20 || len(m.Runs) != 3 || m.Runs[0] != 30 {
		t.Errorf("%+v", m)
	}
	var all []time.Duration
	for i := 100; i > 0; i-- {
		all = append(all, time.Duration(i)*time.Microsecond)
	}
	if q := quantiles(all); q != (Quantiles{50, 90, 99, 100}) {
		t.Errorf("%+v", q)
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	for _, o := range []Options{{Workloads: []string{"W0"}}, {Runs: -1}, {Tasks: -1}} {
		if _, err := Run(t.Context(), o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}
