// Package report has the results of measurements, and prints them.
//
// Owns: the form of the JSON file and of the table, medians, ratios, pictures. Never does: measure.
package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/usage"
)

// Report is a whole measurement, as it is written to the JSON file.
type Report struct {
	At       time.Time     `json:"at"`
	Machine  usage.Machine `json:"machine"`
	Settings Settings      `json:"settings"`
	Results  []Result      `json:"results"`
	// Ratios are those of each further setting of sync, by workload.
	Ratios []Ratio `json:"ratios,omitempty"`
}

// Settings is what was measured.
type Settings struct {
	// Stack tells what was measured: one process with in-process connections, or a
	// cluster by its URL.
	Stack string `json:"stack"`
	// Sync is how often what is stored goes to disk; several are separated by commas.
	Sync     string `json:"sync"`
	TablesAt string `json:"tables"`
	// HistoryPartitions and MatchingShards are 0 where they are not known.
	HistoryPartitions int `json:"history_partitions"`
	MatchingShards    int `json:"matching_shards"`
	PayloadBytes      int `json:"payload_bytes"`
	WarmUpTasks       int `json:"warm_up_tasks"`
	LoadOptions
	// RestSeconds is how long the system rested before memory was measured; 0 = it was not.
	RestSeconds float64 `json:"rest_seconds,omitempty"`
}

// Result is the median run of one workload under one setting of sync.
type Result struct {
	Workload string  `json:"workload"`
	Sync     string  `json:"sync"`
	Tasks    int     `json:"tasks"`
	Seconds  float64 `json:"seconds"`
	// TasksPerSecond are those submitted, in W1s, W5 and W8s, and else those that went through.
	TasksPerSecond float64 `json:"tasks_per_second"`
	// LogMessages is how many messages were appended to the history streams meanwhile. Under
	// sync always each is a sync to disk. TasksPerSync is tasks by these; 0 = not known.
	LogMessages  uint64  `json:"log_messages,omitempty"`
	TasksPerSync float64 `json:"tasks_per_sync,omitempty"`
	// Polls is how many brought tasks.
	Polls int `json:"polls,omitempty"`
	// LateOutcomes were refused as stale; their tasks ran again and were completed.
	LateOutcomes int `json:"late_outcomes,omitempty"`
	// Start is from the submit call to the handler's start, Submit to the answer.
	Start  *Quantiles `json:"start_latency_us,omitempty"`
	Submit *Quantiles `json:"submit_latency_us,omitempty"`
	// Reads are those of W9; Start and Submit are then of the tasks beside them.
	Reads *Reads `json:"reads,omitempty"`
	// Timers are those of W4 and W6; Start and Submit are then of the tasks beside those of W6.
	Timers *Timers `json:"timers,omitempty"`
	// Overload is that of W7; Start and Submit are then of the small domains beside the flood with a quota.
	Overload *Overload `json:"overload,omitempty"`
	// Neighbours are those of W10; Start and Submit are then of the tasks beside the flood.
	Neighbours *Neighbours `json:"neighbours,omitempty"`
	// Fairness is that of W11; Start and Submit are then of the small group beside the flood of another one.
	Fairness *Fairness `json:"fairness,omitempty"`
	// Redrive is that of W12; Start and Submit are then of the tasks beside it.
	Redrive *Redrive `json:"redrive,omitempty"`
	// Asking is that of W13; Start and Submit are then of the tasks beside the worst flood.
	Asking *Asking `json:"asking,omitempty"`
	// Answers are those of W14.
	Answers *Answers `json:"answers,omitempty"`
	// Backlog is that of W1s, W5 and W8s.
	Backlog *Backlog `json:"backlog,omitempty"`
	Cost    Cost     `json:"cost"`
	// Redis is what the Redis of the tables did; nil where there is none, or it does not tell.
	Redis *usage.RedisUse `json:"redis,omitempty"`
	// Memory is of the median run, where it was measured.
	Memory []usage.Memory `json:"memory,omitempty"`
	// Runs are the deciding number of every run, in order: tasks per second, the
	// median latency, or the p99 of gets, in µs; or the (larger) ratio of W7, W10, W11, W12 or W13,
	// or how late the tasks of W4 and W6 were, p99, or the slowest p99 of W14, µs.
	Runs []float64 `json:"runs"`
}

