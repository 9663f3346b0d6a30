// Package gauges shows on the page of metrics how full the queues of a host's partitions are, and what its busiest domains have and do.
//
// A rate is a gauge and no counter: a domain comes and goes, and counters of it and of the others together would jump whenever it does.
//
// Owns: the last reports of the partitions, and which domains are the busiest. Never does: look at a partition. On failure: nothing can
// fail; a partition that its host has no more leaves the page.
package gauges

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/admission"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/nottaken"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// Report is what one partition has. It is not changed any more.
type Report struct {
	// NowMS is the time of the log, Unix ms.
	NowMS int64
	// OldestReady is for how long the oldest ready task has waited.
	OldestReady time.Duration
	// NotTaken are the tasklists whose tasks have waited longest and are not paused.
	NotTaken []nottaken.Tasklist
	Lanes    [ids.Lanes]Lane
	// Domains are those with a task in memory, as of CountedAt, by a clock of the partition that never jumps.
	Domains   []dispatch.DomainCensus
	CountedAt time.Duration
	// Unread are the messages on disk of queues that are split off, by domain.
	Unread map[string]int64
	Saved
}

// Saved is when the owner of a partition saved a snapshot last, Unix ms, 0 = never, and about how many bytes of the log follow the last one.
type Saved struct{ SavedAtMS, UnsavedBytes int64 }

// Lane is how full a lane is, and how many messages of it, and of what is split off it, are on disk.
type Lane struct {
	admission.LaneFill
	Unread, SplitOffUnread int64
}

// window is over how much time a rate is taken at least, once that has passed. It is less than two windows and the time between two counts.
const window = 10 * time.Second

// partition is the last report of one, and two earlier ones of other times: the base of its rates, and the next base.
type partition struct {
	last, next, base *Report
}

// Gauges has the reports of the partitions of a host. It is safe for concurrent use.
type Gauges struct {
	weight func(domain string) int
	most   int

	mu         sync.Mutex
	partitions map[int]partition
}

// New shows the gauges among metrics: those of up to most domains, and of the others together.
func New(m *telemetry.Metrics, weight func(domain string) int, most int) *Gauges {
	g := &Gauges{weight: weight, most: most, partitions: map[int]partition{}}
	m.GaugesFunc(g.show, signals.OldestReady, signals.QueuesSplitOff, signals.QueueTasks, signals.QueueTasksMax, signals.QueueBytes, signals.QueueBytesMax, signals.QueueUnread,
		signals.DomainAdmitted, signals.DomainStarted, signals.DomainCompleted, signals.DomainFailed, signals.DomainShare, signals.DomainHad, signals.DomainTasks, signals.DomainUnread, signals.DomainOldestReady, signals.TasklistOldestReady)
	return g
}

// Report replaces the report of a partition.
func (g *Gauges) Report(number int, r *Report) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p, ok := g.partitions[number]
	if !ok {
		p.base, p.next = r, r
	}
	if p.last = r; r.CountedAt-p.next.CountedAt >= window {
		p.base, p.next = p.next, r
	}
	g.partitions[number] = p
}

// Leave forgets a partition that this host has no more.
func (g *Gauges) Leave(number int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.partitions, number)
}

// Saved is what the owner of a partition on this host reported last of its snapshots; ok is false if there is no report.
func (g *Gauges) Saved(number int) (s Saved, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p, ok := g.partitions[number]
	if ok {
		s = p.last.Saved
	}
	return s, ok
}

// set shows the value of one series.
type set = func(of signals.Metric, value float64, values ...string)

// show shows what the last reports say.
func (g *Gauges) show(set set) {
	g.mu.Lock()
	all := make(map[int]partition, len(g.partitions))
	for number, p := range g.partitions {
		all[number] = p
	}
	g.mu.Unlock()
	for number, p := range all {
		set(signals.OldestReady, p.last.OldestReady.Seconds(), strconv.Itoa(number))
		showQueues(set, strconv.Itoa(number), p.last)
	}
	g.showDomains(set, all)
	g.showNotTaken(set, all)
}

