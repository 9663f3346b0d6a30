package linear

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// kind is what is asked, or happens.
type kind string

const (
	submit   kind = "submit"
	get      kind = "get"
	update   kind = "update"
	cancel   kind = "cancel"
	grant    kind = "grant" // an attempt that a poll was answered with
	complete kind = "complete"
	fail     kind = "fail"
	beat     kind = "beat"
	redrive  kind = "redrive"
	// The engine does these by itself: an attempt that no worker received begins, and an attempt is taken from its worker.
	ghost kind = "ghost"
	over  kind = "over"
)

// codeOK is the code of what was done.
const codeOK = "OK"

// What a submit was answered with, beside the codes.
const (
	created  = "created"
	existing = "existing"
	rejected = "rejected"
	replaced = "replaced"
)

// phase is where a task is, as far as all promises are about it.
type phase string

const (
	idle      phase = "idle" // it waits for its time, its turn or its next attempt
	running   phase = "running"
	completed phase = "completed"
	dead      phase = "dead"
	cancelled phase = "cancelled"
)

func (p phase) ended() bool { return p != idle && p != running }

// when is what a call says about the next attempt's time.
type when string

const (
	same when = ""
	soon when = "now"
	far  when = "far" // so late that no attempt may begin in the test
)

// input is one call.
type input struct {
	kind kind
	task string
	// key is the unique key of a submit; on what it asks for if that is taken.
	key, on string
	// value is the payload that a submit or an update gives, or that a grant has.
	value int64
	when  when
	// request names an update or a redrive, however often it is sent.
	request    string
	ifRevision int64
	// token and attempt are of a grant, or of what a worker reports.
	token   string
	attempt int32
	// final: a failure, or a lost attempt, ends the task.
	final bool
}

// output is its answer.
type output struct {
	// code is that of the answer, or of its verdict; of a submit its outcome.
	code string
	// task is the one that a submit names.
	task     string
	revision int64
	// stopping: the worker is asked to stop.
	stopping bool
	seen     view
}

// view is what tasks.get shows.
type view struct {
	phase phase
	// weak: the one state in which it may be that of before the last updates.
	weak     bool
	revision int64
	value    int64
	attempts int32
	stopping bool
}

// task is the model's.
type task struct {
	id       string
	phase    phase
	far      bool
	value    int64
	revision int64
	attempts int32
	token    string // of the last attempt
	ended    kind   // what the worker ended it by
	endedAt  int64  // the revision that it had then
	// cameBack: a command came since, which has a task that waits for long come back, whatever becomes of the command.
	cameBack bool
	stopping bool
	// requests are the last updates that were made, the latest first.
	requests [4]string
	// refused is the last update that was decided, if it was not made: a repeat of it is refused, too, whatever the task is by then.
	refused string
	// redrives are the last ones. A task that was redriven has its key no more.
	redrives [4]string
}

// hasKey tells whether no other task may have the key of t.
func (t task) hasKey() bool { return !t.phase.ended() && t.redrives[0] == "" }

// state is that of one key, or of one task without a key.
type state struct {
	holder string
	tasks  []task
}

func (s state) find(id string) (t task, there bool) {
	i := slices.IndexFunc(s.tasks, func(t task) bool { return t.id == id })
	if i < 0 {
		return task{id: id}, false
	}
	return s.tasks[i], true
}

func (s state) with(t task) state {
	i := slices.IndexFunc(s.tasks, func(o task) bool { return o.id == t.id })
	if i < 0 {
		return state{s.holder, append(slices.Clip(s.tasks), t)}
	}
	all := slices.Clone(s.tasks)
	all[i] = t
	return state{s.holder, all}
}

// model is what porcupine checks a history against.
func model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return state{} },
		Step: func(s, in, out any) (bool, any) {
			ok, next := step(s.(state), in.(input), out.(output))
			return ok, next
		},
		Equal: func(a, b any) bool {
			return a.(state).holder == b.(state).holder && slices.Equal(a.(state).tasks, b.(state).tasks)
		},
		DescribeOperation: func(in, out any) string { return describe(in.(input), out.(output)) },
		DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
	}
}

