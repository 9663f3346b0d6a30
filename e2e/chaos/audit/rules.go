package audit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/infra/yard/doctor"
)

func lost(e *evidence) []string {
	switch {
	case e.Fate == Accepted && len(e.archived) == 0:
		return []string{"it was accepted and has no end in the archive"}
	case len(e.letters) == 0 && slices.ContainsFunc(e.archived, dead):
		return []string{"it is dead and has no dead letter"}
	}
	return nil
}

func dead(c Copy) bool { return c.state() == yardv1.TaskState_TASK_STATE_DEAD }

func strange(e *evidence) []string {
	seen := []string{}
	add := func(id string) {
		if id != "" && !slices.Contains(seen, id) {
			seen = append(seen, id)
		}
	}
	add(e.ID)
	for _, c := range e.copies() {
		add(c.id())
	}
	for _, g := range e.Grants {
		add(g.TaskID)
	}
	switch {
	case e.Fate == Refused && len(seen) > 0:
		return []string{"its submitter was informed that it was not accepted"}
	case len(seen) > 1:
		return []string{fmt.Sprintf("it has %d ids: %v", len(seen), seen)}
	}
	return nil
}

func completedTwice(e *evidence) []string {
	var by []string
	for _, g := range e.Grants {
		if _, ok := g.completed(); ok {
			by = append(by, g.Worker)
		}
	}
	if len(by) > 1 {
		return []string{fmt.Sprintf("completions of %v got OK", by)}
	}
	return nil
}

// heldTwice: the later of two grants came while the earlier one was certainly
// current, and the archive tells of no end of the earlier one.
func heldTwice(e *evidence) []string {
	var found []string
	grants := slices.SortedFunc(slices.Values(e.Grants), func(a, b *Grant) int { return a.At.Compare(b.At) })
	for i, a := range grants {
		for _, b := range grants[i+1:] {
			if b.At.Before(a.heldUntil()) && b.live() && !e.takenBack(a) && !e.takenBack(b) {
				found = append(found, fmt.Sprintf("%s got it while %s held it", b.Worker, a.Worker))
			}
		}
	}
	return found
}

// live: the attempt was not over already when it reached its worker.
func (g *Grant) live() bool { return g.At.Before(g.LeaseEnd) }

// takenBack: the archive says that the attempt expired, or was handed back since
// its answer reached no worker in time.
func (e *evidence) takenBack(g *Grant) bool {
	ends := []yardv1.TaskEventKind{
		yardv1.TaskEventKind_TASK_EVENT_KIND_HANDED_BACK, yardv1.TaskEventKind_TASK_EVENT_KIND_LOST, yardv1.TaskEventKind_TASK_EVENT_KIND_TIMED_OUT,
	}
	return slices.ContainsFunc(e.copies(), func(c Copy) bool {
		return slices.ContainsFunc(c.Record.Steps, func(s *logv1.Step) bool {
			return s.Worker == g.Worker && slices.Contains(ends, yardv1.TaskEventKind(s.Kind))
		})
	})
}

func cancelBroken(e *evidence) []string {
	i := slices.IndexFunc(e.Cancels, func(c Cancel) bool { return c.Code == codeOK && !c.Running })
	if i < 0 {
		return nil
	}
	at := e.Cancels[i].AnsweredAt
	var found []string
	for _, c := range e.copies() {
		if c.state() != yardv1.TaskState_TASK_STATE_CANCELLED {
			found = append(found, fmt.Sprintf("it was cancelled with OK and is %s in %s", c.state().Name(), c.Where))
		}
	}
	for _, g := range e.Grants {
		if g.At.After(at) && g.live() && !e.takenBack(g) {
			found = append(found, fmt.Sprintf("it was cancelled with OK and %s got it %v later", g.Worker, g.At.Sub(at).Round(time.Millisecond)))
		}
	}
	return found
}

func notCompleted(e *evidence) []string {
	stopping := slices.ContainsFunc(e.Cancels, func(c Cancel) bool { return c.Code == codeOK && c.Running })
	var found []string
	for _, g := range e.Grants {
		sent, ok := g.completed()
		if !ok {
			continue
		}
		for _, c := range e.copies() {
			var result string
			_ = json.Unmarshal(c.Record.Result, &result) // what is no string is no result of ours
			switch {
			case c.state() == yardv1.TaskState_TASK_STATE_CANCELLED && stopping:
				// A running task was cancelled: its worker's word no longer decides.
			case c.state() != yardv1.TaskState_TASK_STATE_COMPLETED:
				found = append(found, fmt.Sprintf("the completion of %s got OK, and it is %s in %s", g.Worker, c.state().Name(), c.Where))
			case result != sent:
				found = append(found, fmt.Sprintf("the completion of %s got OK, and the result in %s is %q", g.Worker, c.Where, result))
			}
		}
	}
	return found
}

