package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/provision"
)

// Examine looks at the cluster of js, and reports what it found in each of several looks. Tables may be nil: then Redis is not looked at. It changes
// nothing; Repair does. An error is ctx's, or says why there is no cluster to look at.
func Examine(ctx context.Context, js jetstream.JetStream, tables *Tables, opts Options) (*Report, error) {
	opts = opts.withDefaults()
	n, err := provision.Partitioning(ctx, js)
	if err != nil {
		return nil, err
	}
	x := &examiner{source: source{js, opts.ahead}, tables: tables, n: n, opts: opts, parts: 1, quarantined: map[int]bool{}, notes: map[string]bool{}, missed: map[Code]int{}}
	found, err := x.look(ctx, x.sections(), nil)
	if err != nil {
		return nil, err
	}
	report := &Report{Scanned: x.scanned, Findings: []Finding{}}
	for range opts.Looks - 1 {
		if len(found) == 0 {
			break
		}
		opts.Progress(fmt.Sprintf("%d findings so far, to be checked again", len(found)))
		if !backoff.Sleep(ctx, opts.Wait) {
			return nil, ctx.Err()
		}
		again, err := x.look(ctx, sectionsOf(found), found)
		if err != nil {
			return nil, err
		}
		found = inBoth(found, again)
	}
	report.keep(found, opts.FindingsMax)
	report.Scanned.Passes = x.scanned.Passes
	if tables == nil {
		x.unchecked("Redis: slots and tables were not checked (--redis names it; tables in memory cannot be seen)")
	}
	for code, n := range x.missed {
		x.unchecked("%d findings of %s were too many to be checked again, and are left out", n, code)
	}
	report.Unchecked = slices.Sorted(maps.Keys(x.notes))
	if report.Unchecked == nil {
		report.Unchecked = []string{}
	}
	return report, nil
}

// keep takes the findings that are certain, as many of each code as are kept.
func (r *Report) keep(found []Finding, most int) {
	r.Findings = append(r.Findings, found...)
	r.sort()
	n := map[Code]int{}
	r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool {
		n[f.Code]++
		return n[f.Code] > most
	})
	for code, all := range n {
		if all > most {
			if r.More == nil {
				r.More = map[Code]int{}
			}
			r.More[code] = all - most
		}
	}
	for i := range r.Findings {
		r.Findings[i].complete()
	}
}

// examiner is one run of Examine.
type examiner struct {
	source      source
	tables      *Tables
	n           topology.Partitioning
	opts        Options
	quarantined map[int]bool
	deadLetters *deadLetters
	kept        retentions
	// parts is into how many parts the ids of the last partition had to be divided.
	parts   uint64
	notes   map[string]bool
	missed  map[Code]int
	scanned Scanned
}

// unchecked notes what cannot be said.
func (x *examiner) unchecked(format string, args ...any) {
	x.notes[fmt.Sprintf(format, args...)] = true
}

// sections are all of them.
func (x *examiner) sections() []section {
	all := []section{{kind: sectionStreams}, {kind: sectionOwners}, {kind: sectionQuarantine}}
	if x.tables != nil {
		all = append(all, section{kind: sectionTables})
	}
	for p := range x.n.History {
		all = append(all, section{sectionPartition, p})
	}
	return all
}

// sectionsOf are those that findings are in. The quarantine decides about others, so it is always among them.
func sectionsOf(found []Finding) []section {
	all := []section{{kind: sectionQuarantine}}
	for _, f := range found {
		if !slices.Contains(all, f.section) {
			all = append(all, f.section)
		}
	}
	return all
}

// inBoth are the findings of the last look that were there in those before.
func inBoth(before, last []Finding) (both []Finding) {
	seen := map[evidence]bool{}
	for i := range before {
		seen[before[i].evidence()] = true
	}
	for i := range last {
		if seen[last[i].evidence()] {
			both = append(both, last[i])
		}
	}
	return both
}

// look looks at sections; again, if not nil, are the findings that are looked at again.
func (x *examiner) look(ctx context.Context, sections []section, again []Finding) (found []Finding, err error) {
	now, err := x.source.now(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask for the server's time: %w", err)
	}
	if x.kept, err = x.source.retentions(ctx); err != nil {
		return nil, fmt.Errorf("read the domains: %w", err)
	}
	partitions := slices.ContainsFunc(sections, func(s section) bool { return s.kind == sectionPartition })
	if x.deadLetters = newDeadLetters(); partitions {
		x.opts.Progress("dead letters")
		l, bad, err := x.source.deadLetters(ctx, x.n, now)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			x.unchecked("dead letters: %v", err)
			x.deadLetters = nil
		default:
			x.deadLetters, found = l, append(found, inSection(section{sectionPartition, 0}, bad)...)
			x.scanned.DeadLetters = l.n
		}
	}
	for _, s := range sections {
		some, err := x.lookAt(ctx, s, again)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			x.unchecked("%s: %v", s, err)
			continue
		}
		found = append(found, some...)
	}
	for i := range found {
		if found[i].id != (ids.TaskID{}) {
			found[i].Task = found[i].id.String()
		}
	}
	return found, nil
}

