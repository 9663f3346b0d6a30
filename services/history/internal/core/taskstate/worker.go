package taskstate

// Worker is who runs an attempt. It is not changed once it is made, and shared by attempts; nil = not known.
type Worker struct {
	// name is for people, id that of its signs of life; empty = it sends none.
	name, id string
}

// NewWorker makes a worker; nil if nothing is known of it.
func NewWorker(name, id string) *Worker {
	if name == "" && id == "" {
		return nil
	}
	return &Worker{name, id}
}

// Name is its name; empty = it has none.
func (w *Worker) Name() string {
	if w == nil {
		return ""
	}
	return w.name
}

// ID is the id of its signs of life; empty = it sends none.
func (w *Worker) ID() string {
	if w == nil {
		return ""
	}
	return w.id
}

// String is for tests and logs.
func (w *Worker) String() string {
	if w.ID() == "" {
		return w.Name()
	}
	return w.Name() + "/" + w.ID()
}
