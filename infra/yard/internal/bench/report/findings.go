package report

import (
	"fmt"
	"strings"
	"time"
)

// LoadOptions are the options of the load that the report shows.
type LoadOptions struct {
	// Runs per workload; the median one is reported. Default 3.
	Runs int `json:"runs"`
	// Types is how many types the tasks are of, 1 to 1,000. Default 10.
	Types int `json:"types"`
	// Polls is how many polls wait for tasks at once, 1 to 10,000, in W1, W1s, W2, W2s and W5. Default 16.
	Polls int `json:"polls"`
	// Limit is how many tasks of each type may run at once. Default 0 = any number. The many domains of W8 and W8s have no
	// limits.
	Limit int `json:"limit,omitempty"`
	// Levels is of how many limits a task needs a slot, 1 to 4: of its type, of one that all types share, of its domain, and of
	// its tasklist. Default 1.
	Levels int `json:"levels,omitempty"`
	// Spread is how many partitions the tasklist has, 1 to 64. Default 1.
	Spread int `json:"tasklist_partitions,omitempty"`
	// LimitAll is how many tasks may run at once in each level but the first. Default 0 = Limit for each type.
	LimitAll int `json:"limit_all,omitempty"`
	// Groups is how many groups the tasks are of, in turn, 0 to 1,000,000. Default 0: they have none.
	Groups int `json:"groups,omitempty"`
	// Unique gives each task a unique key of its own, kept for an hour after its end.
	Unique bool `json:"unique,omitempty"`
	// OrderKeys is how many order keys the tasks are of, in turn, 0 to 1,000,000. Default 0: they have none.
	OrderKeys int `json:"order_keys,omitempty"`
	// Producers that submit at once. Default 0 = as many as the workload has.
	Producers int `json:"producers,omitempty"`
	// Domains are those of W8 and W8s, 1 to 10,000. Default 1000.
	Domains int `json:"domains"`
	// IdleDomains exist beside those of the workload and have no tasks, 0 to 1,000,000. Default 0.
	IdleDomains int `json:"idle_domains,omitempty"`
}

// Overload is what tasks of small domains waited alone and beside a domain that floods.
type Overload struct {
	// Domains submit so many tasks per second each.
	Domains   int `json:"domains"`
	PerDomain int `json:"per_domain_per_second"`
	// QuietStart is from the submit call to the handler's start without the flood.
	QuietStart Quantiles `json:"quiet_start_latency_us"`
	// AlonePerSecond is how many tasks of the flooding domain went through in a second while no other domain had any.
	AlonePerSecond float64 `json:"flood_alone_per_second"`
	// WithQuota and WithoutQuota are the two floods.
	WithQuota    Flood `json:"with_quota"`
	WithoutQuota Flood `json:"without_quota"`
}

// Flood is what one flood was, and what it cost the others.
type Flood struct {
	// Quota is how many tasks the domain may submit per second; 0 = any number.
	Quota int64 `json:"quota_per_second,omitempty"`
	// Offered are the tasks of all tries of requests, Accepted those that were stored, and Completed those that went through during the flood.
	OfferedPerSecond   float64 `json:"offered_per_second"`
	AcceptedPerSecond  float64 `json:"accepted_per_second"`
	CompletedPerSecond float64 `json:"completed_per_second"`
	// Refused are the tries that were answered with RESOURCE_EXHAUSTED.
	Refused int64 `json:"requests_refused"`
	// Start and Submit are of the small domains; Ratio is the p99 of Start by that alone; P99s are of each second, µs.
	Start  Quantiles `json:"start_latency_us"`
	Submit Quantiles `json:"submit_latency_us"`
	Ratio  float64   `json:"start_p99_ratio"`
	P99s   []float64 `json:"start_p99_us_by_second"`
}

func (f *Flood) String() string {
	return fmt.Sprintf("%.1f times the p99; %.0f/s offered, %.0f accepted, %.0f completed, %d requests refused",
		f.Ratio, f.OfferedPerSecond, f.AcceptedPerSecond, f.CompletedPerSecond, f.Refused)
}

func (o *Overload) key() float64 { return max(o.WithQuota.Ratio, o.WithoutQuota.Ratio) }

func (o *Overload) line(Result) string {
	return fmt.Sprintf("%d domains of %d tasks/s, start %s alone; beside a domain that does %.0f/s alone: with a quota of %d/s %s: %s; "+
		"without %s: %s. Fair filing and queue splits are always on",
		o.Domains, o.PerDomain, o.QuietStart, o.AlonePerSecond, o.WithQuota.Quota, o.WithQuota.Start.both(), &o.WithQuota, o.WithoutQuota.Start.both(), &o.WithoutQuota)
}

// Redrive is what dead letters that came back cost the tasks beside them.
type Redrive struct {
	DeadLetters int `json:"dead_letters"`
	// PerSecond is how many came back a second.
	PerSecond float64 `json:"redriven_per_second"`
	// QuietStart is from the submit call to the handler's start before.
	QuietStart Quantiles `json:"quiet_start_latency_us"`
	// Ratio is p99 beside the redrive by p99 alone.
	Ratio float64 `json:"start_p99_ratio"`
}

func (d *Redrive) key() float64 { return d.Ratio }

func (d *Redrive) line(r Result) string {
	return fmt.Sprintf("start %s, while %d dead letters came back at %.0f/s; alone %s: %.2f times the p99", r.Start, d.DeadLetters, d.PerSecond, d.QuietStart.both(), d.Ratio)
}

