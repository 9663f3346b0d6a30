package replica

import (
	"cmp"
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/admission"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/batch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/deadline"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/line"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/locate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Config bounds a replica.
type Config struct {
	// Shards is M, the number of matching shards.
	Shards int
	// WindowTasks and WindowBytes bound what is held of one lane.
	WindowTasks int
	WindowBytes int64
	// KeyTasks is how many tasks the line of an order key has when it is full; 0 = no line is.
	KeyTasks int
	// CheckpointEveryMS must be well below the lease; PurgeEveryMS may be anything.
	CheckpointEveryMS, PurgeEveryMS int64
	// LeaseFor is how long a saved checkpoint lets the owner go on; 0 = LeaseFor.
	LeaseFor time.Duration
	// SnapshotBytes is how much of the log may follow the last snapshot before the next one is made, SnapshotEveryMS how much time,
	// if anything has followed.
	SnapshotBytes, SnapshotEveryMS int64
	// JobTasks bounds a job; 0 = jobTasksMax.
	JobTasks int
	// FullWeight bounds how many tasks of a domain come in with its full weight; nil = of none does it.
	FullWeight func(domain string) FullWeight
	// Partitions tells how many partitions a tasklist has, 1 to ids.PartitionsMax; nil = each has one. It decides only where triggers go,
	// so owners may hear of a change at different times.
	Partitions func(domain, tasklist string) int
	// SlowAfter returns after how long tasks of a domain are late, and attempts of its types stuck, as in dispatch.Config; nil = none ever is. It decides
	// about events only.
	SlowAfter func(domain string) (lateMS int64, stuckMS func(typ string) int64)
	// Paused returns which tasks of a domain are paused now; nil = none is. It decides nothing; metrics leave such tasks out.
	Paused func(domain string) func(tasklist, typ, group string) bool
}

const (
	// jobTasksMax bounds a job by default.
	jobTasksMax = 5000
	// archiveLingerMS is how long an ended task may wait for company on its way into the
	// archive, archiveTasksMin how many are company enough. A write there has a fixed cost
	// of some milliseconds and a sync, and no one waits for it but a lane without room.
	archiveLingerMS = 1000
	archiveTasksMin = 2000
	// proposalsMax bounds what is proposed at a time: it goes into one batch of events, and takes less than 200 bytes each.
	proposalsMax = 2000
)

// New makes the replica of an owner that has just claimed the partition.
func New(cfg Config, start *Start) *Replica {
	cfg.JobTasks = cmp.Or(cfg.JobTasks, jobTasksMax)
	r := &Replica{
		lines: line.New(cfg.KeyTasks),
		Gate:  admission.New(admission.Config{WindowTasks: cfg.WindowTasks, WindowBytes: cfg.WindowBytes, FullWeight: cfg.FullWeight}), cfg: cfg, tasks: make(map[ids.TaskID]*Entry), Lists: dispatch.New(dispatch.Config{Shards: cfg.Shards, Partitions: cfg.Partitions, SlowAfter: cfg.SlowAfter, Paused: cfg.Paused}),
		wake:    deadline.Heap[*Entry]{Entry: func(e *Entry) *deadline.Entry { return &e.wakeup }},
		locator: locate.New(),
		replay:  &replay{base: start.Checkpoint, parked: start.Parked, archived: start.Archived}, Members: make(batch.Counts), outbox: outbox{letters: make(map[ids.TaskID]Letter)},
		gone: gone{max: goneMax, bytesMax: goneBytesMax},
	}
	r.lease.lasts = cfg.LeaseFor
	r.lease.granted(start.ClaimedAt)
	r.load(start)
	return r
}

// Step takes an input at now and adds to fx what follows from it. It returns false,
// having done nothing, for records of the log while the lease does not hold: they have to be
// offered again once a checkpoint is saved.
func (r *Replica) Step(in Input, now Now, fx *Effects) bool {
	s := step{r, now, fx}
	_, turn := in.(*Turn)
	r.answers.Step(turn || r.replay != nil)
	switch in := in.(type) {
	case *Submits:
		if !r.lease.holds(now.Mono) {
			return false
		}
		s.submits(in)
	case *Turn:
		if !r.lease.holds(now.Mono) {
			return false
		}
		if in.Seq <= r.eventAt {
			return true
		}
		r.eventAt = in.Seq // a turn is taken as a whole: a checkpoint has all of it or nothing
		s.heard(in.At)
		first, terms := 0, byType(in.Terms)
		for _, b := range in.Batches {
			b.Seq, b.At, b.First, b.terms = in.Seq, in.At, first, terms
			first += len(b.Events)
			s.events(b)
		}
		if r.snapshots.bytes++; r.replay == nil {
			s.admitted()
			r.answers.Stored(&fx.Answers)
		}
		if r.snapshots.due {
			fx.Snapshot = s.snapshot()
		}
	case *Events:
		return r.Step(&Turn{Seq: in.Seq, At: in.At, Batches: []*Events{in}}, now, fx)
	case Recovered:
		s.recovered()
	case Tick:
		s.tick()
	case Looked:
		if in.In == "" && r.locator.OthersWait(in.Lane, in.Place.Domain(), r) {
			in.All = in.Own + 1
		}
		r.Counted(admission.Counts(in), now.MS)
	case Stored:
		s.jobDone(in)
	case Saved:
		s.saved(in)
	case Purged:
		r.purger.purged(in.Again)
	case *Found:
		r.locator.Found(in, r, s)
	case Bounced:
		s.bounced(in)
	case Silent:
		s.silent(in.Workers)
	case Draining:
		r.draining = true
	case TurnRefused:
		r.EndTurn(in.Admitted)
		r.answers.Refused()
		r.unlogged.notBefore = now.MS + refusedWaitMS
	default:
		panic(fmt.Sprintf("replica: an input of type %T", in))
	}
	return true
}

// Flush ends a turn of steps, which share one fx: jobs begin whose kind is free.
func (r *Replica) Flush(now Now, fx *Effects) {
	s := step{r, now, fx}
	r.NextTurn()
	if r.draining || r.company() || now.MS-r.archive.oldest >= archiveLingerMS {
		if job := r.archive.nextWanted(r.cfg.JobTasks, func(e *Entry) bool { return !e.left }); job != nil { // what left was archived by another owner
			fx.Archive = job
		}
	}
	// A task that has come back meanwhile was stored by another owner.
	if job := r.park.nextWanted(r.cfg.JobTasks, func(e *Entry) bool { s.spend(e); return !e.left && e.State == taskstate.Waiting }); job != nil {
		fx.Park, r.parkLetters = job, fx.ParkLetters
		for _, e := range job {
			e.storing = true
		}
	}
	if !r.appending && (len(r.own) > 0 || r.still.asks || s.wantTurn()) {
		n := min(len(r.own), proposalsMax)
		fx.Append = append([]Proposal{}, r.own[:n]...)
		if r.own = r.own[n:]; len(r.own) == 0 {
			r.own = nil
		}
		r.appending, r.still.asks = true, false
	}
	fx.Searches = r.locator.HandOut(fx.Searches)
	r.answers.Flush(&fx.Answers)
}

// company tells whether so many tasks have ended that the archive is written at once: they keep their room until it is.
func (r *Replica) company() bool {
	ended := r.archive.queue.Len()
	return ended >= archiveTasksMin || r.Full(ended)
}

// jobDone lets go of what is stored.
func (s step) jobDone(in Stored) {
	switch in.Kind {
	case JobArchive:
		s.foreign(&in)
		job := s.archive.done(in.Seq)
		for _, e := range job {
			s.leave(e)
		}
		s.fx.Counts.Archived += int64(len(job))
	case JobPark:
		for _, e := range s.park.done(in.Seq) {
			if e.storing { // else it has ended on its way
				e.storing = false
				s.leave(e)
				s.fx.Counts.Parked++
			}
		}
		s.spent()
	case JobAppend:
		s.appending = false
		s.refusedByLog(in.Refused)
	case JobSnapshot:
		s.snapshots.stored(in.Snapshot)
	}
}

// tick does what is due.
func (s step) tick() {
	s.wakeDue()
	s.sweepGone()
	if s.replay == nil {
		s.locator.Expire(s.Replica, s)
		s.listen()
		s.Refill(s.now.MS)
		s.MergeBack()
	}
	if s.saving == nil && s.now.MS-s.savedAt >= s.cfg.CheckpointEveryMS {
		cp := s.Checkpoint()
		s.saving, s.fx.Save, s.savedAt = &cp, &cp, s.now.MS
	}
	if s.replay != nil {
		return
	}
	if !s.purger.busy && s.now.MS >= s.purger.next {
		s.purger.next = s.now.MS + s.cfg.PurgeEveryMS
		s.fx.Purge = s.purger.take(s.now.Mono)
	}
	s.snapshots.due = s.snapshots.due || s.wantsSnapshot()
	s.FindOldest(s.now.Mono)
	s.CountDomains(s.now.Mono)
	if s.lease.holds(s.now.Mono) { // else it would gather
		s.Heal(s.now.MS, &s.fx.Effects)
		s.fx.Slow = dispatch.FindSlow(s.Lists, s.now.Mono, s.now.MS, s.fx.Slow)
		s.fx.Looks = append(s.fx.Looks, s.Congested(s.now.MS)...)
	}
}

// saved takes in the outcome of a checkpoint.
func (s step) saved(in Saved) {
	cp := s.saving
	s.saving = nil
	if !in.OK {
		return
	}
	s.lease.granted(in.SentAt)
	if levels, first := s.snapshots.saved(cp.Snapshot.Seq); first {
		s.snapshots.savedAt = s.now.MS
		s.purger.saved(levels, s.now.Mono)
		s.exempt()
		s.fx.Forget = &cp.Snapshot
	}
}

// NextWake is when a lease or a wait is over by our clock, Unix ms; ok is false if
// there is none.
func (r *Replica) NextWake() (at int64, ok bool) {
	if r.replay != nil {
		return 0, false
	}
	return r.wake.Next()
}

// LeaseHolds tells whether records of the log may be stepped through at now.
func (r *Replica) LeaseHolds(now time.Duration) bool { return r.lease.holds(now) }

// Idle tells whether nothing waits to be stored or is being saved.
func (r *Replica) Idle() bool {
	return r.archive.idle() && r.park.idle() && !r.appending && len(r.own) == 0 && r.saving == nil && !r.answers.Waiting()
}
