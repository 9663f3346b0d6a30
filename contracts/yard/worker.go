package yard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Defaults and limits of a worker.
const (
	concurrencyDefault  = 10
	concurrencyMax      = 100_000
	pollWaitDefault     = 5 * time.Second
	pollWaitMin         = 100 * time.Millisecond // below it an idle worker would be busy asking
	pollWaitMax         = 60 * time.Second
	drainTimeoutDefault = 30 * time.Second
	stopGraceDefault    = 2 * time.Second
	typesMax            = 100
	tasklistsMax        = 100
	weightMax           = 1000
)

// Worker runs the tasks of one tasklist, or of several. See the package's documentation for
// its life.
type Worker struct {
	client *Client
	// tasklists are without repeats, the one of NewWorker first.
	tasklists []string
	cfg       workerConfig
	handlers  map[string]*handler
	// rest handles the types that have no handler; nil if these are not polled.
	rest     *handler
	problems []error
	started  atomic.Bool
}

type workerConfig struct {
	concurrency  int
	pollWait     time.Duration
	drainTimeout time.Duration
	stopGrace    time.Duration
	identity     string
	version      string
	signs        time.Duration
	log          *slog.Logger
	middleware   []Middleware
	classifiers  []Classifier
	tasklists    []string
	// weights are those that are not 1.
	weights map[string]int
}

// WorkerOption changes a worker's defaults.
type WorkerOption func(*workerConfig)

// WithConcurrency sets how many handlers run at once, 1..100000. Default 10.
func WithConcurrency(n int) WorkerOption { return func(c *workerConfig) { c.concurrency = n } }

// WithPollWait sets how long a poll stays open without work, 100 ms to 60 s. Default
// 5 s. If a matching process is killed, its waiting polls are lost without an
// answer: the worker polls again after this time and 3 s more.
func WithPollWait(d time.Duration) WorkerOption { return func(c *workerConfig) { c.pollWait = d } }

// WithDrainTimeout sets how long running handlers may continue after Run's context has
// ended, before their own contexts end. Default 30 s.
func WithDrainTimeout(d time.Duration) WorkerOption {
	return func(c *workerConfig) { c.drainTimeout = d }
}

// WithStopGrace sets how long handlers may take to return once the drain timeout is over and
// their contexts have ended. Default 2 s.
func WithStopGrace(d time.Duration) WorkerOption { return func(c *workerConfig) { c.stopGrace = d } }

// WithIdentity names the worker for people, at most 128 bytes. Default: host name
// and process id.
func WithIdentity(name string) WorkerOption { return func(c *workerConfig) { c.identity = name } }

// WithVersion says what the worker's program is, for people who look at the pollers of a tasklist; at most 64 bytes. Default: the commit
// that the program was built from, or else its module's version.
func WithVersion(v string) WorkerOption { return func(c *workerConfig) { c.version = v } }

// WithLogger sets the logger for panics and for problems with the engine.
// Failures of handlers go to the engine, and are logged at debug level only.
// Default: slog.Default().
func WithLogger(log *slog.Logger) WorkerOption { return func(c *workerConfig) { c.log = log } }

// WithTasklists lets the worker run the tasks of more tasklists, 100 at most in all. Each is polled on its own, and they share the worker's
// concurrency. Tasklists that have work start tasks in the ratio of their weights, which are 1 without WithWeights. A tasklist without work
// holds one slot. If slots are short and more than an eighth of them would be held so, the tasklists without work poll in turn, for 100 ms
// each, and use an eighth together. So give the worker eight slots per tasklist if a task must not wait for that. Default:
// none.
func WithTasklists(more ...string) WorkerOption {
	return func(c *workerConfig) { c.tasklists = append(c.tasklists, more...) }
}

// WithWeights gives tasklists of the worker weights, 1 to 1000: while several have work, tasks are started in the ratio of their weights.
// Tasklists that it names are the worker's, as by WithTasklists; the others have weight 1.
func WithWeights(weights map[string]int) WorkerOption {
	return func(c *workerConfig) {
		if c.weights == nil {
			c.weights = map[string]int{}
		}
		maps.Copy(c.weights, weights)
	}
}

// WithMiddleware wraps every handler of the worker; of several the first is the outermost.
func WithMiddleware(m ...Middleware) WorkerOption {
	return func(c *workerConfig) { c.middleware = append(c.middleware, m...) }
}

