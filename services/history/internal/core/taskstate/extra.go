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
	// Updates is what its updates have left; nil = there was none.
	Updates *Updates
}

// Header is a text that goes with a task; the engine only compares it.
type Header struct{ Name, Value string }

// HeaderList are the headers of t, by name.
func (t *Task) HeaderList() []Header {
	if t.Extra == nil {
		return nil
	}
	return t.Extra.Headers
}

// Group is the group of t; "" = none.
func (t *Task) Group() string {
	if t.Extra == nil {
		return ""
	}
	return t.Extra.Group
}

// Cost is how many starts of a rate each attempt of t uses; 0 = 1.
func (t *Task) Cost() int32 {
	if t.Extra == nil {
		return 0
	}
	return t.Extra.Cost
}

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
