package replica

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// asks is a redrive of task 1 as a caller asks for it, at 41: of its stay 0, with its letter at 5, by request 9.
func asks(change func(*taskstate.Event)) *Events {
	in := redrove(41)
	if change != nil {
		change(&in.Events[0])
	}
	return in
}

// stay is task 1 as another store has it, after redrives by these requests, the last one first.
func stay(n uint32, state taskstate.State, redriven ...uint64) *Entry {
	e := deadLetterOf()
	e.Parkings, e.State = n, state
	if len(redriven) > 0 {
		r := &taskstate.Redriven{Count: uint32(len(redriven)), Seq: 35}
		copy(r.Requests[:], redriven)
		e.Extra = &taskstate.Extra{Redriven: r}
	}
	return e
}

// dies has task 1 fail for good.
func (b *bench) dies() {
	b.Helper()
	b.start(1)
	b.seq++
	b.step(&Events{Seq: b.seq, At: b.now.MS, Events: []taskstate.Event{{Kind: taskstate.Failed, ID: id(1), Fence: b.r.Get(id(1)).Token(), NonRetryable: true}}})
}

// redriveFound is a redrive, what the other stores have of its task, and what becomes of it: its verdict, unless it waits, whether the task comes back, and
// whether its letter is deleted.
type redriveFound struct {
	asks    func(*taskstate.Event)
	found   Found
	want    fault.Code
	waits   bool
	back    bool
	deleted bool
}

func (c redriveFound) check(t *testing.T) {
	b := newBench(t, Config{})
	b.seq = 40
	b.r.lanes[3].Skip(30)
	fx := b.step(asks(c.asks))
	if len(fx.Searches) != 1 {
		t.Fatalf("searches %+v", fx.Searches)
	}
	found := c.found
	found.Search, found.LetterSeq = fx.Searches[0], 5
	if found.Letter != nil && found.Letter.Parkings > 0 {
		found.LetterSeq = 36
	}
	if found.Unread != nil {
		found.Unread.Position = ids.NewPosition(38, 3)
	}
	found.Ends[3] = 38
	fx = b.step(&found)
	if c.waits {
		if len(fx.Answers) != 0 {
			t.Errorf("it gets %+v", b.said(fx))
		}
		return
	}
	if v := b.said(fx); v.Code != c.want {
		t.Errorf("it gets %+v", v)
	}
	if back := len(fx.Park) == 1; back != c.back {
		t.Errorf("it comes back: %v", back)
	}
	if deleted := len(fx.Letters) == 1 && fx.Letters[0].Seq == 5; deleted != c.deleted || !deleted && len(fx.Letters) > 0 {
		t.Errorf("letters %v are deleted", fx.Letters)
	}
	if next := c.found.Unread; next != nil {
		fx = b.step(&Submits{Lane: 3, Seq: 38, At: scenarioStart, Bytes: 10, Tasks: []*Entry{stay(next.Parkings, taskstate.None, 9)}})
	}
	if len(fx.Answers) != 0 && c.found.Unread != nil || len(b.r.early.byID) != 0 {
		t.Errorf("in the end it gets %+v, %d wait", fx.Answers, len(b.r.early.byID))
	}
}

