package taskstate

// Order is the order key of a task: tasks of one domain and key run one at a time, in the order of their places in the log. It is not
// changed any more: copies of a task share it.
type Order struct {
	Key string
	// Index is the task's place in the message of its submit, from 0.
	Index uint32
	// Turn: its owner knows that every task of the key with an earlier place has ended, or an attempt of it has begun, which proves
	// that. The log's decisions do not depend on it.
	Turn bool
	// Blocks: where the task would be dead, it blocks its key instead. Blocked: it does.
	Blocks, Blocked bool
}

// withOrder is x with another order key, o. Both lie in one piece of memory, since each task with a key gets it twice.
func (x *Extra) withOrder(o *Order) *Extra {
	own := &struct {
		Extra
		order Order
	}{*x, *o}
	own.Order = &own.order
	return &own.Extra
}

// Order is the order key of t; nil = none.
func (t *Task) Order() *Order { return t.Extra.orNothing().Order }

// OrderKey is the order key of t; "" = none.
func (t *Task) OrderKey() string {
	if o := t.Order(); o != nil {
		return o.Key
	}
	return ""
}

// AwaitsTurn tells whether it is not known so far that it is the turn of t.
func (t *Task) AwaitsTurn() bool {
	o := t.Order()
	return o != nil && !o.Turn
}

// HasOrder tells whether t has an order key, "" = any or none, and blocks it, if that is asked for.
func (t *Task) HasOrder(key string, blocked bool) bool {
	if key == "" && !blocked {
		return true
	}
	o := t.Order()
	return o != nil && (key == "" || o.Key == key) && (!blocked || t.State.Active() && o.Blocked)
}

// TakeTurn notes that it is the turn of t.
func (t *Task) TakeTurn() {
	if !t.AwaitsTurn() {
		return
	}
	o := *t.Extra.Order
	o.Turn = true
	t.Extra = t.Extra.withOrder(&o)
}

// HeldUp tells whether t must not be granted: it is not its turn, or it blocks its key.
func (t *Task) HeldUp() bool {
	o := t.Order()
	return o != nil && (!o.Turn || o.Blocked)
}

// blocks tells whether t blocks its key where it would be dead.
func (t *Task) blocks() bool {
	o := t.Order()
	return o != nil && o.Blocks
}

// block lets t, which would be dead for a reason, wait until it is cancelled or gets another attempt.
func (t *Task) block(reason string, now int64) {
	t.setBlocked(true)
	t.step(Step{Kind: StepBlocked, At: now, Message: reason, ErrType: t.ErrType})
	t.State, t.DueAt, t.ReadyAt = Backoff, 0, now
	t.Lost = min(t.Lost, 1)
}

func (t *Task) setBlocked(blocked bool) {
	o := *t.Extra.Order
	o.Blocked = blocked
	t.Extra = t.Extra.withOrder(&o)
}

// freeKey gives t, whose time was changed, another attempt.
func (t *Task) freeKey() {
	if o := t.Order(); o != nil && o.Blocked {
		t.setBlocked(false)
	}
}