func (s section) String() string {
	if s.kind == sectionPartition {
		return fmt.Sprintf("partition %d", s.partition)
	}
	return s.kind
}

func (x *examiner) lookAt(ctx context.Context, s section, again []Finding) ([]Finding, error) {
	x.opts.Progress(s.String())
	switch s.kind {
	case sectionStreams:
		return x.lookAtStreams(ctx)
	case sectionOwners:
		return x.lookAtOwners(ctx)
	case sectionQuarantine:
		return x.lookAtQuarantine(ctx)
	case sectionTables:
		return x.lookAtTables(ctx)
	}
	var only map[ids.TaskID]bool
	if again != nil {
		only = map[ids.TaskID]bool{}
		for _, f := range again {
			if f.section == s && f.id != (ids.TaskID{}) {
				only[f.id] = true
			}
		}
	}
	return x.lookAtPartition(ctx, s.partition, only, batchesOf(again, s))
}

// lookAtPartition reads a partition once, or in as many passes as its tasks need.
func (x *examiner) lookAtPartition(ctx context.Context, partition int, only map[ids.TaskID]bool, batches map[string]bool) ([]Finding, error) {
	todo := []part{{0, 1}}
	if only == nil {
		todo = nil
		for i := range x.parts {
			todo = append(todo, part{i, x.parts})
		}
	}
	seen := map[evidence]bool{}
	var found []Finding
	scanned := Scanned{}
	err := inParts(todo, func(of part) error {
		p := newPass(partition, of, only, x.opts.TasksMax)
		p.onlyBatches = batches
		x.scanned.Passes++
		err := x.read(ctx, p)
		if errors.Is(err, errTooMany) {
			x.parts = max(x.parts, 2*of.of)
			x.opts.Progress(fmt.Sprintf("partition %d: many tasks, read in %d parts", partition, 2*of.of))
		}
		if err != nil {
			return err
		}
		p.finish()
		scanned = p.scanned
		for code, all := range p.found {
			for _, f := range all {
				if f.id == (ids.TaskID{}) && seen[f.evidence()] {
					continue // each pass meets what is about no task
				}
				seen[f.evidence()] = true
				if f.Code == KeyVoid {
					f.mend = x.source.freeKey(partition, f)
				}
				found = append(found, f)
			}
			if n := p.missed[code]; n > 0 {
				x.missed[code] += n
			}
		}
		return nil
	})
	if err == nil && only == nil {
		x.count(scanned)
	}
	return found, err
}

// count adds what one partition has; each of its passes reads all of it.
func (x *examiner) count(l Scanned) {
	x.scanned.Partitions++
	x.scanned.Waiting += l.Waiting
	x.scanned.Logged += l.Logged
	x.scanned.Archived += l.Archived
	x.scanned.Keys += l.Keys
	x.scanned.Batches += l.Batches
	x.scanned.Schedules += l.Schedules
}

// read fills a pass. The order matters: a task moves from the timer store into the log, and from there into the archive or back, and each store is
// read after the one that it comes from. The levels are read first: what they say is stored is there when the stores are read.
func (x *examiner) read(ctx context.Context, p *pass) (err error) {
	if p.began, err = x.source.now(ctx); err != nil {
		return err
	}
	p.quarantined, p.deadLetters, p.kept = x.quarantined[p.partition], cmp.Or(x.deadLetters, newDeadLetters()), x.kept
	if p.quarantined {
		x.unchecked("partition %d: what is missing may be in quarantine, so nothing is said to be", p.partition)
	}
	if p.cp, err = x.source.checkpoint(ctx, p.partition); err != nil {
		return err
	}
	if err = x.source.snapshot(ctx, p); err != nil {
		return err
	}
	if p.cursor, err = x.source.cursor(ctx, p.partition); err != nil {
		return err
	}
	log, timer, archive := topology.HistoryStream(p.partition), topology.TimerStream(p.partition), topology.ArchiveStream(p.partition)
	var last [3]uint64
	for i, stream := range [...]string{log, timer, archive} {
		if last[i], err = natslog.LastSeq(ctx, x.source.js, stream); err != nil {
			return err
		}
	}
	p.lengths(last[0], last[1], last[2])
	for _, s := range []struct {
		stream string
		take   func(natslog.Record) error
	}{{timer, p.timer}, {log, p.log}, {archive, p.archived}} {
		if err := x.source.read(ctx, s.stream, s.take); err != nil {
			return err
		}
	}
	return nil
}