// TestWhatBecomesOfARedrive, by what the other stores have of its task. A letter is deleted where an owner died that had brought its task back.
func TestWhatBecomesOfARedrive(t *testing.T) {
	rival := func(ev *taskstate.Event) { ev.Domain = "rival" }
	noLetter := func(ev *taskstate.Event) { ev.Redrive.Letter = 0 }
	const dead, completed, waiting = taskstate.Dead, taskstate.Completed, taskstate.Waiting
	for name, c := range map[string]redriveFound{
		"a letter":                                      {found: Found{Archived: stay(0, dead), Letter: stay(0, dead)}, back: true},
		"a letter, and no end":                          {found: Found{Letter: stay(0, dead)}, back: true},
		"a letter that the caller did not find":         {asks: noLetter, found: Found{Archived: stay(0, dead), Letter: stay(0, dead)}, want: fault.Unknown},
		"a letter of another stay":                      {found: Found{Archived: stay(1, dead, 8), Letter: stay(1, dead, 8)}, want: fault.FailedPrecondition, deleted: true},
		"a letter of what it brought back":              {found: Found{Archived: stay(1, dead, 9), Letter: stay(1, dead, 9)}, deleted: true},
		"no letter of that stay any more":               {found: Found{Archived: stay(0, dead)}, want: fault.FailedPrecondition},
		"it has completed":                              {found: Found{Archived: stay(0, completed)}, want: fault.FailedPrecondition},
		"it has completed since":                        {found: Found{Archived: stay(1, completed, 9), Letter: stay(0, dead)}, deleted: true},
		"it waits since":                                {found: Found{Waiting: stay(1, waiting, 9), Letter: stay(0, dead)}, deleted: true},
		"it waits since another redrive":                {found: Found{Waiting: stay(1, waiting, 8), Letter: stay(0, dead)}, want: fault.FailedPrecondition, deleted: true},
		"it waits, and never died":                      {found: Found{Waiting: stay(1, waiting)}, want: fault.FailedPrecondition},
		"its next stay is not read":                     {found: Found{Unread: stay(1, taskstate.None, 9), Letter: stay(0, dead)}, deleted: true},
		"its stay is not read":                          {found: Found{Unread: stay(0, taskstate.None)}, waits: true},
		"its next stay is not read, nor a letter there": {found: Found{Unread: stay(1, taskstate.None, 9)}, deleted: true},
		"another redrive has brought it back":           {found: Found{Archived: stay(1, completed, 8), Letter: stay(0, dead)}, want: fault.FailedPrecondition, deleted: true},
		"a repeat for the letter of what it brought back": {
			asks:  func(ev *taskstate.Event) { ev.Redrive.Letter, ev.Redrive.Parkings = 36, 1 },
			found: Found{Archived: stay(1, dead, 9), Letter: stay(1, dead, 9)},
		},
		"a later letter that the caller did not find":    {asks: noLetter, found: Found{Archived: stay(1, dead, 8), Letter: stay(1, dead, 8)}, want: fault.Unknown},
		"it has completed, and a copy is not read":       {found: Found{Archived: stay(0, completed), Unread: stay(0, taskstate.None)}, want: fault.FailedPrecondition},
		"it has completed since, and a copy is not read": {found: Found{Archived: stay(1, completed, 9), Unread: stay(0, taskstate.None)}, deleted: true},
		"another domain's task that is not read":         {asks: rival, found: Found{Unread: stay(1, taskstate.None, 9)}, want: fault.NotFound},
		"nothing":                                        {found: Found{}, waits: true},
		"another domain's task":                          {asks: rival, found: Found{Archived: stay(0, dead)}, want: fault.NotFound},
		"another domain's task that came back":           {asks: rival, found: Found{Archived: stay(1, completed, 9)}, want: fault.NotFound},
		"another domain's task that waits":               {asks: rival, found: Found{Waiting: stay(1, waiting, 9)}, want: fault.NotFound},
	} {
		t.Run(name, c.check)
	}
}

// TestTheSecondRedrive of a letter is refused, unless it is the first one again, or one that brought the task back before. Both wait for the search.
func TestTheSecondRedrive(t *testing.T) {
	for request, want := range map[uint64]fault.Code{9: "", 8: "", 10: fault.FailedPrecondition} {
		b := newBench(t, Config{})
		b.seq = 40
		b.r.lanes[3].Skip(30)
		ask := func(seq, request uint64) *Effects {
			in := redrove(seq)
			in.Events[0].Redrive.Request, in.Events[0].Redrive.Parkings = request, 1
			return b.step(in)
		}
		fx := ask(41, 9)
		ask(42, request)
		for len(fx.Searches) > 0 { // the first answer is from before the second one
			fx = b.step(&Found{Search: fx.Searches[0], Archived: stay(1, taskstate.Dead, 8), Letter: stay(1, taskstate.Dead, 8), LetterSeq: 5})
		}
		verdicts := make(map[uint64]fault.Code)
		for _, a := range fx.Answers {
			verdicts[a.RequestID] = a.Verdicts[0].Code
		}
		if verdicts[41] != "" || verdicts[42] != want || len(fx.Answers) != 2 || len(fx.Park) != 1 || fx.Park[0].Parkings != 2 {
			t.Errorf("request %d: verdicts %v, parked %v", request, verdicts, fx.Park)
		}
	}
}

