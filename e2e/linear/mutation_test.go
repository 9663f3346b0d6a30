package linear

import (
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// byHand is a history that a person wrote: each call takes two instants, the next begins behind it, unless it is moved.
type byHand []porcupine.Operation

func (h byHand) then(in input, out output) byHand {
	at := int64(len(h)) * 10
	if out.code == "" {
		out.code = codeOK
	}
	in.task = map[bool]string{true: in.task, false: first}[in.task != "" || in.kind == submit]
	return append(slices.Clip(h), porcupine.Operation{Input: in, Output: out, Call: at, Return: at + 5})
}

const first, second = "task-1", "task-2"

var stale, refused = output{code: string(fault.Stale)}, output{code: string(fault.FailedPrecondition)}

// life is a history that may be: a task with a key is made, changed, run twice, and completed; then another has the key.
func life() byHand {
	return byHand{}.
		then(input{kind: submit, key: "k", value: 1, when: far}, output{code: created, task: first}).
		then(input{kind: submit, key: "k", value: 2, on: rejected}, output{code: rejected, task: first}).
		then(input{kind: get}, output{seen: view{phase: idle, weak: true, revision: 1, value: 1}}).
		then(input{kind: update, value: 3, ifRevision: 1, request: "r1"}, output{revision: 2}).
		then(input{kind: get}, output{seen: view{phase: idle, weak: true, revision: 1, value: 1}}). // it waits for its time
		then(input{kind: update, value: 4, ifRevision: 1, request: "r2"}, output{code: string(fault.Stale), revision: 2}).
		then(input{kind: update, value: 5, when: soon, request: "r3"}, output{revision: 3}).
		then(input{kind: update, value: 5, when: soon, request: "r3"}, output{revision: 3}). // once more
		then(input{kind: submit, key: "k", value: 6, on: replaced}, output{code: replaced, task: first}).
		then(input{kind: update, value: 5, when: soon, request: "r3"}, output{code: string(fault.Unknown)}). // a copy, after another
		then(input{kind: grant, value: 6, attempt: 1, token: "a"}, output{}).
		then(input{kind: get}, output{seen: view{phase: running, revision: 4, value: 6, attempts: 1}}).
		then(input{kind: update, value: 7, request: "r4"}, refused).
		then(input{kind: submit, key: "k", value: 8, on: replaced}, output{code: existing, task: first}).
		then(input{kind: beat, token: "a"}, output{}).
		then(input{kind: over, attempt: 1}, output{}).
		then(input{kind: grant, value: 6, attempt: 2, token: "b"}, output{}).
		then(input{kind: complete, token: "a"}, stale).
		then(input{kind: cancel}, output{stopping: true}).
		then(input{kind: beat, token: "b"}, output{stopping: true}).
		then(input{kind: complete, token: "b"}, output{}).
		then(input{kind: complete, token: "b"}, output{}). // once more
		then(input{kind: fail, token: "b"}, stale).
		then(input{kind: cancel}, refused).
		then(input{kind: submit, key: "k", value: 9}, output{code: existing, task: first}). // the key is free a moment later
		then(input{kind: submit, key: "k", value: 10}, output{code: created, task: second}).
		then(input{kind: grant, task: second, value: 10, attempt: 1, token: "c"}, output{}).
		then(input{kind: cancel, task: second}, output{stopping: true}).
		then(input{kind: fail, task: second, token: "c"}, output{stopping: true}).
		then(input{kind: get, task: second}, output{seen: view{phase: cancelled, revision: 1, value: 10, attempts: 1}}).
		then(input{kind: cancel, task: second}, output{}).
		then(input{kind: get}, output{seen: view{phase: completed, revision: 4, value: 6, attempts: 2}})
}

// at is the first call of a kind that has a task.
func (h byHand) at(k kind, which func(input, output) bool) int {
	return slices.IndexFunc(h, func(o porcupine.Operation) bool {
		return o.Input.(input).kind == k && which(o.Input.(input), o.Output.(output))
	})
}

// with is h with one call changed.
func (h byHand) with(i int, change func(in *input, out *output)) byHand {
	h = slices.Clone(h)
	in, out := h[i].Input.(input), h[i].Output.(output)
	change(&in, &out)
	h[i].Input, h[i].Output = in, out
	return h
}

func (h byHand) without(i int) byHand { return slices.Delete(slices.Clone(h), i, i+1) }

// TestTheCheckFindsWhatIsWrong changes one thing in a history that may be, as a defect of the engine would.
func TestTheCheckFindsWhatIsWrong(t *testing.T) {
	legal := func(h byHand) bool { return porcupine.CheckOperations(model(), h) }
	h := life()
	if !legal(h) {
		t.Fatal("the history that may be is not one")
	}
	token := func(s string) func(input, output) bool { return func(in input, _ output) bool { return in.token == s } }
	request := func(s string) func(input, output) bool {
		return func(in input, _ output) bool { return in.request == s }
	}
	value := func(v int64) func(input, output) bool { return func(in input, _ output) bool { return in.value == v } }
	of := func(task string) func(input, output) bool {
		return func(in input, _ output) bool { return in.task == task }
	}
	ok := func(_ *input, out *output) { *out = output{code: codeOK, revision: out.revision} }
	for name, wrong := range map[string]byHand{
		"two attempts run at once": h.without(h.at(over, of(first))),
		"an attempt is taken before its lease is over": func() byHand {
			h := slices.Clone(h)
			over := h.at(over, of(first))
			h[over].Call, h[over].Return = h[len(h)-1].Return+1, never
			return h
		}(),
		"an attempt is granted twice": h.with(h.at(grant, token("b")), func(in *input, _ *output) { in.attempt = 1 }),
		"a key has two tasks":         h.with(h.at(submit, value(2)), func(_ *input, out *output) { *out = output{code: created, task: second} }),
		"a key has its next task too early": h.with(h.at(submit, value(8)), func(in *input, out *output) {
			*in, *out = input{kind: submit, key: "k", value: 8}, output{code: created, task: "task-3"}
		}),
		"a free key names its old task":     append(slices.Clone(h), byHand{}.then(input{kind: submit, key: "k", value: 12}, output{code: existing, task: first})[0]).last(),
		"a task that has run is replaced":   h.with(h.at(submit, value(8)), func(_ *input, out *output) { out.code = replaced }),
		"an update is lost":                 h.with(h.at(grant, token("a")), func(in *input, _ *output) { in.value = 1 }),
		"a copy is made over a later one":   h.with(h.at(submit, value(6))+1, func(_ *input, out *output) { *out = output{code: codeOK, revision: 5} }),
		"a copy has another's revision":     h.with(h.at(submit, value(6))+1, func(_ *input, out *output) { *out = output{code: codeOK, revision: 4} }),
		"an update is made twice":           h.without(h.at(update, request("r1"))),
		"an update ignores the revision":    h.with(h.at(update, request("r2")), func(_ *input, out *output) { *out = output{code: codeOK, revision: 3} }),
		"a running task is changed":         h.with(h.at(update, request("r4")), func(_ *input, out *output) { *out = output{code: codeOK, revision: 5} }),
		"a cancel's OK is ignored":          h.with(h.at(beat, token("b")), func(_ *input, out *output) { out.stopping = false }),
		"a cancelled task runs again":       h.with(h.at(get, of(second)), func(_ *input, out *output) { out.seen.phase = idle }),
		"a task is cancelled and completed": h.with(len(h)-1, func(_ *input, out *output) { out.seen.phase = cancelled }),
		"a stale token completes":           h.with(h.at(complete, token("a")), ok),
		"a completion is forgotten":         h.with(len(h)-1, func(_ *input, out *output) { out.seen.phase = running }),
		"a task is not found":               h.with(h.at(get, of(first)), func(_ *input, out *output) { *out = output{code: string(fault.NotFound)} }),
		"a delayed task runs":               h.with(h.at(update, request("r3")), func(in *input, _ *output) { in.when = same }).without(h.at(submit, value(6))),
	} {
		if legal(wrong) {
			t.Errorf("%s: not found\n%s", name, text(wrong))
		}
	}
}

// redriven is a history that may be: a task dies, comes back without its key, and is completed.
func redriven() byHand {
	return byHand{}.
		then(input{kind: submit, key: "k", value: 1}, output{code: created, task: first}).
		then(input{kind: redrive, request: "r0"}, refused).
		then(input{kind: grant, value: 1, attempt: 1, token: "a"}, output{}).
		then(input{kind: fail, token: "a", final: true}, output{}).
		then(input{kind: get}, output{seen: view{phase: dead, revision: 1, value: 1, attempts: 1}}).
		then(input{kind: redrive, request: "r1"}, output{}).
		then(input{kind: redrive, request: "r1"}, output{}). // once more
		then(input{kind: redrive, request: "r2"}, refused).
		then(input{kind: submit, key: "k", value: 2}, output{code: created, task: second}).
		then(input{kind: get}, output{seen: view{phase: idle, revision: 1, value: 1, attempts: 1}}).
		then(input{kind: grant, value: 1, attempt: 2, token: "b"}, output{}).
		then(input{kind: redrive, request: "r1"}, output{}). // it is known still
		then(input{kind: complete, token: "b"}, output{}).
		then(input{kind: redrive, request: "r3"}, refused)
}

// TestTheCheckFindsWrongRedrives.
func TestTheCheckFindsWrongRedrives(t *testing.T) {
	h := redriven()
	if !porcupine.CheckOperations(model(), h) {
		t.Fatal("the history that may be is not one")
	}
	request := func(s string) int {
		return h.at(redrive, func(in input, _ output) bool { return in.request == s })
	}
	ok := func(_ *input, out *output) { *out = output{code: codeOK} }
	for name, wrong := range map[string]byHand{
		"a letter comes back for two requests": h.with(request("r2"), ok),
		"a task that runs comes back":          h.with(request("r0"), ok),
		"a task that is completed comes back":  h.with(request("r3"), ok),
		"it comes back by itself":              h.without(request("r1")).without(request("r1")).without(len(h) - 5),
		"a repeat is refused":                  h.with(request("r1")+1, func(_ *input, out *output) { *out = refused }),
		"the only request is refused":          h.with(request("r1"), func(_ *input, out *output) { *out = refused }).without(request("r1") + 1),
		"it is dead still": h.with(h.at(get, func(_ input, out output) bool { return out.seen.phase == idle }), func(_ *input, out *output) {
			out.seen.phase = dead
		}),
		"it has its key again": h.with(h.at(submit, func(in input, _ output) bool { return in.value == 2 }), func(in *input, out *output) {
			in.on, out.code, out.task = replaced, replaced, first
		}),
	} {
		if porcupine.CheckOperations(model(), wrong) {
			t.Errorf("%s: not found\n%s", name, text(wrong))
		}
	}
}

// last puts the last call behind all others.
func (h byHand) last() byHand {
	i := len(h) - 1
	h[i].Call, h[i].Return = int64(i)*10, int64(i)*10+5
	return h
}

// TestWhatHasNoAnswerMayHaveHappenedOrNot: at any time since.
func TestWhatHasNoAnswerMayHaveHappenedOrNot(t *testing.T) {
	unknown := output{code: string(fault.Unknown)}
	begin := byHand{}.then(input{kind: submit, value: 1}, output{code: created, task: first}).
		then(input{kind: update, value: 2, request: "r"}, unknown)
	begin[1].Return = never
	old, changed := view{phase: idle, revision: 1, value: 1}, view{phase: idle, revision: 2, value: 2}
	for name, c := range map[string]struct {
		seen []view
		want bool
	}{
		"never":                  {[]view{old, old}, true},
		"late":                   {[]view{old, changed}, true},
		"at once":                {[]view{changed, changed}, true},
		"undone":                 {[]view{changed, old}, false},
		"with another value":     {[]view{{phase: idle, revision: 2, value: 3}}, false},
		"without a new revision": {[]view{{phase: idle, revision: 1, value: 2}}, false},
	} {
		h := begin
		for _, v := range c.seen {
			h = h.then(input{kind: get}, output{seen: v})
		}
		if got := porcupine.CheckOperations(model(), h); got != c.want {
			t.Errorf("%s: %v\n%s", name, got, text(h))
		}
	}
}

// TestAFailureThatCountedMayBeStale, once the next attempt has begun: a frontend that got no verdict has sent it again. It is never STALE
// while its own attempt runs.
func TestAFailureThatCountedMayBeStale(t *testing.T) {
	for next, want := range map[bool]bool{true: true, false: false} {
		h := newHistory()
		h.keys[first] = ""
		h.add(call{in: input{kind: submit, value: 1}, out: output{code: created, task: first}, from: h.now()})
		h.add(call{in: input{kind: grant, task: first, value: 1, attempt: 1, token: "a"}, out: output{code: codeOK}, from: h.now()})
		failed := h.now()
		if next {
			h.add(call{in: input{kind: grant, task: first, value: 1, attempt: 2, token: "b"}, out: output{code: codeOK}, from: failed})
		}
		h.add(call{in: input{kind: fail, task: first, token: "a"}, out: stale, from: failed})
		h.add(call{in: input{kind: beat, task: first, token: map[bool]string{true: "b", false: "a"}[next]}, out: output{code: codeOK}, from: h.now()})
		for _, life := range h.lives() {
			if got := porcupine.CheckOperations(model(), life); got != want {
				t.Errorf("with a next attempt %v: %v\n%s", next, got, text(life))
			}
		}
	}
}

// TestACommandHasAWaitingTaskComeBack: a refused one, too, so the repeat of the outcome before is about a stay that is over.
func TestACommandHasAWaitingTaskComeBack(t *testing.T) {
	before := byHand{}.
		then(input{kind: submit, value: 1}, output{code: created, task: first}).
		then(input{kind: grant, value: 1, attempt: 1, token: "a"}, output{}).
		then(input{kind: fail, token: "a", when: far}, output{})
	behind := before.then(input{kind: redrive, request: "r"}, output{code: string(fault.FailedPrecondition)})
	again := input{kind: fail, token: "a", when: far}
	if porcupine.CheckOperations(model(), before.then(again, stale)) {
		t.Error("it is over before a command came")
	}
	if !porcupine.CheckOperations(model(), behind.then(again, stale)) || !porcupine.CheckOperations(model(), behind.then(again, output{})) {
		t.Error("the repeat may be about the last stay, or the one before")
	}
}

// TestARepeatIsAnsweredByWhatHasTheKeySince: the first try replaced a task, and its answer was lost.
func TestARepeatIsAnsweredByWhatHasTheKeySince(t *testing.T) {
	h := byHand{}.
		then(input{kind: submit, key: "k", value: 1}, output{code: created, task: first}).
		then(input{kind: submit, key: "k", value: 2, on: replaced}, output{code: existing, task: second}).
		then(input{kind: grant, value: 2, attempt: 1, token: "a"}, output{}).
		then(input{kind: complete, token: "a"}, output{}).
		then(input{kind: submit, key: "k", value: 3}, output{code: created, task: second})
	h[1].Return = h[4].Return + 1
	if !porcupine.CheckOperations(model(), h) {
		t.Error("the repeat may come behind the task that it replaced")
	}
	if porcupine.CheckOperations(model(), h.with(2, func(in *input, _ *output) { in.value = 1 })) {
		t.Error("it replaced nothing, and is answered with a task that it could have replaced")
	}
}
