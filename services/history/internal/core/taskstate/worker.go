package taskstate

// Worker is who runs an attempt. It is not changed once it is made, and shared by attempts; nil = not known.
type Worker struct {
	// name is for people, id that of its signs of life; empty = it sends none.
	name, id string
	// signsEvery is how often it gave signs when its attempt began, ms; 0 = none were heard.
	signsEvery int64
}

// NewWorker makes a worker that gives signs of life so often, ms, 0 = none are heard; nil if nothing is known of it.
func NewWorker(name, id string, signsEvery int64) *Worker {
	if name == "" && id == "" {
		return nil
	}
	return &Worker{name, id, signsEvery}
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

// SignsEvery is how often it gave signs of life when its attempt began, ms; 0 = none were heard.
func (w *Worker) SignsEvery() int64 {
	if w == nil {
		return 0
	}
	return w.signsEvery
}

// String is for tests and logs.
func (w *Worker) String() string {
	if w.ID() == "" {
		return w.Name()
	}
	return w.Name() + "/" + w.ID()
}