// TestARedriveOfATaskInMemory: the verdict, whether it waits for the task to leave, and whether the letter that it names is deleted.
func TestARedriveOfATaskInMemory(t *testing.T) {
	dies, lives := (*bench).dies, func(*bench) {}
	for name, c := range map[string]struct {
		parkings uint32
		redriven []uint64
		then     func(*bench)
		letter   uint64
		of       uint32
		want     fault.Code
		waits    bool
		deleted  bool
	}{
		"it never died":                         {then: lives, letter: 5, want: fault.FailedPrecondition},
		"it never died, and the caller knows":   {then: lives, want: fault.FailedPrecondition},
		"it was parked since, and never died":   {parkings: 1, then: lives, letter: 5, want: fault.FailedPrecondition},
		"it came back":                          {parkings: 1, redriven: []uint64{9}, then: lives, letter: 5, deleted: true},
		"it came back, and its letter is gone":  {parkings: 1, redriven: []uint64{9}, then: lives},
		"it came back by another redrive":       {parkings: 1, redriven: []uint64{8}, then: lives, letter: 5, want: fault.FailedPrecondition, deleted: true},
		"its letter is being stored":            {then: dies, want: fault.Unknown},
		"its letter was read by another owner":  {then: dies, letter: 5, waits: true},
		"it dies a second time":                 {parkings: 1, redriven: []uint64{9}, then: dies, letter: 5, deleted: true},
		"a repeat when it dies a second time":   {parkings: 1, redriven: []uint64{9}, then: dies, letter: 5, of: 1},
		"it dies after another redrive":         {parkings: 1, redriven: []uint64{8}, then: dies, letter: 5, want: fault.FailedPrecondition, deleted: true},
		"it dies a second time, and a repeat":   {parkings: 1, redriven: []uint64{9}, then: dies},
		"it dies after another, with no letter": {parkings: 1, redriven: []uint64{8}, then: dies, want: fault.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Config{})
			b.submit(func(task *taskstate.Task) {
				*task = stay(c.parkings, taskstate.None, c.redriven...).Task
				task.Position = 0
			}, 1)
			b.seq = 40
			c.then(b)
			b.seq++
			in := asks(func(ev *taskstate.Event) { ev.Redrive.Letter, ev.Redrive.Parkings = c.letter, c.of })
			in.Seq = b.seq
			fx := b.step(in)
			if c.waits != (len(fx.Answers) == 0) || len(fx.Searches) != 0 {
				t.Fatalf("%d answers, %d searches", len(fx.Answers), len(fx.Searches))
			}
			if deleted := len(fx.Letters) == 1 && fx.Letters[0].Seq == 5; deleted != c.deleted || !deleted && len(fx.Letters) > 0 {
				t.Errorf("letters %v are deleted", fx.Letters)
			}
			if !c.waits {
				if v := b.said(fx); v.Code != c.want {
					t.Errorf("it gets %+v", v)
				}
				return
			}
			b.linger()
			if fx := b.step(Stored{Kind: JobArchive, Seq: 1}); len(fx.Searches) != 1 || !fx.Searches[0].Redrive {
				t.Errorf("searches %+v once it has left", fx.Searches)
			}
		})
	}
}

// TestALetterIsDeletedOfATaskThatIsParked by an owner that died before it could: the tail of the timer store has the stay that the redrive makes.
func TestALetterIsDeletedOfATaskThatIsParked(t *testing.T) {
	b := newBench(t, Config{})
	b.r = New(b.r.cfg, Checkpoint{}, b.now.Mono)
	b.r.lanes[3].Skip(30)
	b.step(redrove(41))
	b.foundLetter(b.step(Recovered{Parked: map[Stay]bool{{id(1), 1}: true}, Ends: upTo(99)}), 50)
	b.step(&Submits{Lane: 3, Seq: 50, At: scenarioStart, Bytes: 10})
	if fx := b.step(Tick{}); len(fx.Park) != 0 || len(fx.ParkLetters) != 0 || len(fx.Letters) != 1 || fx.Letters[0].Seq != 5 {
		t.Errorf("parked %v with %v, letters %v are deleted", fx.Park, fx.ParkLetters, fx.Letters)
	}
}

