package partition

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/backlog"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
)

// Capped is what an owner needs to tell frontends of tasklists whose queue has a cap, and of domains with a quota of what waits. The zero value tells of none.
type Capped struct {
	// Caps returns them, nil = there are none.
	Caps func() *backlog.Caps
	// Bounded returns the domains with a quota, nil = there are none.
	Bounded func() *catalog.Bounded
	// Scan hands out the messages of a lane from a sequence to its end, in order: those that domains share and those of
	// these domains. It returns the end, or the error of handle.
	Scan func(ctx context.Context, lane ids.Lane, domains []string, from uint64, handle func(Record) error) (upTo uint64, err error)
}

const (
	// scanMsgs is how many messages are counted at a time.
	scanMsgs = 20_000
	// scanTimeout bounds how long that takes.
	scanTimeout = 30 * time.Second
)

// errCut ends a scan that has counted scanMsgs.
var errCut = errors.New("there is more")

// countCapped counts what is unread of tasklists with a cap.
func (o *Owner) countCapped() {
	if o.Capped.Caps == nil {
		return
	}
	caps := o.Capped.Caps()
	if caps == nil {
		o.unread.Turn(nil, backlog.Progress{}, o.now().Mono)
		return
	}
	levels := o.core.UnreadLevels("")
	at := backlog.Progress{Read: levels.Lanes}
	for lane := range at.Paused {
		at.Paused[lane] = !o.core.Room(ids.Lane(lane))
	}
	for _, q := range levels.Queues {
		at.Lagging = append(at.Lagging, backlog.Lagging{Lane: q.Lane, At: q.Place, Read: q.Seq})
	}
	if s := o.unread.Turn(caps, at, o.now().Mono); s != nil {
		go o.scan(caps, s)
	}
}

// scan carries out a scan.
func (o *Owner) scan(caps *backlog.Caps, s *backlog.Scan) {
	ctx, cancel := context.WithTimeout(o.work, scanTimeout)
	defer cancel()
	var found []backlog.Found
	dec, msgs, last := record.NewDecoder(), 0, uint64(0)
	upTo, err := o.Capped.Scan(ctx, s.Lane, s.Domains, s.From, func(m Record) error {
		if msgs++; msgs > scanMsgs {
			return errCut
		}
		last = m.Seq
		filed := ids.Place(strings.Clone(string(topology.PlaceOfSubmit(o.Partition, m.Subject)))) // or all of m is kept
		// An unreadable message is no task; the lane's reader sees to it.
		_ = dec.Due(m.Data, m.Time, func(domain, tasklist, group string, tasks, bytes int) {
			of := backlog.Tasklist{Domain: domain, Name: tasklist}
			if !caps.Has(of) {
				return
			}
			if caps.PerGroup[of] == 0 {
				group = ""
			}
			of = backlog.Tasklist{Domain: strings.Clone(domain), Name: strings.Clone(tasklist)} // or all of m is kept
			found = append(found, backlog.Found{Seq: m.Seq, Of: backlog.Queue{Tasklist: of, Group: strings.Clone(group)}, Filed: filed, Amount: backlog.Amount{Tasks: int64(tasks), Bytes: int64(bytes)}})
		})
		return nil
	})
	o.post(o.work, func() {
		switch {
		case errors.Is(err, errCut):
			o.unread.Scanned(s, found, last, true)
		case err != nil:
			o.unread.Failed()
		default:
			o.unread.Scanned(s, found, upTo, false)
		}
	})
}

// earlyEvery is how often an owner looks whether a report of what is queued is due early.
const earlyEvery = beatEvery / 10

// early is ready every earlyEvery while a tasklist has a cap.
func (o *Owner) early() <-chan time.Time {
	switch capped := o.Capped.Caps != nil && o.Capped.Caps().Tasklists(); {
	case capped && o.hurry == nil:
		o.hurry = time.NewTicker(earlyEvery)
	case capped:
	case o.hurry != nil:
		o.hurry.Stop()
		o.hurry = nil
		return nil
	default:
		return nil
	}
	return o.hurry.C
}

// tellEarly reports before the next beat where it is due.
func (o *Owner) tellEarly() {
	if o.unread.Early(o.core) {
		o.Wire.Publish(o.loadReport())
	}
}

// tellQueued puts into a load report what tasklists with a cap have queued.
func (o *Owner) tellQueued(load *rpcv1.HistoryLoad) {
	if o.Capped.Caps == nil || !o.Capped.Caps().Tasklists() {
		return
	}
	lists, groups := o.unread.Report(o.core)
	for _, q := range lists {
		load.Queued = append(load.Queued, &rpcv1.QueuedTasks{Domain: q.Domain, Tasklist: q.Name, Tasks: q.Tasks})
	}
	for _, q := range groups {
		load.QueuedGroups = append(load.QueuedGroups, &rpcv1.QueuedTasks{Domain: q.Domain, Tasklist: q.Name, Group: q.Group, Tasks: q.Tasks})
	}
	for lane, read := range o.core.ReadLevels() {
		load.Counted = append(load.Counted, o.unread.To(ids.Lane(lane), read))
	}
}

const (
	// storedPerDomain is how much later the next report comes for each domain in it, about ten times as long as it takes to count one. Frontends take
	// a report for two seconds; storedLatest is before that.
	storedPerDomain = 10 * time.Microsecond
	storedLatest    = 1500 * time.Millisecond
)

// reportStored tells frontends what domains with a quota have waiting.
func (o *Owner) reportStored() {
	if o.Capped.Bounded == nil || o.now().Mono < o.storedNext {
		return
	}
	bounded := o.Capped.Bounded()
	if bounded == nil {
		return
	}
	report := &rpcv1.StoredTasks{Partition: int32(o.Partition)}
	all := o.unread.Domains(o.core)
	o.storedNext = o.now().Mono + min(storedPerDomain*time.Duration(len(all)), storedLatest)
	for domain, some := range all {
		if some.Tasks > 0 {
			report.Domains = append(report.Domains, &rpcv1.DomainStored{Domain: domain, Tasks: some.Tasks, Bytes: some.Bytes})
		}
	}
	report.Domains = bounded.Nearest(report.Domains)
	o.Wire.Publish(topology.HintStored, encode(report))
}