// Reads are gets of finished tasks.
type Reads struct {
	Gets int `json:"gets"`
	// GetsPerSecond is what was reached, over the time to the last answer.
	GetsPerSecond float64 `json:"gets_per_second"`
	// Get is from when a get was due to its answer.
	Get Quantiles `json:"get_latency_us"`
	// FirstGet is the same of the first gets, which are not among the others.
	FirstGet Quantiles `json:"first_get_latency_us"`
	// QuietStart is Start without gets.
	QuietStart Quantiles `json:"quiet_start_latency_us"`
	// CPUPerGet is by how much the CPU time grew with the gets, µs for each.
	CPUPerGet float64 `json:"cpu_us_per_get"`
}

// Asking is what the tasks of a domain took alone and beside another one that asks without end.
type Asking struct {
	Floods []AskFlood `json:"floods"`
}

// AskFlood is one kind of question. Each number is the median of the rounds.
type AskFlood struct {
	Of string `json:"of"`
	// AnsweredPerSecond of the flood's requests had an answer, RefusedPerSecond were over a bound.
	AnsweredPerSecond float64 `json:"answered_per_second"`
	RefusedPerSecond  float64 `json:"refused_per_second"`
	// QuietP99 and P99 are of the start of the tasks alone and beside it. The ratios are p99 beside it by p99 alone.
	QuietP99    float64 `json:"quiet_p99_us"`
	P99         float64 `json:"p99_us"`
	StartRatio  float64 `json:"start_ratio"`
	SubmitRatio float64 `json:"submit_ratio"`
}

// Neighbours is what a domain's requests took alone and beside another one that floods.
type Neighbours struct {
	// Waits were open all the time, Polls sent in equal distances, of which PollsRefused were.
	Waits        int `json:"waits"`
	Polls        int `json:"polls"`
	PollsRefused int `json:"polls_refused"`
	// QuietGet, QuietSubmit and QuietStart are of the phase alone: from when a get was due, and from
	// the call of submit, to the answer and to the handler.
	QuietGet    Quantiles `json:"quiet_get_latency_us"`
	QuietSubmit Quantiles `json:"quiet_submit_latency_us"`
	QuietStart  Quantiles `json:"quiet_start_latency_us"`
	Get         Quantiles `json:"get_latency_us"`
	// GetRatio and SubmitRatio are p99 beside the flood by p99 alone.
	GetRatio    float64 `json:"get_p99_ratio"`
	SubmitRatio float64 `json:"submit_p99_ratio"`
}

// Fairness is what a small group's tasks waited beside floods, and what groups had by their weights.
type Fairness struct {
	// Small is how many tasks of the small group were submitted per second; FloodPerSecond what the worker ran beside them.
	Small          int     `json:"small_per_second"`
	FloodPerSecond float64 `json:"flood_per_second"`
	// QuietStart is from the submit call to the handler's start alone, DomainStart beside the flood of another domain, which
	// has a worker of its own. Beside the flood of another group it is the result's Start.
	QuietStart  Quantiles `json:"quiet_start_latency_us"`
	DomainStart Quantiles `json:"domain_start_latency_us"`
	// GroupRatio and DomainRatio are p99 beside the flood by p99 alone.
	GroupRatio  float64 `json:"group_p99_ratio"`
	DomainRatio float64 `json:"domain_p99_ratio"`
	// Shares are those of the groups that have a weight, until the first one is done; ZeroEarly is how many tasks of weight 0
	// started before the last of theirs.
	Shares    []Share `json:"shares"`
	ZeroEarly int     `json:"weight_0_started_early"`
}

// Share is what a group had of the starts, and what it is to have.
type Share struct {
	Weight float64 `json:"weight"`
	Share  float64 `json:"share"`
	Fair   float64 `json:"fair"`
}

