package taskstate

// Extra is what few tasks have. Copies of a task share it: what changes it once the submit is read makes another one.
type Extra struct {
	// Headers are by name, ascending.
	Headers []Header
	Expiry  Expiry
	// Group is its group; "" = none.
	Group string
	// Cost is how many starts of a rate each attempt uses; 0 = 1.
	Cost int32
	// Unique is its unique key; nil = none.
	Unique *Unique
	// Updates is what its updates have left; nil = there was none.
	Updates *Updates
	// Redriven is what its redrives have left; nil = there was none.
	Redriven *Redriven
	// Order is its order key; nil = none.
	Order *Order
	// Batch is the batch that it is a member of; nil = none.
	Batch *Batch
}

// nothing is what most tasks have.
var nothing Extra

// orNothing is x, to read; also of a task that has none.
func (x *Extra) orNothing() *Extra {
	if x == nil {
		return &nothing
	}
	return x
}

// Unique is what the log says about the unique key of a task.
type Unique struct {
	Key string
	// ForMS is how long after the task's end the key stays taken.
	ForMS int64
	// Seq is the key's message in the log; until the submit is read, Before is how many messages before that it lies.
	Seq    uint64
	Before uint32
}

// LiesAt is x of a submit that was read at a sequence of the log, as the i-th task there: where the word on its unique key lies is known
// then, and its place among the tasks of its order key.
func (x *Extra) LiesAt(seq uint64, i int) *Extra {
	if x == nil || (x.Unique == nil || x.Unique.Before == 0) && x.Order == nil {
		return x
	}
	var own *Extra
	if o := x.Order; o != nil {
		own = x.withOrder(&Order{Key: o.Key, Index: uint32(i), Blocks: o.Blocks})
	} else {
		own = new(*x)
	}
	if x.Unique != nil && x.Unique.Before > 0 {
		key := *x.Unique
		key.Seq, key.Before = seq-uint64(key.Before), 0
		own.Unique = &key
	}
	return own
}

// Header is a text that goes with a task; the engine only compares it.
type Header struct{ Name, Value string }

// HeaderList are the headers of t, by name.
func (t *Task) HeaderList() []Header { return t.Extra.orNothing().Headers }

// Group is the group of t; "" = none.
func (t *Task) Group() string { return t.Extra.orNothing().Group }

// Cost is how many starts of a rate each attempt of t uses; 0 = 1.
func (t *Task) Cost() int32 { return t.Extra.orNothing().Cost }

// Batch is a batch of tasks. It is not changed any more: copies of a task share it.
type Batch struct {
	ID string
	// Made is when it was created, Unix ms: another one may have its name later.
	Made int64
}

// Batch is the batch that t is a member of; nil = none.
func (t *Task) Batch() *Batch { return t.Extra.orNothing().Batch }

// BatchID is the name of that; "" = none.
func (t *Task) BatchID() string {
	if b := t.Batch(); b != nil {
		return b.ID
	}
	return ""
}

// Unique is the unique key of t; nil = none.
func (t *Task) Unique() *Unique { return t.Extra.orNothing().Unique }

// HasHeaders tells whether t has each of these headers with exactly this value.
func (t *Task) HasHeaders(want map[string]string) bool {
	found := 0
	for _, h := range t.HeaderList() {
		if value, wanted := want[h.Name]; wanted && value == h.Value {
			found++
		}
	}
	return found == len(want)
}