// NewWorker makes a worker of a tasklist. Give it handlers, then Run it. Run returns
// an error of its options.
func NewWorker(c *Client, tasklist string, opts ...WorkerOption) *Worker {
	cfg := workerConfig{
		concurrency: concurrencyDefault, pollWait: pollWaitDefault,
		drainTimeout: drainTimeoutDefault, stopGrace: stopGraceDefault, identity: defaultIdentity(),
		version: defaultVersion(), signs: signsDefault, log: slog.Default(),
	}
	for _, opt := range opts {
		opt(&cfg)
	}
	w := &Worker{client: c, tasklists: append([]string{tasklist}, cfg.tasklists...), cfg: cfg, handlers: map[string]*handler{}}
	for _, name := range slices.Sorted(maps.Keys(cfg.weights)) {
		if !slices.Contains(w.tasklists, name) {
			w.tasklists = append(w.tasklists, name)
		}
	}
	w.checkTasklists()
	w.checkOptions()
	return w
}

// want notes a problem, which is an error of Run, unless all is well. It returns ok.
func (w *Worker) want(ok bool, problem string, args ...any) bool {
	if !ok {
		w.problems = append(w.problems, fmt.Errorf(problem, args...))
	}
	return ok
}

func (w *Worker) checkTasklists() {
	for i, tasklist := range w.tasklists {
		err := ids.CheckName(tasklist)
		w.want(err == nil, "tasklist %q %w", tasklist, err)
		w.want(!slices.Contains(w.tasklists[:i], tasklist), "tasklist %q is named twice", tasklist)
	}
	w.want(len(w.tasklists) <= tasklistsMax, "it has %d tasklists, more than %d", len(w.tasklists), tasklistsMax)
	for _, name := range slices.Sorted(maps.Keys(w.cfg.weights)) {
		weight := w.cfg.weights[name]
		w.want(weight >= 1 && weight <= weightMax, "weight %d of tasklist %q is not in 1..%d", weight, name, weightMax)
	}
}

func (w *Worker) checkOptions() {
	c := &w.cfg
	w.want(c.concurrency >= 1 && c.concurrency <= concurrencyMax, "concurrency %d is not in 1..%d", c.concurrency, concurrencyMax)
	w.want(c.pollWait >= pollWaitMin && c.pollWait <= pollWaitMax, "poll wait %v is not in %v..%v", c.pollWait, pollWaitMin, pollWaitMax)
	w.want(c.drainTimeout >= 0, "drain timeout %v is negative", c.drainTimeout)
	w.want(c.stopGrace >= 0, "stop grace %v is negative", c.stopGrace)
	w.want(len(c.identity) <= workerBytesMax, "identity has %d bytes, more than %d", len(c.identity), workerBytesMax)
	w.want(len(c.version) <= versionBytesMax, "version has %d bytes, more than %d", len(c.version), versionBytesMax)
	w.want(c.signs == 0 || c.signs >= signsMin && c.signs <= signsMax, "signs of life every %v are not in %v..%v", c.signs, signsMin, signsMax)
	w.want(c.log != nil, "the logger is nil")
	w.want(!slices.ContainsFunc(c.middleware, func(m Middleware) bool { return m == nil }), "a middleware is nil")
	w.want(!slices.ContainsFunc(c.classifiers, func(f Classifier) bool { return f == nil }), "a classifier is nil")
}

func defaultIdentity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return clip(fmt.Sprintf("%s-%d", host, os.Getpid()), workerBytesMax)
}

// Run polls and runs tasks until ctx ends, then drains and returns nil, or a
// *DrainError if something was left. If an operator stops the worker it drains too, and returns a *StoppedError, joined with a *DrainError if
// something was left. It returns INVALID_ARGUMENT at once if the
// worker's options or handlers are invalid, FAILED_PRECONDITION if it was run before,
// and UNAVAILABLE if the connection is closed for good. After any other error it
// tries again.
func (w *Worker) Run(ctx context.Context) error {
	if problems := w.check(); len(problems) > 0 {
		return fault.New(fault.InvalidArgument, "worker of %s: %v", strings.Join(w.tasklists, ", "), errors.Join(problems...))
	}
	if w.started.Swap(true) {
		return fault.New(fault.FailedPrecondition, "a worker runs only once")
	}
	return newSession(w, w.client).run(ctx)
}

func (w *Worker) check() []error {
	problems := w.problems
	if w.client == nil {
		problems = append(problems, errors.New("it has no client"))
	}
	if len(w.handlers) == 0 && w.rest == nil {
		problems = append(problems, errors.New("it has no handlers"))
	}
	if len(w.handlers) > typesMax {
		problems = append(problems, fmt.Errorf("it has %d handlers, more than %d", len(w.handlers), typesMax))
	}
	return problems
}

// DrainError says what a worker left behind when it stopped. The engine takes
// the tasks back when the attempts' heartbeats or deadlines run out.
type DrainError struct {
	// Running is how many handlers did not return after their contexts ended.
	Running int
	// Unreported is how many outcomes the engine did not confirm.
	Unreported int
}

// Error implements error.
func (e *DrainError) Error() string {
	return fmt.Sprintf("the worker stopped with %d handlers still running and %d outcomes unconfirmed", e.Running, e.Unreported)
}