func copiesDiffer(e *evidence) []string {
	copies := e.copies()
	var found []string
	for i := 1; i < len(copies); i++ {
		if what := doctor.Difference(copies[0].Record, copies[i].Record); what != "" {
			found = append(found, fmt.Sprintf("%s and %s differ: %s", copies[0].Where, copies[i].Where, what))
		}
	}
	return found
}

func deadUnheld(e *evidence) []string {
	if len(e.Grants) == 0 && slices.ContainsFunc(e.copies(), dead) {
		return []string{fmt.Sprintf("it is dead, with %d attempts allowed, and no worker ever held it", e.MaxAttempts)}
	}
	return nil
}

// burnedUnheld finds attempts that cost the task something though their poll got nothing.
func burnedUnheld(e *evidence) []string {
	return e.burned(func(s *logv1.Step) string {
		if e.grantOf(s) != nil {
			return ""
		}
		return "that poll never got it"
	})
}

// inTime is how long before the end of its lease an outcome must have been sent: later ones may be late by the
// ways of a busy machine.
const inTime = time.Second

// burnedInTime finds attempts that cost the task something though their worker was done in time: the outcome was
// sent, and had no verdict.
func burnedInTime(e *evidence) []string {
	return e.burned(func(s *logv1.Step) string {
		g := e.grantOf(s)
		if g == nil || len(g.Outcomes) == 0 || g.Outcomes[0].SentAt.Add(inTime).After(g.LeaseEnd) {
			return ""
		}
		return fmt.Sprintf("its outcome was sent %v before the end", g.LeaseEnd.Sub(g.Outcomes[0].SentAt).Round(time.Millisecond))
	})
}

// burned are the attempts that count as timed out or lost and that why says something of.
func (e *evidence) burned(why func(*logv1.Step) string) (found []string) {
	seen := map[uint32]bool{}
	for _, c := range e.copies() {
		for _, s := range c.Record.Steps {
			kind := yardv1.TaskEventKind(s.Kind)
			if kind != yardv1.TaskEventKind_TASK_EVENT_KIND_TIMED_OUT && kind != yardv1.TaskEventKind_TASK_EVENT_KIND_LOST || seen[s.Grant] {
				continue
			}
			if text := why(s); text != "" {
				seen[s.Grant] = true
				found = append(found, fmt.Sprintf("attempt %d of %s is over as %v, and %s", s.Grant, s.Worker, kind, text))
			}
		}
	}
	return found
}

// grantOf is the grant whose worker a step names; nil = no worker received it.
func (e *evidence) grantOf(s *logv1.Step) *Grant {
	if i := slices.IndexFunc(e.Grants, func(g *Grant) bool { return g.Worker == s.Worker }); i >= 0 {
		return e.Grants[i]
	}
	return nil
}

func unfounded(e *evidence) []string {
	completed := slices.ContainsFunc(e.Grants, func(g *Grant) bool {
		return slices.ContainsFunc(g.Outcomes, func(o Outcome) bool { return o.Kind == Complete })
	})
	for _, c := range e.copies() {
		switch {
		case c.state() == yardv1.TaskState_TASK_STATE_COMPLETED && !completed:
			return []string{"it is completed, and no worker said so"}
		case c.state() == yardv1.TaskState_TASK_STATE_CANCELLED && len(e.Cancels) == 0:
			return []string{"it is cancelled, and no client asked for it"}
		}
	}
	return nil
}

// overLimits finds the fullest instant of each limit, by the attempts that
// their workers certainly held.
func overLimits(limits []Limit, all []*evidence) []Violation {
	type held struct {
		*Grant
		of *evidence
	}
	var found []Violation
	for _, limit := range limits {
		var spans, now, most []held
		for _, e := range all {
			for _, g := range e.Grants {
				if limit.covers(e.Type) && g.At.Before(g.heldUntil()) && !e.takenBack(g) {
					spans = append(spans, held{g, e})
				}
			}
		}
		slices.SortFunc(spans, func(a, b held) int { return a.At.Compare(b.At) })
		for _, h := range spans {
			now = append(slices.DeleteFunc(now, func(o held) bool { return !o.heldUntil().After(h.At) }), h)
			if len(now) > len(most) {
				most = slices.Clone(now)
			}
		}
		if len(most) <= limit.Max {
			continue
		}
		var story strings.Builder
		for _, h := range most {
			story.WriteString(tell(h.of))
		}
		what := fmt.Sprintf("%d attempts of %s were held at once, limit %d", len(most), limit.Name, limit.Max)
		found = append(found, Violation{OverLimit, what, story.String()})
	}
	return found
}