// notTakenAfter is for how long a task waits at least until its tasklist has a series.
const notTakenAfter = 10 * time.Second

// showNotTaken shows the tasklists whose tasks wait longest, as many as domains have series.
func (g *Gauges) showNotTaken(set set, partitions map[int]partition) {
	type tasklist struct{ domain, name string }
	longest := map[tasklist]time.Duration{}
	for _, p := range partitions {
		for _, t := range p.last.NotTaken {
			waits := time.Duration(p.last.NowMS-t.ReadyAt) * time.Millisecond
			if at := (tasklist{t.Domain, t.Name}); waits >= notTakenAfter && waits > longest[at] {
				longest[at] = waits
			}
		}
	}
	all := slices.SortedFunc(maps.Keys(longest), func(a, b tasklist) int {
		return cmp.Or(cmp.Compare(longest[b], longest[a]), strings.Compare(a.domain, b.domain), strings.Compare(a.name, b.name))
	})
	of := map[string]int{}
	all = slices.DeleteFunc(all, func(at tasklist) bool { of[at.domain]++; return of[at.domain] > nottaken.MostOfDomain })
	for _, at := range all[:min(len(all), g.most)] {
		set(signals.TasklistOldestReady, longest[at].Seconds(), at.domain, at.name)
	}
}

func showQueues(set set, partition string, r *Report) {
	domains, tasklists := 0, 0
	for n, l := range r.Lanes {
		show := func(queue string, fill admission.Fill, unread int64) {
			at := []string{partition, ids.Lane(n).String(), queue}
			set(signals.QueueTasks, float64(fill.Tasks), at...)
			set(signals.QueueTasksMax, float64(fill.TasksMax), at...)
			set(signals.QueueBytes, float64(fill.Bytes), at...)
			set(signals.QueueBytesMax, float64(fill.BytesMax), at...)
			set(signals.QueueUnread, float64(unread), at...)
		}
		show(signals.QueueLane, l.Lane, l.Unread)
		if l.Domains+l.Tasklists > 0 {
			show(signals.QueueSplitOff, l.SplitOff, l.SplitOffUnread)
		}
		domains, tasklists = domains+l.Domains, tasklists+l.Tasklists
	}
	set(signals.QueuesSplitOff, float64(domains), partition, signals.QueueDomain)
	set(signals.QueuesSplitOff, float64(tasklists), partition, signals.QueueTasklist)
}

// Work is what a domain does in a second, and has.
type Work struct {
	Admitted, Started, Completed, Failed      float64
	Ready, Running, Backoff, Unread, OldestMS int64
}

// works reports whether the domain counts among those that share what is done.
func (w *Work) works() bool { return w.Completed > 0 || w.Ready+w.Running+w.Unread > 0 }

// rests reports whether there is nothing to say of the domain.
func (w *Work) rests() bool {
	return !w.works() && w.Backoff == 0 && w.Failed+w.Started+w.Admitted == 0
}

func (w *Work) add(o *Work) {
	w.Admitted, w.Started, w.Completed, w.Failed = w.Admitted+o.Admitted, w.Started+o.Started, w.Completed+o.Completed, w.Failed+o.Failed
	w.Ready, w.Running, w.Backoff, w.Unread = w.Ready+o.Ready, w.Running+o.Running, w.Backoff+o.Backoff, w.Unread+o.Unread
	w.OldestMS = max(w.OldestMS, o.OldestMS)
}

// domain is what one has in all partitions.
type domain struct {
	Work
	name   string
	weight int
}

func (d *domain) add(o *domain) {
	d.weight += o.weight
	d.Work.add(&o.Work)
}

// Domains are what the domains of a partition do and have, those that rest left out.
func (g *Gauges) Domains(number int) map[string]Work {
	g.mu.Lock()
	p, ok := g.partitions[number]
	g.mu.Unlock()
	all := map[string]Work{}
	if ok {
		for _, d := range g.domains(map[int]partition{number: p}) {
			all[d.name] = d.Work
		}
	}
	return all
}

