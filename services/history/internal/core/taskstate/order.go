package taskstate

// Order is the order key of a task: tasks of one domain and key run one at a time, in the order of their places in the log. It is not
// changed any more: copies of a task share it.
type Order struct {
	Key string
	// Index is the task's place in the message of its submit, from 0.
	Index uint32
	// Turn: every task of the key with an earlier place has ended.
	Turn bool
}

// Order is the order key of t; nil = none.
func (t *Task) Order() *Order {
	if t.Extra == nil {
		return nil
	}
	return t.Extra.Order
}

// AwaitsTurn tells whether the log has not said so far that it is the turn of t.
func (t *Task) AwaitsTurn() bool {
	o := t.Order()
	return o != nil && !o.Turn
}

// turn notes that it is the turn of t. Its time in line begins: it could not run before.
func turn(t *Task, _ *Event, now int64) (Verdict, Effects) {
	if !t.AwaitsTurn() {
		return Verdict{}, Effects{}
	}
	o := *t.Extra.Order
	o.Turn = true
	t.extra().Order = &o
	if t.State != Ready {
		return Verdict{}, Effects{}
	}
	t.ReadyAt = max(t.ReadyAt, now)
	return Verdict{}, Effects{Trigger: true}
}