// Backlog is what tasks cost that wait for workers, and how they went through then.
type Backlog struct {
	// BytesPerTask is how much more the streams hold on disk for each task, its payload included; 0 = not known.
	BytesPerTask float64 `json:"bytes_per_task,omitempty"`
	// MemoryMB is what the measured processes have resident while all tasks wait, NATS included where it is embedded; 0 = not known.
	MemoryMB float64 `json:"memory_mb,omitempty"`
	// DrainedPerSecond is from the first poll to the last accepted completion.
	DrainedPerSecond float64 `json:"drained_per_second"`
}

// Drained notes how quickly the tasks went through.
func (b *Backlog) Drained(tasks int, took time.Duration) {
	b.DrainedPerSecond = Round(float64(tasks) / took.Seconds())
}

// line is the backlog in one line.
func (b *Backlog) line() string {
	return fmt.Sprintf("while all wait %.0f B on disk for each and %.0f MB resident; then %.0f tasks/s went through", b.BytesPerTask, b.MemoryMB, b.DrainedPerSecond)
}

// Worst is the larger ratio.
func (f AskFlood) Worst() float64 { return max(f.StartRatio, f.SubmitRatio) }

func (f AskFlood) String() string {
	return fmt.Sprintf("%s: %.0f/s answered, %.0f/s refused: start p99 %.2f ms, alone %.2f: %.1f times, submit %.1f times",
		f.Of, f.AnsweredPerSecond, f.RefusedPerSecond, f.P99/1000, f.QuietP99/1000, f.StartRatio, f.SubmitRatio)
}

func (a *Asking) key() float64 { return a.Worst() }

// Worst is the largest ratio of all floods.
func (a *Asking) Worst() float64 {
	worst := 0.0
	for _, f := range a.Floods {
		worst = max(worst, f.Worst())
	}
	return worst
}

func (a *Asking) line(Result) string {
	all := "beside"
	for _, f := range a.Floods {
		all += " " + f.String() + ";"
	}
	return all
}

func (f *Fairness) key() float64 { return max(f.GroupRatio, f.DomainRatio) }

func (f *Fairness) line(r Result) string {
	shares := make([]string, len(f.Shares))
	for i, s := range f.Shares {
		shares[i] = fmt.Sprintf("%g has %.3f (%.3f)", s.Weight, s.Share, s.Fair)
	}
	return fmt.Sprintf("%d tasks/s of a group, start %s alone; %s beside another group's flood of %.0f/s: %.1f times the p99; %s beside another domain's: %.1f times; of the starts weight %s; %d of weight 0 were early",
		f.Small, f.QuietStart, r.Start.both(), f.FloodPerSecond, f.GroupRatio, f.DomainStart.both(), f.DomainRatio, strings.Join(shares, ", "), f.ZeroEarly)
}

func (n *Neighbours) key() float64 { return max(n.GetRatio, n.SubmitRatio) }

func (n *Neighbours) line(r Result) string {
	return fmt.Sprintf("get %s, alone %s: %.2f times the p99; submit %s, alone %s: %.2f times; start %s, alone %s; beside %d waits and %d polls, %d of them refused",
		n.Get, n.QuietGet.both(), n.GetRatio, r.Submit, n.QuietSubmit.both(), n.SubmitRatio, r.Start, n.QuietStart.both(), n.Waits, n.Polls, n.PollsRefused)
}

func (g *Reads) key() float64 { return g.Get.P99 }

func (g *Reads) line(r Result) string {
	return fmt.Sprintf("%.0f gets/s: %s, max %.2f, %.0f µs CPU each, first ones p99 %.2f; tasks beside them: start %s, without gets %s",
		g.GetsPerSecond, g.Get, g.Get.Max/1000, g.CPUPerGet, g.FirstGet.P99/1000, r.Start, g.QuietStart.both())
}

// Timers is how delayed tasks came when they were due.
type Timers struct {
	Tasks int `json:"tasks"`
	// WindowSeconds is from the instant of the first one to that of the last one; 0 = all are due at one instant.
	WindowSeconds float64 `json:"window_seconds"`
	// StoredPerSecond is how quickly they were submitted. DonePerSecond is from the first instant to the last accepted completion.
	StoredPerSecond float64 `json:"stored_per_second"`
	DonePerSecond   float64 `json:"done_per_second"`
	// Late is from the instant of a task to the worker, LateP99s is that of the tasks of each second, and Fired is how many these were.
	Late     Quantiles `json:"late_us"`
	LateP99s []float64 `json:"late_p99_us_by_second"`
	Fired    []int     `json:"fired_by_second"`
	// QuietStart is of the tasks of the other domain alone, and OthersP99s are those of each second beside the timers, µs.
	QuietStart *Quantiles `json:"quiet_start_latency_us,omitempty"`
	OthersP99s []float64  `json:"others_start_p99_us_by_second,omitempty"`
}

func (m *Timers) key() float64 { return m.Late.P99 }

func (m *Timers) line(r Result) string {
	line := fmt.Sprintf("%d delayed tasks stored at %.0f/s, done at %.0f/s: late %s, max %.0f", m.Tasks, m.StoredPerSecond, m.DonePerSecond, m.Late, m.Late.Max/1000)
	if r.Start != nil && m.QuietStart != nil {
		line += fmt.Sprintf("; tasks of another domain beside them: start %s, alone %s", r.Start, m.QuietStart.both())
	}
	return line
}
