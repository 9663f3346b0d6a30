package chaos_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

const (
	// far is the delay of a task that runs only once it is updated.
	far = time.Hour
	// soonest and latest are delays of others, and waits of those that are put off.
	soonest, latest = 50 * time.Millisecond, 2 * time.Second
	// firstTry is less than how long the SDK waits for its first answer.
	firstTry = 4 * time.Second
	// uniqueFor is for how long some unique keys are kept.
	uniqueFor = 300 * time.Millisecond
)

// lifeInput is the payload of a task: which it is, and which update made it.
type lifeInput struct {
	N int `json:"n"`
	V int `json:"v"`
}

func (in lifeInput) String() string { return fmt.Sprintf("%d.%d", in.N, in.V) }

// lifeTask is one task as its submitter knows it. The workers do with it as it says.
type lifeTask struct {
	n        int
	typ      string
	priority int
	delay    time.Duration
	// startWithin lets it expire.
	startWithin time.Duration
	order       string
	blocks      bool
	unique      string
	uniqueFor   time.Duration
	conflict    yardv1.OnConflict
	takes       time.Duration
	// batch is the one that it is a member of. late: it was submitted behind the close.
	batch *lifeBatch
	late  bool
	// deaths, fails, snoozes and sleeps are how many of its attempts end so, at most.
	deaths, fails, snoozes, sleeps int

	fate            fate
	id              string
	outcome         yard.SubmitOutcome
	asked, answered time.Time
	// tries is how often its request was sent by hand; 0: by the SDK.
	tries int32
}

// repeated tells whether more than one try of its request may have been under way. Each is decided by itself where the unique key of a task is another's (decision 0040),
// so what one is answered with may be overtaken: it is created after all once the key is free, or replaces another task as well.
func (o *lifeTask) repeated() bool {
	return o.unique != "" && (o.fate == unsure || o.tries > 1 || o.tries == 0 && o.answered.Sub(o.asked) >= firstTry)
}

// lifeItem is what is known of an id.
type lifeItem struct {
	id string
	// task is the one that it was created for; nil if only a submit that found its key taken, or a worker, has named it.
	task    *lifeTask
	writes  []*lifeWrite
	cancels []*lifeCancel
	// saidOver is when it was said first that it has ended; zero: it never was.
	saidOver time.Time
	// revision is the last one that was confirmed.
	revision int64
	version  int
}

// lifeWrite is something that gave a task its input.
type lifeWrite struct {
	value           lifeInput
	asked, answered time.Time
	// sure: it was confirmed. refused: it was not made. One that is neither may have been made, and may be made later.
	sure, refused bool
	revision      int64
}

// lifeCancel is a cancel that was confirmed, or may have been made.
type lifeCancel struct {
	asked, answered time.Time
	sure, ran       bool
}

// lifeRun is one run of a handler.
type lifeRun struct {
	value        lifeInput
	id           string
	grant        int
	began, ended time.Time
	result       string
	succeeded    bool
}

// lives is how long tasks run, and what else most have in common.
func (l *life) lives(dice *rand.Rand) *lifeTask {
	return &lifeTask{typ: [...]string{plainLife, plainLife, beatingLife}[dice.IntN(3)], priority: 1 + dice.IntN(5), takes: 2*time.Millisecond + upTo(dice, 20*time.Millisecond)}
}

// anyLife has something become of one task out of three.
func (l *life) anyLife(dice *rand.Rand) *lifeTask {
	o := l.lives(dice)
	switch n := dice.IntN(100); {
	case n < 8:
		o.fails = 1 + dice.IntN(2)
	case n < 14:
		o.snoozes = 1
	case n < 16:
		o.typ, o.sleeps = slowLife, 1
	case n < 21:
		o.delay = soonest + upTo(dice, latest)
	case n < 25:
		o.deaths = 1 + dice.IntN(2)
	case n < 26:
		o.typ, o.deaths = goneLife, 1000
	case n < 30:
		o.delay = far
	case n < 32:
		o.startWithin = 100*time.Millisecond + upTo(dice, latest)
	}
	return o
}

// orderedLife is one with an order key.
func (l *life) orderedLife(dice *rand.Rand, key string) *lifeTask {
	o := l.lives(dice)
	o.order, o.blocks = key, dice.IntN(3) == 0
	switch n := dice.IntN(100); {
	case n < 8:
		o.fails = 1
	case n < 12:
		o.snoozes = 1
	case n < 14:
		o.typ, o.sleeps = slowLife, 1
	case n < 18:
		o.delay = soonest + upTo(dice, latest/2)
	case n < 24:
		o.deaths = 1
	case n < 25:
		o.startWithin = 100*time.Millisecond + upTo(dice, latest)
	}
	return o
}

// uniqueLife is one with a unique key.
func (l *life) uniqueLife(dice *rand.Rand, key string) *lifeTask {
	o := l.lives(dice)
	o.unique, o.conflict = key, yardv1.OnConflict(dice.IntN(3))
	if dice.IntN(5) == 0 {
		o.uniqueFor = uniqueFor
	}
	if o.typ = plainLife; dice.IntN(3) == 0 { // a replacement must have the same type
		o.delay = soonest + upTo(dice, latest/2)
	}
	switch n := dice.IntN(100); {
	case n < 6:
		o.fails = 1
	case n < 10:
		o.snoozes = 1
	case n < 14:
		o.deaths = 1
	}
	return o
}

func (o *lifeTask) input() lifeInput { return lifeInput{N: o.n} }

// task is o for the SDK.
func (o *lifeTask) task() yard.Task {
	t := yard.Task{Type: o.typ, Tasklist: tasklist, Priority: o.priority, Delay: o.delay, StartWithin: o.startWithin, OrderKey: o.order, BlocksKey: o.blocks, Payload: o.input()}
	if o.batch != nil {
		t.Batch = o.batch.id
	}
	if o.unique != "" {
		t.Unique = &yard.Unique{
			Key: o.unique, For: o.uniqueFor,
			Reject: o.conflict == yardv1.OnConflict_ON_CONFLICT_REJECT, Replace: o.conflict == yardv1.OnConflict_ON_CONFLICT_REPLACE,
		}
	}
	return t
}

// wire is o for a client of its own.
func (o *lifeTask) wire() *yardv1.NewTask {
	data, _ := json.Marshal(o.input()) // two numbers
	t := &yardv1.NewTask{
		Type: o.typ, Tasklist: tasklist, Priority: int32(o.priority), DelayMs: o.delay.Milliseconds(), StartWithinMs: o.startWithin.Milliseconds(), OrderKey: o.order,
		Payload: &yardv1.Payload{Data: data}, UniqueKey: o.unique, UniqueForMs: o.uniqueFor.Milliseconds(), OnConflict: o.conflict,
	}
	if o.batch != nil {
		t.BatchId = o.batch.id
	}
	if o.blocks {
		t.OrderPolicy = yardv1.OrderPolicy_ORDER_POLICY_BLOCK
	}
	return t
}