// Quantiles of a latency, µs.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Cost is what a run used: this process, load generator included, and the
// redis-server it started. Against a cluster it is the load generator's alone.
type Cost struct {
	CPUPer100k      float64 `json:"cpu_seconds_per_100k_tasks"`
	RedisCPUPer100k float64 `json:"redis_cpu_seconds_per_100k_tasks"`
	// PeakMB is the most memory the process ever had, over all runs so far.
	PeakMB float64 `json:"peak_memory_mb"`
	HeapMB float64 `json:"heap_mb"`
}

// PerTask is what a task took of all processes that are measured, µs.
func (c Cost) PerTask() float64 { return c.CPUPer100k * 10 }

// finding is the special part of a result, of a workload that has one.
type finding interface {
	// line is the whole result in one line.
	line(r Result) string
	// key is the number that decides which run is the median.
	key() float64
}

func (r Result) finding() finding {
	switch {
	case r.Reads != nil:
		return r.Reads
	case r.Timers != nil:
		return r.Timers
	case r.Overload != nil:
		return r.Overload
	case r.Neighbours != nil:
		return r.Neighbours
	case r.Fairness != nil:
		return r.Fairness
	case r.Redrive != nil:
		return r.Redrive
	case r.Asking != nil:
		return r.Asking
	case r.Answers != nil:
		return r.Answers
	default:
		return nil
	}
}

// Picture draws the result; nil = there is no picture of the workload.
func (r Result) Picture() func() ([]byte, error) {
	switch {
	case r.Overload != nil:
		return r.Overload.PNG
	case r.Timers != nil:
		return r.Timers.PNG
	default:
		return nil
	}
}

// key is the number that decides which run is the median.
func (r Result) key() float64 {
	if f := r.finding(); f != nil {
		return f.key()
	}
	if r.Start != nil {
		return r.Start.P50
	}
	return r.TasksPerSecond
}

// Median returns the middle run, with the key of every run.
func Median(runs []Result) Result {
	keys := make([]float64, len(runs))
	for i, r := range runs {
		keys[i] = Round(r.key())
	}
	slices.SortFunc(runs, func(a, b Result) int { return cmp.Compare(a.key(), b.key()) })
	m := runs[(len(runs)-1)/2]
	m.Runs = keys
	return m
}

// QuantilesOf sorts them.
func QuantilesOf(all []time.Duration) Quantiles {
	slices.Sort(all)
	at := func(q float64) float64 {
		i := int(math.Ceil(q*float64(len(all)))) - 1
		return Round(float64(all[max(i, 0)].Nanoseconds()) / 1000)
	}
	return Quantiles{P50: at(0.5), P90: at(0.9), P99: at(0.99), Max: at(1)}
}

// Round is x with one digit behind the point.
func Round(x float64) float64 { return math.Round(x*10) / 10 }

// Round3 is x with three digits behind the point.
func Round3(x float64) float64 { return math.Round(x*1000) / 1000 }

// Line is a run in one line.
func (r Result) Line() string {
	if f := r.finding(); f != nil {
		return f.line(r)
	}
	if r.Start != nil {
		return fmt.Sprintf("start p50 %.2f ms, p90 %.2f, p99 %.2f, max %.2f; submit p50 %.2f ms; all %d once",
			r.Start.P50/1000, r.Start.P90/1000, r.Start.P99/1000, r.Start.Max/1000, r.Submit.P50/1000, r.Tasks)
	}
	what, backlog := "tasks/s", ""
	if b := r.Backlog; b != nil {
		what, backlog = "submits/s", "; "+b.line()
	}
	return fmt.Sprintf("%.0f %s, %s tasks per sync, %.2f CPU s per 100 k, %d polls%s; all %d completed once",
		r.TasksPerSecond, what, r.perSync(), r.Cost.CPUPer100k, r.Polls, backlog, r.Tasks)
}

// String is the median and the 99th percentile, in ms.
func (q Quantiles) String() string {
	return fmt.Sprintf("p50 %.2f ms, p99 %.2f", q.P50/1000, q.P99/1000)
}

// both are the same two, without their names.
func (q Quantiles) both() string { return fmt.Sprintf("%.2f, %.2f", q.P50/1000, q.P99/1000) }