// showDomains shows the busiest domains, and the others as one.
func (g *Gauges) showDomains(set set, partitions map[int]partition) {
	var sum domain
	all := g.domains(partitions)
	for _, d := range all {
		sum.add(d)
	}
	busy := func(d *domain) float64 {
		return part(d.Completed, sum.Completed) + part(float64(d.Ready), float64(sum.Ready))
	}
	slices.SortFunc(all, func(a, b *domain) int { return cmp.Or(cmp.Compare(busy(b), busy(a)), strings.Compare(a.name, b.name)) })
	rest, shown := domain{name: signals.Other}, 0
	for _, d := range all {
		if shown == g.most || d.name == rest.name { // a series of its own would be that of the rest
			rest.add(d)
			continue
		}
		d.show(set, &sum)
		shown++
	}
	rest.show(set, &sum)
}

// domains adds up what each domain has in all partitions, without those that have and do nothing. Those without work have no weight.
func (g *Gauges) domains(partitions map[int]partition) (all []*domain) {
	byName := map[string]*domain{}
	of := func(name string) *domain {
		d := byName[name]
		if d == nil {
			d = &domain{name: name}
			byName[name], all = d, append(all, d)
		}
		return d
	}
	for _, p := range partitions {
		before := make(map[string]*dispatch.DomainCensus, len(p.base.Domains))
		for i := range p.base.Domains {
			before[p.base.Domains[i].Domain] = &p.base.Domains[i]
		}
		took := (p.last.CountedAt - p.base.CountedAt).Seconds()
		for i := range p.last.Domains {
			of(p.last.Domains[i].Domain).count(&p.last.Domains[i], before[p.last.Domains[i].Domain], took, p.last.NowMS)
		}
		for name, unread := range p.last.Unread {
			of(name).Unread += unread
		}
	}
	for _, d := range all {
		if d.works() {
			d.weight = max(1, g.weight(d.name))
		}
	}
	return slices.DeleteFunc(all, func(d *domain) bool { return d.rests() })
}

// count adds what a domain has in a partition, and what it has done there since before, which took so many seconds.
func (w *Work) count(now, before *dispatch.DomainCensus, took float64, nowMS int64) {
	w.Ready, w.Running, w.Backoff = w.Ready+now.Ready, w.Running+now.Running, w.Backoff+now.Backoff
	if now.OldestReadyAt > 0 {
		w.OldestMS = max(w.OldestMS, nowMS-now.OldestReadyAt)
	}
	if took <= 0 {
		return
	}
	if before == nil || now.Completed < before.Completed || now.Failed < before.Failed || now.Admitted < before.Admitted || now.Started < before.Started {
		before = &dispatch.DomainCensus{} // it was forgotten since
	}
	w.Admitted += float64(now.Admitted-before.Admitted) / took
	w.Started += float64(now.Started-before.Started) / took
	w.Completed += float64(now.Completed-before.Completed) / took
	w.Failed += float64(now.Failed-before.Failed) / took
}

// part is what part n is of a sum.
func part(n, sum float64) float64 {
	if sum == 0 {
		return 0
	}
	return n / sum
}

// show shows the series of d, whose parts are of sum.
func (d *domain) show(set set, sum *domain) {
	set(signals.DomainAdmitted, d.Admitted, d.name)
	set(signals.DomainStarted, d.Started, d.name)
	set(signals.DomainCompleted, d.Completed, d.name)
	set(signals.DomainFailed, d.Failed, d.name)
	set(signals.DomainShare, part(float64(d.weight), float64(sum.weight)), d.name)
	set(signals.DomainHad, part(d.Completed, sum.Completed), d.name)
	set(signals.DomainTasks, float64(d.Ready), d.name, signals.StateReady)
	set(signals.DomainTasks, float64(d.Running), d.name, signals.StateRunning)
	set(signals.DomainTasks, float64(d.Backoff), d.name, signals.StateBackoff)
	set(signals.DomainUnread, float64(d.Unread), d.name)
	set(signals.DomainOldestReady, (time.Duration(d.OldestMS) * time.Millisecond).Seconds(), d.name)
}
