package replica

import (
	"fmt"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
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
		case q.Cancel:
			s.printf("search %s, to cancel for %s as of %d", name(q.ID), q.Domain, q.Seq)
		default:
			s.printf("search %s", name(q.ID))
		}
	}
	for _, g := range fx.Releases {
		for b := g.Packed; len(b) > 0; b = b[ids.BookingBytes:] {
			s.printf("release %s v%d", name(ids.TaskID(b[:16])), b[ids.BookingBytes-1])
		}
	}
	for _, g := range fx.Triggers {
		for i := range len(g.Packed) / ids.TriggerBytes {
			t := ids.TriggerAt(g.Packed, i)
			s.printf("trigger %s v%d at %d", name(t.ID), t.Version, t.Position.Seq())
		}
	}
	for _, a := range fx.Answers {
		var verdicts []string
		for _, v := range a.Verdicts {
			text := "ok"
			switch {
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
		s.printf("append %s %s v%d", p.Kind, name(p.ID), p.Fence.Version)
	}
	s.own = append(s.own, fx.Append...)
	if fx.Save != nil {
		s.save = fx.Save
		s.printf("save floor=%d%s", fx.Save.Floor, laneLevels(fx.Save.Ack, fx.Save.Read))
	}
	if fx.Purge != nil {
		s.printf("purge events to %d,%s", fx.Purge.Events, laneLevels(fx.Purge.Lanes, fx.Purge.Lanes))
	}
}

func laneLevels(ack, read [ids.Lanes]uint64) string {
	var b strings.Builder
	for i := range ack {
		if read[i] > 0 {
			fmt.Fprintf(&b, " %s=%d/%d", ids.Lane(i), ack[i], read[i])
		}
	}
	return b.String()
}
