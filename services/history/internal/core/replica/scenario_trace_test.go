package replica

import (
	"fmt"
	"slices"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// since is a time of a scenario, from its beginning.
func since(ms int64) string {
	if ms == 0 {
		return "never"
	}
	return fmt.Sprintf("%+dms", ms-scenarioStart)
}

// show prints the effects of a turn, in the order of the fields.
func (s *scenario) show(fx *Effects) {
	s.showJobs(fx)
	for _, q := range fx.Searches {
		switch {
		case q.ID.IsZero():
			s.printf("search the ends of the lanes")
		case q.Command:
			s.printf("search %s for a command of %s", name(q.ID), q.Domain)
		default:
			s.printf("search %s", name(q.ID))
		}
	}
	for _, g := range fx.Releases {
		for b := g.Packed; len(b) > 0; b = b[ids.BookingBytes:] {
			limits := ""
			if g.Limits.String() != "type/send" {
				limits = " in " + g.Limits.String()
			}
			s.printf("release %s v%d%s%s", name(ids.TaskID(b[:16])), b[ids.BookingBytes-1], limits, s.at(g.Shard, 0))
		}
	}
	for _, g := range fx.Triggers {
		for i := range len(g.Packed) / ids.TriggerBytes {
			t := ids.TriggerAt(g.Packed, i)
			s.printf("trigger %s v%d at %d%s", name(t.ID), t.Version, t.Position.Seq(), s.at(g.Shard, g.Partition))
		}
	}
	for _, a := range fx.Answers {
		var verdicts []string
		for _, v := range a.Verdicts {
			text := "ok"
			switch {
			case v.Fenced:
				text = string(v.Code) + ", fenced"
			case v.Code != "":
				text = string(v.Code)
			case v.Grant.Task != nil && v.Grant.First:
				text = "granted"
			case v.Grant.Task != nil:
				text = "granted, again"
			case v.CancelRequested:
				text = "ok, cancel requested"
			}
			verdicts = append(verdicts, text)
		}
		from := ""
		if a.First > 0 {
			from = fmt.Sprintf(" from %d", a.First)
		}
		s.printf("answer %d%s: %s", a.RequestID, from, strings.Join(verdicts, ", "))
	}
	if fx.Halt != nil {
		s.printf("halt: %v", fx.Halt)
	}
}

// at says where a hint goes, if there is a choice.
func (s *scenario) at(shard int, partition int32) string {
	switch {
	case s.cfg.Shards == 1:
		return ""
	case partition > 0:
		return fmt.Sprintf(", to shard %d, partition %d", shard, partition)
	}
	return fmt.Sprintf(", to shard %d", shard)
}

func (s *scenario) showJobs(fx *Effects) {
	for _, e := range fx.Archive {
		s.printf("archive %s %s", name(e.ID), e.State)
	}
	for _, e := range fx.Park {
		s.printf("park %s, stay %d, due %s", name(e.ID), e.Parkings, since(e.DueAt))
	}
	if fx.Archive != nil {
		s.jobs[JobArchive] = fx.Archive
	}
	if fx.Park != nil {
		s.jobs[JobPark] = fx.Park
	}
	for _, p := range fx.Append {
		more := ""
		if p.Undelivered {
			more = ", perhaps never received"
		}
		s.printf("append %s %s v%d%s", p.Kind, name(p.ID), p.Fence.Version, more)
	}
	if fx.Append != nil && len(fx.Append) == 0 {
		s.printf("append nothing")
	}
	s.own = append(s.own, fx.Append...)
	if fx.Save != nil {
		s.save = fx.Save
		named := ""
		if at := fx.Save.Snapshot.Seq; at > 0 {
			named = fmt.Sprintf(" with the snapshot of turn %d", at)
		}
		s.printf("save%s", named)
	}
	if fx.Snapshot != nil {
		s.showSnapshot(fx.Snapshot)
	}
	if fx.Forget != nil {
		s.printf("forget the snapshots before that of turn %d", fx.Forget.Seq)
	}
	if fx.Purge != nil {
		s.printf("purge events to %d,%s", fx.Purge.Events, laneLevels(&fx.Purge.Lanes))
	}
}

// fromMatching makes m a message of a matching shard, if it is to be one.
func (s *scenario) fromMatching(m *message, args []string) *message {
	if from, ok := option(args, "from"); ok {
		if _, err := fmt.Sscanf(from, "%d/%d/%d", &m.shard, &m.epoch, &m.request); err != nil {
			panic(err)
		}
	}
	if inbox, ok := option(args, "to"); ok {
		worker, _ := option(args, "by")
		m.polls = []dispatch.Poll{{Worker: taskstate.NewWorker(worker, "", 0), ReplyTo: inbox}}
	}
	if n, ok := option(args, "delivered"); ok {
		m.delivered = number(n)
	}
	return m
}

// ask shows what a matching shard learns.
func (s *scenario) ask(verb string, args []string) {
	shard := int(number(args[0]))
	if verb == "bookings" {
		for _, g := range s.r.Bookings(dispatch.BookingsQuery{Shard: shard, BytesMax: 1 << 20}).Groups {
			for b := g.Packed; len(b) > 0; b = b[ids.BookingBytes:] {
				s.printf("%s v%d holds %s until %s", name(ids.TaskID(b[:16])), b[ids.BookingBytes-1], g.Limits, since(g.DeadlineAt))
			}
		}
		return
	}
	s.r.Undelivered(shard, number(args[1]), ids.TaskID{}, func(u *Undelivered) bool {
		s.printf("%s v%d, attempt %d until %s, for %s in %s", name(u.Grant.Task.ID), u.Grant.Token.Version,
			u.Grant.Task.Failures+1, since(u.Grant.DeadlineAt), u.Poll.Worker.Name(), u.Poll.ReplyTo)
		return true
	})
}

// showSnapshot prints what a snapshot has, tasks by their number.
func (s *scenario) showSnapshot(snap *Snapshot) {
	var tasks []string
	for i := range snap.Tasks {
		t := &snap.Tasks[i]
		granted := ""
		if t.Granted != nil {
			granted = fmt.Sprintf(", granted by batch %d/%d/%d", t.Granted.Shard, t.Granted.Epoch, t.Granted.Request)
		}
		tasks = append(tasks, fmt.Sprintf("%s %s%s", name(t.ID), t.State, granted))
	}
	slices.Sort(tasks)
	fences := ""
	for _, f := range snap.Fences {
		fences += fmt.Sprintf(", shard %d at epoch %d", f.Shard, f.Epoch)
	}
	s.printf("snapshot of turn %d,%s%s: %s", snap.Seq, laneLevels(&snap.Read), fences, strings.Join(tasks, "; "))
}

func laneLevels(read *[ids.Lanes]uint64) string {
	var b strings.Builder
	for i := range read {
		if read[i] > 0 {
			fmt.Fprintf(&b, " %s=%d", ids.Lane(i), read[i])
		}
	}
	return b.String()
}

// prove stores the turn that conclusions from outside of one ask for, before what else waits for one.
func (s *scenario) prove() {
	fx := new(Effects)
	s.add(&message{events: true})
	s.turn(s.log[len(s.log)-1], fx)
	s.r.Step(Stored{Kind: JobAppend}, s.now, fx)
	s.r.Flush(s.now, fx)
	s.show(fx)
}
