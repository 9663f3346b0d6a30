package taskstate

// Header is a text that goes with a task; the engine only compares it.
type Header struct{ Name, Value string }

// HeaderList are the headers of t, by name.
func (t *Task) HeaderList() []Header {
	if t.Headers == nil {
		return nil
	}
	return *t.Headers
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