// step is what a call does to a state, if its answer is one that the state may give. What has no answer does what it can: it may as well
// come last, where nothing sees it.
func step(s state, in input, out output) (bool, state) {
	if in.kind == submit {
		return s.submit(in, out)
	}
	t, there := s.find(in.task)
	if !there {
		return out.code == string(fault.NotFound) || out.code == string(fault.Unknown), s
	}
	var answers []output
	if t.far && slices.Contains([]kind{update, cancel, redrive}, in.kind) {
		t.cameBack = true
	}
	switch next := t; in.kind {
	case get:
		return t.shows(out.seen, out.code), s
	case update:
		answers = next.update(in)
		t = next
	case cancel:
		answers = next.cancel()
		t = next
	case grant, ghost:
		answers = next.begin(in)
		t = next
	case redrive:
		answers = next.redrive(in)
		t = next
	case complete, fail, beat:
		answers = next.report(in)
		t = next
	case over:
		answers = next.over(in)
		t = next
	}
	if out.code != string(fault.Unknown) && !slices.Contains(answers, output{code: out.code, revision: out.revision, stopping: out.stopping}) {
		return false, s
	}
	return true, s.with(t)
}

// submit makes a task, unless another has the key.
func (s state) submit(in input, out output) (bool, state) {
	holder, held := s.find(s.holder)
	fresh := held && !holder.phase.ended() && holder.attempts == 0
	if in.on == replaced && held && holder.far { // the command that would replace it
		holder.cameBack = true
		s = s.with(holder)
	}
	switch out.code {
	case created:
		if _, there := s.find(out.task); there || held && holder.hasKey() {
			return false, s
		}
		s = s.with(task{id: out.task, phase: idle, far: in.when == far, value: in.value, revision: 1})
		s.holder = out.task
		return true, s
	case existing, rejected: // also of one that has ended: its key is free a moment later
		if _, there := s.find(out.task); !there && fresh && in.on == replaced { // the answer to a repeat: the task that it replaced is over
			break
		}
		return held && out.task == s.holder && (out.code == rejected) == (in.on == rejected) && (in.on != replaced || !fresh), s
	case replaced:
		if !fresh || out.task != s.holder || in.on != replaced {
			return false, s
		}
	default: // no one knows; what was made is known by its id
		if !fresh || in.on != replaced {
			return true, s
		}
	}
	holder.change(in)
	holder.far = in.when == far
	return true, s.with(holder)
}

// update changes t, and returns the answers that it may have.
func (t *task) update(in input) []output {
	switch {
	case t.requests[0] == in.request:
		return []output{{code: codeOK, revision: t.revision}}
	case in.request != "" && t.refused == in.request:
		return []output{{code: string(fault.FailedPrecondition)}, {code: string(fault.Stale), revision: t.revision}}
	case slices.Contains(t.requests[1:], in.request): // made before the last one: no copy is applied, and none is answered but with UNKNOWN
		return nil
	case t.phase.ended():
		return []output{{code: string(fault.FailedPrecondition)}}
	case in.ifRevision != 0 && in.ifRevision != t.revision:
		t.refused = in.request
		return []output{{code: string(fault.Stale), revision: t.revision}}
	case t.phase == running:
		t.refused = in.request
		return []output{{code: string(fault.FailedPrecondition)}}
	}
	t.change(in)
	if in.when != same {
		t.far = in.when == far
	}
	return []output{{code: codeOK, revision: t.revision}}
}

// change gives t what an update or a replacement has.
func (t *task) change(in input) {
	t.revision++
	t.value, t.refused = in.value, ""
	copy(t.requests[1:], t.requests[:3])
	t.requests[0] = cmp.Or(in.request, in.on)
}

