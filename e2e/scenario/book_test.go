package scenario_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// book is what the clients were answered.
type book struct {
	mu       sync.Mutex
	tasks    []string
	attempts []*yardv1.PolledTask
	grants   map[string]*yardv1.PolledTask // by task and version
	outcomes []outcome
	cancels  []string
	tokens   *ids.Tokens
}

// outcome is one that was answered OK.
type outcome struct {
	what, id string
	token    ids.Token
}

// read tells which attempt a token is of.
func (b *book) read(id, token string) (ids.Token, error) {
	of, err := ids.ParseTaskID(id)
	if err != nil {
		return ids.Token{}, err
	}
	return b.tokens.Read(of, token)
}

func (b *book) submitted(all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tasks = append(b.tasks, all...)
}

// granted notes attempts; each grant of a task goes to one poll only.
func (b *book) granted(all []*yardv1.PolledTask) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range all {
		token, err := b.read(p.TaskId, p.Token)
		if err != nil {
			return err
		}
		key := fmt.Sprint(p.TaskId, token.Version)
		if b.grants[key] != nil {
			return fmt.Errorf("grant %d of %s went to two polls", token.Version, p.TaskId)
		}
		b.grants[key] = p
		b.attempts = append(b.attempts, p)
	}
	return nil
}

// decided notes the verdict on an outcome; heartbeats have no name. A token of another
// task counts as of a task that does not exist (R6).
func (b *book) decided(what, id, token string, resp *yardv1.OutcomeResponse, err error) error {
	if err != nil {
		return err
	}
	parsed, err := b.read(id, token)
	forged := errors.Is(err, ids.ErrForgedToken)
	if err != nil && !forged {
		return err
	}
	switch v := resp.Verdicts[0]; {
	case forged != (v.Code == "NOT_FOUND"):
		return fmt.Errorf("%s of %s with a token of another task (%v): %s %s", what, id, forged, v.Code, v.Message)
	case forged, v.Code == "STALE":
		return nil
	case v.Code != "OK":
		return fmt.Errorf("%s of %s: %s %s", what, id, v.Code, v.Message)
	case what == "":
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outcomes = append(b.outcomes, outcome{what, id, parsed})
	return nil
}

func (b *book) wished(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cancels = append(b.cancels, id)
}

// attempt chooses one: of the latest mostly, so that some are still current.
func (b *book) attempt(random *rand.Rand) *yardv1.PolledTask {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.attempts)
	if n == 0 {
		return nil
	}
	if random.IntN(4) > 0 {
		return b.attempts[n-1-random.IntN(min(n, 15))]
	}
	return b.attempts[random.IntN(n)]
}

func (b *book) task(random *rand.Rand) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.tasks) == 0 {
		return ""
	}
	return b.tasks[random.IntN(len(b.tasks))]
}

// drain completes what is left, until every task has ended. What has not for long is cancelled: on a slow
// machine its attempts are over before they can be completed.
func (b *book) drain(w *world) {
	w.t.Helper()
	for began := time.Now(); ; {
		tasks, err := w.poll(&yardv1.PollRequest{Tasklist: list, MaxTasks: 100, WaitMs: 200})
		if err != nil && fault.CodeOf(err) != fault.Unavailable {
			w.t.Fatal(err)
		}
		testkit.NoError(w.t, b.granted(tasks))
		for _, p := range tasks {
			req := &yardv1.CompleteRequest{Tasks: []*yardv1.Completion{{TaskId: p.TaskId, Token: p.Token}}}
			resp, err := w.decide("tasks.complete", req)
			testkit.NoError(w.t, b.decided("completed", p.TaskId, p.Token, resp, err))
		}
		took := time.Since(began)
		if len(tasks) > 0 && took < drainFor {
			continue
		}
		open := ""
		for _, id := range b.tasks {
			task := w.get(id)
			if task.State.Finished() {
				continue
			}
			open = fmt.Sprintf("%s is %s after %s", id, stateOf(task), eventsOf(task))
			if took >= drainFor && w.cancel(id).Code == "OK" {
				b.wished(id)
			}
		}
		if open == "" {
			return
		}
		if took > drainFor+within {
			w.t.Fatal(open)
		}
	}
}

// drainFor is how long what is left may be completed.
const drainFor = within / 2

// life is what a history can be.
var life = regexp.MustCompile(`^submitted( parked( fired)?)?( started( cancel_requested)?( completed$| failed| timed_out| lost| handed_back))*( dead| cancelled)?$`)

// check compares histories and verdicts.
func (b *book) check(w *world) {
	t := w.t
	histories := map[string]*yardv1.Task{}
	ends := map[string]int{}
	for _, id := range b.tasks {
		task := w.get(id)
		histories[id] = task
		events := eventsOf(task)
		ends[stateOf(task)]++
		if !life.MatchString(events) || !strings.HasSuffix(events, stateOf(task)) {
			t.Errorf("%s is %s after %s", id, stateOf(task), events)
		}
	}
	t.Logf("%d tasks, %d attempts, %d outcomes, ends: %v", len(b.tasks), len(b.attempts), len(b.outcomes), ends)

	// What was OK has happened, by that attempt, and was what ended it.
	completed := map[string]bool{}
	for _, o := range b.outcomes {
		if !happened(histories[o.id], o.what, o.token.Version) {
			t.Errorf("%s by grant %d of %s was OK, but it went %s", o.what, o.token.Version, o.id, eventsOf(histories[o.id]))
		}
		if o.what == "completed" {
			completed[o.id] = true
		}
	}
	for id, task := range histories {
		if (stateOf(task) == "completed") != completed[id] {
			t.Errorf("%s is %s, and reported as complete: %v", id, stateOf(task), completed[id])
		}
	}
	for _, id := range b.cancels {
		if events := eventsOf(histories[id]); !strings.Contains(events, "cancel") {
			t.Errorf("the cancel of %s was OK, but it went %s", id, events)
		}
	}
	for _, p := range b.grants {
		token, err := b.read(p.TaskId, p.Token)
		if err != nil || !happened(histories[p.TaskId], "started", token.Version) {
			t.Errorf("grant %d of %s is not in its history: %s, %v", token.Version, p.TaskId, eventsOf(histories[p.TaskId]), err)
		}
	}
	if most := crowding(histories); most > narrowSlots {
		t.Errorf("%d attempts of a type with %d slots ran at once", most, narrowSlots)
	}
}

// happened tells whether a history has such an event of such a grant.
func happened(task *yardv1.Task, what string, grant uint32) bool {
	return slices.ContainsFunc(task.Events, func(e *yardv1.TaskEvent) bool {
		return kindOf(e) == what && e.Grant == int32(grant)
	})
}

// crowding is how many attempts of the narrow type ran at once, by the log's times.
// Within a millisecond, ends are taken to come first.
func crowding(histories map[string]*yardv1.Task) (most int) {
	type change struct {
		at int64
		by int
	}
	var changes []change
	for _, task := range histories {
		if task.Type != narrow {
			continue
		}
		for _, e := range task.Events {
			switch kindOf(e) {
			case "started":
				changes = append(changes, change{e.AtMs, 1})
			case "completed", "failed", "timed_out", "lost", "handed_back":
				changes = append(changes, change{e.AtMs, -1})
			}
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	now := 0
	for _, c := range changes {
		now += c.by
		most = max(most, now)
	}
	return most
}