// TestAStayWithoutARedriveDoesNotComeBack: its task has ended for good.
func TestAStayWithoutARedriveDoesNotComeBack(t *testing.T) {
	for redrives, comes := range map[int]bool{0: false, 1: true} {
		b := newBench(t, Config{})
		b.submit(nil, 1)
		b.dies()
		next := stay(1, taskstate.None, make([]uint64, redrives)...)
		next.Position = b.r.Get(id(1)).Position
		b.seq++
		fx := b.step(&Submits{Lane: 3, Seq: b.seq, At: b.now.MS, Bytes: 10, Tasks: []*Entry{next}})
		if got := len(triggered(fx)) > 0; got != comes {
			t.Errorf("after %d redrives it comes: %v", redrives, got)
		}
	}
}

// TestAnotherDomainIsNotToldOfARedrive: what came before it is about a letter that is gone.
func TestAnotherDomainIsNotToldOfARedrive(t *testing.T) {
	for domain, want := range map[string]fault.Code{"shop": fault.FailedPrecondition, "rival": fault.NotFound} {
		b, asked, later := redrivenLater(t)
		b.r.lanes[ids.LaneKeyed].Skip(2)
		asked.Domain = domain
		for _, w := range b.r.early.of(id(1)) {
			w.ev.Domain = domain
		}
		later.Before, later.Position = ids.NewPosition(2, ids.LaneKeyed), ids.NewPosition(8, 2)
		if v := b.said(b.step(&Found{Search: asked, Unread: later})); v.Code != want {
			t.Errorf("%s: %+v", domain, v)
		}
	}
}

// TestACommandFromBeforeARedrive, whose task waits since in the timer store, is decided there: the store keeps the task. Another domain's command goes on waiting.
func TestACommandFromBeforeARedrive(t *testing.T) {
	b := newBench(t, Config{})
	b.seq = 33
	b.r.lanes[3].Skip(30)
	change := func(domain string) *Effects {
		b.seq++
		return b.step(&Events{Seq: b.seq, At: b.now.MS, ReplyTo: domain, Events: []taskstate.Event{{
			Kind: taskstate.Changed, ID: id(1), Domain: domain, Update: &taskstate.Update{Request: b.seq, Priority: 1, Since: isNew},
		}}})
	}
	fx := change("shop")
	change("rival")
	b.seq = 39
	fx = b.step(&Found{Search: fx.Searches[0], Waiting: stay(1, taskstate.Waiting, 9)})
	if v := b.said(fx); v.Code != fault.FailedPrecondition || fx.Answers[0].ReplyTo != "shop" {
		t.Errorf("%s gets %+v", fx.Answers[0].ReplyTo, v)
	}
	if len(fx.Searches) != 1 || fx.Searches[0].Domain != "rival" || fx.Searches[0].Take {
		t.Errorf("searches %+v", fx.Searches)
	}
}

// TestAnotherDomainIsNotToldOfAnEnd.
func TestAnotherDomainIsNotToldOfAnEnd(t *testing.T) {
	b := newBench(t, Config{})
	fx := b.cancels("rival", 1)
	if v := b.said(b.step(&Found{Search: fx.Searches[0], Archived: stay(0, taskstate.Completed)})); v.Code != fault.NotFound || len(b.r.early.byID) != 0 {
		t.Errorf("%+v, %d wait", v, len(b.r.early.byID))
	}
}

// TestACancelDoesNotReadLetters: neither does it wait for what an update needs.
func TestACancelDoesNotReadLetters(t *testing.T) {
	b := newBench(t, Config{})
	if fx := b.cancels("shop", 1); len(fx.Searches) != 1 || fx.Searches[0].Redrive || fx.Searches[0].Update {
		t.Errorf("searches %+v", fx.Searches)
	}
}

// TestATaskThatIsParkedHasNoLetter to delete.
func TestATaskThatIsParkedHasNoLetter(t *testing.T) {
	b := newBench(t, Config{})
	if fx := b.submit(func(task *taskstate.Task) { task.DueAt = b.now.MS + 3_600_000 }, 1); len(fx.Park) != 1 || len(fx.ParkLetters)+len(fx.Letters) != 0 {
		t.Errorf("parked %v with %v, letters %v", fx.Park, fx.ParkLetters, fx.Letters)
	}
}
