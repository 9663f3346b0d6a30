package yard

import (
	"context"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Attempt is one grant of a task to this worker. Do not change it.
type Attempt struct {
	TaskID   string
	Domain   string
	Tasklist string
	Type     string
	// Payload is the task's input.
	Payload Payload
	// Headers are those of the task, as submitted; nil = none.
	Headers map[string]string
	// Group is that of the task, as submitted; "" = none.
	Group string
	// Cost is how many starts of a rate it has used; 0 = 1.
	Cost int
	// Priority is 1 (most urgent) to 5.
	Priority int
	// Number is the number of this grant, from 1: one more each time the task is given to a worker, however the previous grant ended.
	Number int
	// Failures is how many attempts have failed so far.
	Failures int
	// MaxAttempts is how many failures make the task a dead letter.
	MaxAttempts int
	// CreatedAt is when the task was accepted.
	CreatedAt time.Time
	// Deadline is when the attempt must be over, as it was when it began; the handler's context ends at its deadline, which an
	// update of the task may move.
	Deadline time.Time
	// HeartbeatTimeout is the longest time between heartbeats; 0 = no limit. The worker sends them.
	HeartbeatTimeout time.Duration

	token string
}

func newAttempt(domain string, t *yardv1.PolledTask) Attempt {
	return Attempt{
		TaskID: t.TaskId, Domain: domain, Tasklist: t.Tasklist, Type: t.Type,
		Payload: payloadOf(t.Payload), Headers: t.Headers, Group: t.Group, Cost: int(t.Cost), Priority: int(t.Priority),
		Number: int(t.Attempt), Failures: int(t.Failures), MaxAttempts: int(t.MaxAttempts),
		CreatedAt:        time.UnixMilli(t.CreatedAtMs),
		Deadline:         time.Now().Add(time.Duration(t.TimeoutMs) * time.Millisecond),
		HeartbeatTimeout: time.Duration(t.HeartbeatTimeoutMs) * time.Millisecond,
		token:            t.Token,
	}
}

// Last reports whether the task becomes a dead letter if this attempt fails.
func (a *Attempt) Last() bool { return a.Failures+1 >= a.MaxAttempts }

// HandlerFunc runs one attempt. Its error becomes a failure (see NonRetryable and RetryAfter); a panic becomes a failure too. It must return soon
// after its context ends.
type HandlerFunc func(ctx context.Context, a *Attempt) (Payload, error)

// Middleware wraps handlers, for what all of them share. The first one given is the outermost.
type Middleware func(next HandlerFunc) HandlerFunc

type handlerConfig struct {
	middleware  []Middleware
	classifiers []Classifier
}

// handler is how the tasks of a type run, and who classifies their errors.
type handler struct {
	run         HandlerFunc
	classifiers []Classifier
}

// HandlerOption changes how one task type is handled.
type HandlerOption func(*handlerConfig)

// WithHandlerMiddleware wraps this handler only, inside the worker's own middleware.
func WithHandlerMiddleware(m ...Middleware) HandlerOption {
	return func(c *handlerConfig) { c.middleware = append(c.middleware, m...) }
}

// Handle registers a typed handler for a task type, to be called before Run. In is decoded as Payload.Decode does, Out encoded as NewPayload does; an
// Out of struct{} is no result. An invalid registration is an error of Run.
func Handle[In, Out any](w *Worker, taskType string, handle func(context.Context, In) (Out, error), opts ...HandlerOption) {
	if handle == nil {
		w.HandleFunc(taskType, nil, opts...)
		return
	}
	w.HandleFunc(taskType, func(ctx context.Context, a *Attempt) (Payload, error) {
		var in In
		if err := a.Payload.Decode(&in); err != nil {
			return Payload{}, NonRetryable(typedError{err, TypeBadInput})
		}
		out, err := handle(ctx, in)
		if err != nil {
			return Payload{}, err
		}
		if _, none := any(out).(struct{}); none {
			return Payload{}, nil
		}
		result, err := NewPayload(out)
		if err != nil {
			return Payload{}, badResult(err)
		}
		return result, nil
	}, opts...)
}

// HandleFunc is Handle without types, for handlers that read the payload themselves.
func (w *Worker) HandleFunc(taskType string, handle HandlerFunc, opts ...HandlerOption) {
	err := ids.CheckTypeName(taskType)
	w.want(err == nil, "task type %q %w", taskType, err)
	w.want(w.handlers[taskType] == nil, "task type %q has two handlers", taskType)
	if w.want(handle != nil, "task type %q has no handler function", taskType) {
		w.handlers[taskType] = w.handler(handle, opts)
	}
}

// HandleRest registers the handler for all types without one: the worker then polls
// for tasks of any type. An invalid registration is an error of Run.
func (w *Worker) HandleRest(handle HandlerFunc, opts ...HandlerOption) {
	if w.want(handle != nil && w.rest == nil, "the rest of the types wants one handler function") {
		w.rest = w.handler(handle, opts)
	}
}

// handler is handle with its options.
func (w *Worker) handler(handle HandlerFunc, opts []HandlerOption) *handler {
	var cfg handlerConfig
	for _, opt := range opts {
		opt(&cfg)
	}
	w.want(!slices.ContainsFunc(cfg.classifiers, func(c Classifier) bool { return c == nil }), "a classifier of a handler is nil")
	return &handler{run: wrap(handle, cfg.middleware), classifiers: cfg.classifiers}
}

func wrap(handle HandlerFunc, middleware []Middleware) HandlerFunc {
	for i := len(middleware) - 1; i >= 0; i-- {
		handle = middleware[i](handle)
	}
	return handle
}

func badResult(err error) error { return NonRetryable(typedError{err, TypeBadResult}) }

// attemptKey is the context key of the attempt that a handler runs.
type attemptKey struct{}

// Info returns the attempt that ctx, or the context it was made from, belongs to. Outside of a handler it returns a zero Attempt.
func Info(ctx context.Context) Attempt {
	if h, ok := ctx.Value(attemptKey{}).(*activeAttempt); ok {
		return h.Attempt
	}
	return Attempt{}
}

// Progress reports how far the attempt is; Get returns it while the attempt runs. v is encoded as NewPayload does, at most 4096 bytes. It is sent
// with the next heartbeat, within about a second; only the last of several is sent. The error is INVALID_ARGUMENT, or FAILED_PRECONDITION outside of
// a handler.
func Progress(ctx context.Context, v any) error {
	h, ok := ctx.Value(attemptKey{}).(*activeAttempt)
	if !ok {
		return fault.New(fault.FailedPrecondition, "progress is reported by a handler, with its own context")
	}
	p, err := NewPayload(v)
	if err != nil {
		return err
	}
	w, err := p.stored(h.content, progressBytesMax)
	if err != nil {
		return fault.New(fault.InvalidArgument, "progress: %s", fault.From(err).Message)
	}
	h.beats.progress(h, w)
	return nil
}
