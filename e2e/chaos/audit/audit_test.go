package audit_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/e2e/chaos/audit"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var (
	start = time.UnixMilli(1_800_000_000_000)
	id    = ids.NewTaskID(start, 1, 7)
)

// at is an instant some milliseconds after the start.
func at(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

// lease is that of every attempt in here.
const lease = 1000

func text(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return b
}

func step(ms int, kind yardv1.TaskEventKind, grant uint32, worker string) *logv1.Step {
	return &logv1.Step{AtMs: at(ms).UnixMilli(), Kind: int32(kind), Grant: grant, Worker: worker}
}

// story is one task with what is archived of it.
type story struct {
	task   audit.Task
	copies []audit.Copy
	limits []audit.Limit
}

// completed is a story without a violation: worker a completes the task.
func completed() *story {
	return &story{
		task: audit.Task{
			Key: "k", Type: "plain", Asked: "immediate", MaxAttempts: 3, Fate: audit.Accepted, ID: id.String(), SentAt: at(0), AnsweredAt: at(5),
			Grants: []*audit.Grant{grant("a", 10, outcome(audit.Complete, 20, "OK"))},
		},
		copies: []audit.Copy{archived(yardv1.TaskState_TASK_STATE_COMPLETED)},
	}
}

// cancelled is another: it is cancelled before any worker gets it.
func cancelled() *story {
	s := completed()
	s.task.Grants = nil
	s.task.Cancels = []audit.Cancel{{SentAt: at(6), AnsweredAt: at(8), Code: "OK"}}
	s.copies = []audit.Copy{archived(yardv1.TaskState_TASK_STATE_CANCELLED)}
	return s
}

// dead is a third: its only attempt fails.
func dead() *story {
	s := completed()
	s.task.MaxAttempts = 1
	s.task.Grants = []*audit.Grant{grant("a", 10, outcome(audit.Fail, 20, "OK"))}
	letter := archived(yardv1.TaskState_TASK_STATE_DEAD)
	letter.Where, letter.Letter = "letters #1", true
	s.copies = []audit.Copy{letter, archived(yardv1.TaskState_TASK_STATE_DEAD)}
	return s
}

func grant(worker string, ms int, outcomes ...audit.Outcome) *audit.Grant {
	for i := range outcomes {
		outcomes[i].Result = "by " + worker
	}
	return &audit.Grant{Worker: worker, TaskID: id.String(), At: at(ms), LeaseEnd: at(ms + lease), Outcomes: outcomes}
}

func outcome(k audit.OutcomeKind, ms int, code string) audit.Outcome {
	return audit.Outcome{Kind: k, SentAt: at(ms), AnsweredAt: at(ms + 5), Code: code}
}

// archived is a copy that worker a had.
func archived(state yardv1.TaskState) audit.Copy {
	r := &logv1.Record{Id: id[:], Payload: text("k"), State: int32(state), Version: 1, FinishedAtMs: at(22).UnixMilli()}
	r.Steps = []*logv1.Step{step(9, yardv1.TaskEventKind_TASK_EVENT_KIND_STARTED, 1, "a")}
	if state == yardv1.TaskState_TASK_STATE_COMPLETED {
		r.Result = text("by a")
	}
	return audit.Copy{Where: "archive #1", Record: r}
}

// second adds worker b, who gets the task while a holds it until 20.
func (s *story) second(outcomes ...audit.Outcome) {
	s.task.Grants = append(s.task.Grants, grant("b", 15, outcomes...))
}

// burned adds worker b, whose attempt ends so though it sent its outcome at a time, of a lease until another.
func (s *story) burned(kind yardv1.TaskEventKind, sent, until int) {
	s.task.Grants[0].At = at(1600)
	s.task.Grants[0].LeaseEnd = at(2600)
	s.task.Grants[0].Outcomes[0].SentAt = at(1610)
	s.task.Grants = append(s.task.Grants, grant("b", 15, outcome(audit.Complete, sent, "STALE")))
	s.task.Grants[1].LeaseEnd = at(until)
	r := s.copies[0].Record
	r.Steps = append(r.Steps, step(until, kind, 2, "b"))
}

// takenBack archives that a's attempt ended without a's word.
func (s *story) takenBack(kind yardv1.TaskEventKind) {
	r := s.copies[0].Record
	r.Steps = append(r.Steps, step(12, kind, 1, "a"))
}

// trial is a story with a change, and the violations that Check must find.
type trial struct {
	name   string
	base   func() *story
	change func(*story)
	want   []audit.Kind
}

func TestCheck(t *testing.T) {
	for _, c := range slices.Concat(endings(), attempts(), cancels(), verdicts()) {
		t.Run(c.name, func(t *testing.T) {
			s := c.base()
			c.change(s)
			// Another task of the type, which a worker holds without end.
			beside := audit.Task{Key: "beside", Type: "plain", Fate: audit.Unsure, Grants: []*audit.Grant{grant("c", 5)}}
			report := audit.Check(audit.Ledger{Tasks: []*audit.Task{&s.task, &beside}, Limits: s.limits}, s.copies)
			var got []audit.Kind
			for _, v := range report.Violations {
				got = append(got, v.Kind)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("violations %q, want %q:\n%v", got, c.want, report.Violations)
			}
		})
	}
}

// endings are about tasks that end, or do not.
func endings() []trial {
	return []trial{
		{"a completed task", completed, func(*story) {}, nil},
		{"a cancelled task", cancelled, func(*story) {}, nil},
		{"a dead task", dead, func(*story) {}, nil},
		{"a refused task", completed, func(s *story) { s.task.Fate, s.task.ID, s.task.Grants, s.copies = audit.Refused, "", nil, nil }, nil},
		{"an unsure task that is nowhere", completed, func(s *story) { s.task.Fate, s.task.ID, s.task.Grants, s.copies = audit.Unsure, "", nil, nil }, nil},
		{"an unsure task that ran", completed, func(s *story) { s.task.Fate, s.task.ID = audit.Unsure, "" }, nil},
		{"archived twice alike", completed, func(s *story) { s.copies = append(s.copies, archived(yardv1.TaskState_TASK_STATE_COMPLETED)) }, nil},
		{"a verdict that did not come", completed, func(s *story) { s.task.Grants[0].Outcomes[0].Code = "UNKNOWN" }, nil},
		{"no end", completed, func(s *story) { s.copies = nil }, []audit.Kind{audit.Lost}},
		{"no dead letter", dead, func(s *story) { s.copies = s.copies[1:] }, []audit.Kind{audit.Lost}},
		{"a dead letter only", dead, func(s *story) { s.copies = s.copies[:1] }, []audit.Kind{audit.Lost}},
		{"archived from nowhere", completed, func(s *story) {
			c := archived(yardv1.TaskState_TASK_STATE_COMPLETED)
			c.Record.Payload = text("other")
			s.copies = append(s.copies, c)
		}, []audit.Kind{audit.Strange}},
		{"refused and archived", completed, func(s *story) { s.task.Fate = audit.Refused }, []audit.Kind{audit.Strange}},
		{"doubled", completed, func(s *story) { s.task.Grants[0].TaskID = ids.NewTaskID(start, 1, 8).String() }, []audit.Kind{audit.Strange}},
		{"dead without a worker", dead, func(s *story) { s.task.Grants = nil }, []audit.Kind{audit.DeadUnheld}},
		{"an attempt of no one that timed out", completed, func(s *story) {
			s.copies[0].Record.Steps = append(s.copies[0].Record.Steps, step(8, yardv1.TaskEventKind_TASK_EVENT_KIND_TIMED_OUT, 3, "z"), step(8, yardv1.TaskEventKind_TASK_EVENT_KIND_LOST, 4, "y"))
		}, []audit.Kind{audit.BurnedUnheld, audit.BurnedUnheld}},
		{"an attempt that timed out, and its outcome came a second before", completed, func(s *story) {
			s.burned(yardv1.TaskEventKind_TASK_EVENT_KIND_TIMED_OUT, 500, 1500)
		}, []audit.Kind{audit.BurnedInTime}},
		{"an attempt that was lost likewise", completed, func(s *story) {
			s.burned(yardv1.TaskEventKind_TASK_EVENT_KIND_LOST, 500, 1500)
		}, []audit.Kind{audit.BurnedInTime}},
		{"an attempt that timed out, and its outcome came a little later", completed, func(s *story) {
			s.burned(yardv1.TaskEventKind_TASK_EVENT_KIND_TIMED_OUT, 501, 1500)
		}, nil},
		{"an attempt that timed out without a word", completed, func(s *story) {
			s.burned(yardv1.TaskEventKind_TASK_EVENT_KIND_TIMED_OUT, 500, 1500)
			s.task.Grants[1].Outcomes = nil
		}, nil},
		{"an attempt of no one that was handed back", completed, func(s *story) {
			s.copies[0].Record.Steps = append(s.copies[0].Record.Steps, step(8, yardv1.TaskEventKind_TASK_EVENT_KIND_HANDED_BACK, 3, "z"))
		}, nil},
		{"completed by itself", completed, func(s *story) { s.task.Grants[0].Outcomes = nil }, []audit.Kind{audit.Unfounded}},
		{"cancelled by itself", cancelled, func(s *story) { s.task.Cancels = nil }, []audit.Kind{audit.Unfounded}},
	}
}

// attempts are about who held a task.
func attempts() []trial {
	return []trial{
		{"completed twice", completed, func(s *story) {
			s.task.Grants[0].Outcomes[0].SentAt = at(14)
			s.second(outcome(audit.Complete, 30, "OK"))
		}, []audit.Kind{audit.CompletedTwice, audit.NotCompleted}},
		{"the second completion is stale", completed, func(s *story) {
			s.task.Grants[0].Outcomes[0].SentAt = at(14)
			s.second(outcome(audit.Complete, 30, "STALE"))
		}, nil},
		{"held twice", completed, func(s *story) { s.second() }, []audit.Kind{audit.HeldTwice}},
		{"held after a hand-back", completed, func(s *story) {
			s.second()
			s.takenBack(yardv1.TaskEventKind_TASK_EVENT_KIND_HANDED_BACK)
		}, nil},
		{"held after expiry", completed, func(s *story) {
			s.second()
			s.takenBack(yardv1.TaskEventKind_TASK_EVENT_KIND_TIMED_OUT)
		}, nil},
		{"held past the lease", completed, func(s *story) {
			s.task.Grants[0].Outcomes[0].SentAt, s.task.Grants[0].LeaseEnd = at(40), at(14)
			s.second()
		}, nil},
		{"an attempt over when it arrived", completed, func(s *story) {
			s.second()
			s.task.Grants[1].LeaseEnd = at(15)
		}, nil},
		{"within the limit", completed, func(s *story) { s.limits = []audit.Limit{{Name: "plain", Max: 2, Types: []string{"plain"}}} }, nil},
		{"over the limit", completed, func(s *story) { s.limits = []audit.Limit{{Name: "plain", Max: 1, Types: []string{"plain"}}} }, []audit.Kind{audit.OverLimit}},
		{"over the limit of all", completed, func(s *story) { s.limits = []audit.Limit{{Name: "all", Max: 1}} }, []audit.Kind{audit.OverLimit}},
		{"a limit of others", completed, func(s *story) { s.limits = []audit.Limit{{Name: "other", Max: 1, Types: []string{"other"}}} }, nil},
		{"over the limit after a hand-back", completed, func(s *story) {
			s.limits = []audit.Limit{{Name: "plain", Max: 1, Types: []string{"plain"}}}
			s.takenBack(yardv1.TaskEventKind_TASK_EVENT_KIND_HANDED_BACK)
		}, nil},
	}
}

// cancels are about withdrawn tasks.
func cancels() []trial {
	return []trial{
		{"cancelled and archived as completed", cancelled, func(s *story) {
			s.copies = append(s.copies, archived(yardv1.TaskState_TASK_STATE_COMPLETED))
		}, []audit.Kind{audit.CancelBroken, audit.CopiesDiffer, audit.Unfounded}},
		{"cancelled and run later", cancelled, func(s *story) {
			s.task.Grants = []*audit.Grant{grant("a", 30, outcome(audit.Complete, 40, "STALE"))}
		}, []audit.Kind{audit.CancelBroken}},
		{"cancelled after a failure", cancelled, func(s *story) {
			s.task.Grants = []*audit.Grant{grant("a", 2, outcome(audit.Fail, 3, "OK"))}
		}, nil},
		{"cancelled, and a lost attempt arrives", cancelled, func(s *story) {
			s.task.Grants = []*audit.Grant{grant("a", 30)}
			s.takenBack(yardv1.TaskEventKind_TASK_EVENT_KIND_HANDED_BACK)
		}, nil},
		{"cancelled when running, and completed", completed, func(s *story) {
			s.task.Cancels = []audit.Cancel{{SentAt: at(11), AnsweredAt: at(12), Code: "OK", Running: true}}
		}, nil},
		{"cancelled when running, and cancelled", completed, func(s *story) {
			s.task.Cancels = []audit.Cancel{{SentAt: at(11), AnsweredAt: at(12), Code: "OK", Running: true}}
			s.copies = []audit.Copy{archived(yardv1.TaskState_TASK_STATE_CANCELLED)}
		}, nil},
		{"a cancel too late", completed, func(s *story) {
			s.task.Cancels = []audit.Cancel{{SentAt: at(30), AnsweredAt: at(31), Code: "FAILED_PRECONDITION"}}
		}, nil},
	}
}

// verdicts are about what the archive says of a confirmed outcome.
func verdicts() []trial {
	return []trial{
		{"completed with OK and dead", dead, func(s *story) { s.task.Grants[0].Outcomes[0].Kind = audit.Complete }, []audit.Kind{audit.NotCompleted, audit.NotCompleted}},
		{"the result of another", completed, func(s *story) { s.copies[0].Record.Result = text("by b") }, []audit.Kind{audit.NotCompleted}},
		{"copies of other grants", completed, differing(func(r *logv1.Record) { r.Version = 2 }), []audit.Kind{audit.CopiesDiffer}},
		{"copies of other failures", completed, differing(func(r *logv1.Record) { r.Failures = 2 }), []audit.Kind{audit.CopiesDiffer}},
		{"copies of other ends", completed, differing(func(r *logv1.Record) { r.FinishedAtMs++ }), []audit.Kind{audit.CopiesDiffer}},
		{"copies of other steps", completed, differing(func(r *logv1.Record) { r.Steps[0].AtMs++ }), []audit.Kind{audit.CopiesDiffer}},
		{"copies of more steps", completed, differing(func(r *logv1.Record) { r.Steps = append(r.Steps, r.Steps[0]) }), []audit.Kind{audit.CopiesDiffer}},
		{"a letter unlike the archive", dead, func(s *story) { s.copies[0].Record.FinishedAtMs++ }, []audit.Kind{audit.CopiesDiffer}},
	}
}

// differing archives the task once more, with a change.
func differing(change func(*logv1.Record)) func(*story) {
	return func(s *story) {
		other := archived(yardv1.TaskState_TASK_STATE_COMPLETED)
		change(other.Record)
		s.copies = append(s.copies, other)
	}
}

// TestCheckTellsTheHistory: a violation is readable without the ledger at hand.
func TestCheckTellsTheHistory(t *testing.T) {
	s := completed()
	s.second(outcome(audit.Complete, 30, ""))
	s.task.Cancels = []audit.Cancel{{SentAt: at(11), AnsweredAt: at(12), Code: "OK", Running: true}}
	report := audit.Check(audit.Ledger{Tasks: []*audit.Task{&s.task}}, s.copies)
	if len(report.Violations) != 1 {
		t.Fatalf("%d violations, want 1: %v", len(report.Violations), report.Violations)
	}
	story := report.Violations[0].String()
	for _, want := range []string{
		"held twice: b got it while a held it", "task k (" + id.String() + "): immediate, type plain, max_attempts 3", "accepted", "a got it, lease until",
		"complete of a sent", "complete of a: OK", "complete of b: no answer", "cancel: OK, it was running", "archive #1", "started, grant 1 of a",
	} {
		if !strings.Contains(story, want) {
			t.Errorf("the story lacks %q:\n%s", want, story)
		}
	}
}

// TestReportCounts: the ends, the copies beside the first, and the open tasks.
func TestReportCounts(t *testing.T) {
	s := completed()
	s.copies = append(s.copies, s.copies[0])
	open := completed().task
	open.Key = "open"
	ledger := audit.Ledger{Tasks: []*audit.Task{&s.task, &open}}
	report := audit.Check(ledger, s.copies)
	if report.Ended != 1 || report.Repeated != 1 || report.Count()[audit.Lost] != 1 {
		t.Errorf("ended %d, repeated %d, lost %d, want 1 each", report.Ended, report.Repeated, report.Count()[audit.Lost])
	}
	testkit.Equal(t, "open tasks", report.Open, []string{"open"})
}