// perSync is for people: a dash where it is not known.
func (r Result) perSync() string {
	if r.TasksPerSync == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", r.TasksPerSync)
}

// partitioning is for people.
func (s Settings) partitioning() string {
	if s.HistoryPartitions == 0 {
		return "partitions " + usage.Unknown
	}
	return fmt.Sprintf("%d partitions, %d shards", s.HistoryPartitions, s.MatchingShards)
}

// WriteJSON writes the report for programs.
func (r *Report) WriteJSON(w io.Writer) error { return WriteJSON(w, r) }

// WriteJSON writes a measurement for programs.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// WriteTable writes the report for people.
func (r *Report) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "machine\t%s, %d cores, %d MB, %s %s\n", r.Machine.CPU, r.Machine.Cores, r.Machine.MemoryMB, r.Machine.OS, r.Machine.Kernel)
	fmt.Fprintf(t, "versions\t%s, nats-server %s, nats.go %s\n", r.Machine.Go, r.Machine.NATSServer, r.Machine.NATSClient)
	limit := ""
	if r.Settings.Limit > 0 {
		limit = fmt.Sprintf(", %d of each at once", r.Settings.Limit)
	}
	if r.Settings.Groups > 0 {
		limit += fmt.Sprintf(", %d groups", r.Settings.Groups)
	}
	if n := r.Settings.OrderKeys; n > 0 {
		limit += fmt.Sprintf(", %d order keys", n)
	}
	if r.Settings.Unique {
		limit += ", unique keys"
	}
	if r.Settings.Spread > 1 {
		limit += fmt.Sprintf(", %d partitions of the tasklist", r.Settings.Spread)
	}
	if r.Settings.Levels > 1 {
		limit += fmt.Sprintf(", %d levels with %d of all", r.Settings.Levels, r.Settings.LimitAll)
	}
	fmt.Fprintf(t, "settings\t%s; sync %s; tables %s; %s; %d types%s; %d B payloads; median of %d\n\n",
		r.Settings.Stack, r.Settings.Sync, r.Settings.TablesAt, r.Settings.partitioning(),
		r.Settings.Types, limit, r.Settings.PayloadBytes, r.Settings.Runs)
	fmt.Fprintln(t, "WORKLOAD\tSYNC\tTASKS\tTASKS/S\tTASKS/SYNC\tP50 MS\tP90\tP99\tMAX\tCPU S/100K\tOF IT REDIS\tPEAK MB\tRUNS")
	for _, x := range r.Results {
		latency := "-\t-\t-\t-"
		if q := x.Start; q != nil {
			latency = fmt.Sprintf("%.2f\t%.2f\t%.2f\t%.2f", q.P50/1000, q.P90/1000, q.P99/1000, q.Max/1000)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%.0f\t%s\t%s\t%.2f\t%.2f\t%.0f\t%.0f\n",
			x.Workload, x.Sync, x.Tasks, x.TasksPerSecond, x.perSync(), latency, x.Cost.CPUPer100k, x.Cost.RedisCPUPer100k, x.Cost.PeakMB, x.Runs)
	}
	for _, x := range r.Results {
		if x.finding() != nil || x.Backlog != nil {
			fmt.Fprintf(t, "\n%s\t%s\n", x.Workload, x.Line())
		}
	}
	if len(r.Ratios) > 0 {
		fmt.Fprintln(t)
	}
	for _, x := range r.Ratios {
		fmt.Fprintln(t, x.line())
	}
	if r.Settings.RestSeconds > 0 {
		fmt.Fprintf(t, "\nWORKLOAD\tPROCESS\tPID\tBEFORE MB\tPEAK MB\tMB AFTER %v\n", time.Duration(r.Settings.RestSeconds*float64(time.Second)))
	}
	for _, x := range r.Results {
		for _, m := range x.Memory {
			fmt.Fprintf(t, "%s\t%s\t%d\t%.0f\t%.0f\t%.0f\n", x.Workload, m.Process, m.PID, m.BeforeMB, m.PeakMB, m.RestMB)
		}
	}
	return t.Flush()
}