func (t *task) cancel() []output {
	switch t.phase {
	case idle:
		t.phase = cancelled
		return []output{{code: codeOK}}
	case running:
		t.stopping = true
		return []output{{code: codeOK, stopping: true}}
	case cancelled:
		return []output{{code: codeOK}}
	}
	return []output{{code: string(fault.FailedPrecondition)}}
}

// redrive brings t back if it is dead, once for each request.
func (t *task) redrive(in input) []output {
	switch {
	case slices.Contains(t.redrives[:], in.request):
		return []output{{code: codeOK}}
	case t.phase != dead:
		return []output{{code: string(fault.FailedPrecondition)}, {code: string(fault.NotFound)}}
	}
	copy(t.redrives[1:], t.redrives[:3])
	t.redrives[0], t.phase, t.far = in.request, idle, false
	return []output{{code: codeOK}}
}

// begin starts an attempt: the next one, of what the task is now, while none runs.
func (t *task) begin(in input) []output {
	if t.phase != idle || t.far || in.attempt != t.attempts+1 || in.kind == grant && in.value != t.value {
		return nil
	}
	t.phase, t.attempts, t.token, t.ended = running, in.attempt, in.token, ""
	return []output{{code: codeOK}}
}

// report is what the worker of an attempt says.
func (t *task) report(in input) []output {
	current := in.token == t.token
	switch {
	case !current || t.phase != running && t.ended != in.kind:
		return []output{{code: string(fault.Stale)}}
	case t.phase != running: // once more. It may be answered with what followed.
		answers := []output{{code: codeOK}, {code: codeOK, stopping: true}}
		if t.redrives[0] != "" || t.revision > t.endedAt || t.cameBack { // the task may have waited and come back, which is known of its last wait
			answers = append(answers, output{code: string(fault.Stale)})
		}
		return answers
	case in.kind == beat:
		return []output{{code: codeOK, stopping: t.stopping}}
	}
	stopping := t.stopping && in.kind == fail
	t.ended, t.endedAt, t.cameBack = in.kind, t.revision, false
	t.end(in, in.kind == complete)
	return []output{{code: codeOK, stopping: stopping}}
}

// over takes an attempt from its worker.
func (t *task) over(in input) []output {
	if t.phase != running || t.attempts != in.attempt {
		return nil
	}
	t.end(in, false)
	return []output{{code: codeOK}}
}

func (t *task) end(in input, done bool) {
	switch {
	case done:
		t.phase = completed
	case t.stopping:
		t.phase = cancelled
	case in.final:
		t.phase = dead
	default:
		t.phase, t.far = idle, in.when == far
	}
	t.stopping = false
}

// shows tells whether tasks.get may answer v now.
func (t *task) shows(v view, code string) bool {
	switch {
	case code != codeOK || v.phase != t.phase || v.attempts > t.attempts:
		return false
	case v.weak && v.revision < t.revision:
		return true
	}
	return v.revision == t.revision && v.value == t.value && v.attempts == t.attempts && (v.stopping == t.stopping || t.phase != running)
}

func describe(in input, out output) string {
	text := fmt.Sprintf("%s(…%s", in.kind, tail(in.task))
	add := func(is bool, format string, args ...any) {
		if is {
			text += fmt.Sprintf(format, args...)
		}
	}
	add(in.key != "", " key %s %s", in.key, in.on)
	add(in.value != 0, " value %d", in.value)
	add(in.when != same, " %s", in.when)
	add(in.ifRevision != 0, " if %d", in.ifRevision)
	add(in.request != "", " request …%s", tail(in.request))
	add(in.attempt != 0, " attempt %d", in.attempt)
	add(in.token != "", " token …%s", tail(in.token))
	add(in.final, " final")
	text += ") → " + out.code
	add(out.task != "", " …%s", tail(out.task))
	add(out.revision != 0, " revision %d", out.revision)
	add(out.stopping, " stop")
	add(out.seen != view{}, " %+v", out.seen)
	return text
}

// tail is what tells ids apart for people.
func tail(s string) string { return s[max(0, len(s)-6):] }
