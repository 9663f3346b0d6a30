package yard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard/coded"
	"github.com/yardmaster-io/yardmaster/contracts/yard/internal/signs"
)

// engine is what a session needs of the engine; Client is the real one. Calls
// are single tries: the session knows better when to repeat.
type engine interface {
	poll(ctx context.Context, req *yardv1.PollRequest) (*yardv1.PollResponse, error)
	// outcomeOnce sends a complete, a fail or a heartbeat, which is answered by n verdicts.
	outcomeOnce(ctx context.Context, endpoint string, req codec.Message, n int) ([]*yardv1.Verdict, error)
	// alive sends a sign of life; errNoSigns if it may not.
	alive(sign *yardv1.WorkerAlive) error
	// cancels calls heard with the ids of tasks that were cancelled while they ran, until stop is called.
	cancels(heard func(taskIDs []string)) (stop func())
	// connClosed reports whether the connection is closed for good.
	connClosed() bool
}

const (
	// pollLoops is how many polls may be under way of a worker with one tasklist. The second one picks up slots
	// that come free while the first waits with fewer. Of several tasklists each has one.
	pollLoops = 2
	// flushTimeout bounds the sending of the last outcomes.
	flushTimeout = 10 * time.Second
	// outcomeLifetime bounds the repeats of an outcome of an attempt without deadline.
	outcomeLifetime = 5 * time.Minute
	// outcomeGrace is how long past the attempt's deadline an outcome is repeated that has no verdict. While the
	// engine's log stands still attempts do not end, and afterwards their workers have time to be heard.
	outcomeGrace = time.Minute
)

// activeAttempt is an attempt that this worker has: granted, and not yet finished.
type activeAttempt struct {
	Attempt
	traceparent string
	beats       *beater
	content     coded.Codec
	// expires is when repeating its outcome becomes pointless.
	expires time.Time
	// cancel ends the handler's context, until moves its deadline; nil = it has none. Set before the first heartbeat of the attempt.
	cancel context.CancelCauseFunc
	until  *until
	// pulse is the attempt's part of the heartbeats, guarded by the beater.
	pulse pulse
}

// session is one Run of a worker.
type session struct {
	worker *Worker
	engine engine
	log    *slog.Logger
	tracer trace.Tracer
	// spanOptions are those of every span; made once, since a no-op tracer must cost nothing.
	spanOptions []trace.SpanStartOption
	// types are those that are asked for; none = all.
	types    []string
	handlers map[string]*handler
	rest     *handler
	slots    *slots
	dealer   *dealer
	complete *reporter
	fail     *reporter
	beats    *beater
	signs    *signs.Signs
	drained  drainState
	// stopPolls ends the polls; then the session ends.
	stopPolls context.CancelFunc
	// handlerCtx is the parent of all handlers' contexts; stopHandlers ends it.
	handlerCtx   context.Context
	stopHandlers context.CancelCauseFunc
}

func newSession(w *Worker, e engine) *session {
	s := &session{
		worker: w, engine: e,
		log:         w.cfg.log.With("tasklist", strings.Join(w.tasklists, ","), "worker", w.cfg.identity),
		tracer:      w.client.providers.Tracer(tracerName),
		spanOptions: []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer)},
		handlers:    make(map[string]*handler, len(w.handlers)),
		slots:       newSlots(w.cfg.concurrency),
	}
	s.dealer = newDealer(w, s.slots)
	for name, handle := range w.handlers {
		s.handlers[name] = &handler{run: wrap(handle.run, w.cfg.middleware), classifiers: handle.classifiers}
	}
	if w.rest != nil {
		s.rest = &handler{run: wrap(w.rest.run, w.cfg.middleware), classifiers: w.rest.classifiers}
	} else {
		s.types = slices.Sorted(maps.Keys(w.handlers))
	}
	s.signs = newSigns(w)
	s.beats = newBeater(s.log, func(ctx context.Context, beats []*yardv1.Beat) ([]*yardv1.Verdict, error) {
		return e.outcomeOnce(ctx, "tasks.heartbeat", &yardv1.HeartbeatRequest{Tasks: beats}, len(beats))
	})
	s.complete = newReporter(s.log, s.finished, func(ctx context.Context, batch []outcome) ([]*yardv1.Verdict, error) {
		tasks := each(batch, func(o outcome) *yardv1.Completion { return o.completion })
		return e.outcomeOnce(ctx, "tasks.complete", &yardv1.CompleteRequest{Tasks: tasks}, len(tasks))
	})
	s.fail = newReporter(s.log, s.finished, func(ctx context.Context, batch []outcome) ([]*yardv1.Verdict, error) {
		tasks := each(batch, func(o outcome) *yardv1.Failure { return o.failure })
		return e.outcomeOnce(ctx, "tasks.fail", &yardv1.FailRequest{Tasks: tasks}, len(tasks))
	})
	return s
}

// run lists the parts: beats and outcomes outlive the polls and the handlers,
// whose last words they carry.
func (s *session) run(ctx context.Context) error {
	lasting, end := context.WithCancel(context.WithoutCancel(ctx))
	s.handlerCtx, s.stopHandlers = context.WithCancelCause(context.WithoutCancel(ctx))
	defer s.stopHandlers(ErrStopping)

	var carriers, pollers sync.WaitGroup
	if s.signs.ID() != "" {
		_ = s.sendSign(false) // before the first poll names it
	}
	carriers.Go(func() { s.live(lasting) })
	carriers.Go(func() { s.beats.run(lasting) })
	carriers.Go(func() { s.complete.run(lasting) })
	carriers.Go(func() { s.fail.run(lasting) })

	defer s.engine.cancels(s.beats.hear)()
	polling, stopPolling := context.WithCancel(ctx)
	defer stopPolling()
	s.stopPolls = stopPolling
	carriers.Go(func() { s.askWhetherDrained(polling) })
	loops := s.pollers()
	if len(s.worker.tasklists) > 1 {
		carriers.Go(func() { s.dealer.run(polling) })
	}
	errs := make(chan error, len(loops))
	for _, p := range loops {
		pollers.Go(func() {
			errs <- p.run(polling)
			stopPolling() // one loop ends for good only where all must
		})
	}
	pollers.Wait()
	var err error
	for range loops {
		if e := <-errs; e != nil {
			err = e
		}
	}
	if stopped := s.drained.stopped(); stopped != nil {
		err = errors.Join(stopped, err)
	}
	left := s.drain()
	end()
	carriers.Wait()
	if left == nil && s.signs.ID() != "" {
		_ = s.sendSign(true) // what it left behind would be taken back all the sooner without it
	}
	return errors.Join(err, left)
}

// drain lets handlers finish, ends those that do not, and flushes the outcomes.
// It returns what is left, or nil.
func (s *session) drain() error {
	background := context.Background()
	finish, cancel := context.WithTimeout(background, s.worker.cfg.drainTimeout)
	s.slots.idle(finish)
	cancel()

	s.stopHandlers(ErrStopping)
	grace, cancel := context.WithTimeout(background, s.worker.cfg.stopGrace)
	s.slots.idle(grace)
	cancel()

	if !s.engine.connClosed() {
		flush, cancel := context.WithTimeout(background, flushTimeout)
		s.slots.allReported(flush)
		cancel()
	}
	if running, unreported := s.slots.left(); running+unreported > 0 {
		return &DrainError{Running: running, Unreported: unreported}
	}
	return nil
}

// start runs a granted task; its slot is reserved.
func (s *session) start(t *yardv1.PolledTask) {
	h := s.hold(t)
	handle, ok := s.handlers[h.Type]
	if !ok {
		handle = s.rest
	}
	if handle == nil {
		s.log.Error("the engine sent a task of a type that was not asked for", "task_id", h.TaskID, "type", h.Type)
		s.slots.cancel(1)
		s.reportFailure(h, handBack(&h.Attempt, "no handler for this type"))
		return
	}
	s.slots.start()
	s.signs.Begin(func() error { return s.sendSign(false) })
	ctx, cancel := context.WithCancelCause(context.WithValue(s.handlerCtx, attemptKey{}, h))
	h.cancel = cancel
	if !h.Deadline.IsZero() {
		h.until = newUntil(ctx, h.Deadline)
		ctx = h.until
	}
	s.beats.add(h)
	go s.execute(ctx, h, handle)
}

func (s *session) hold(t *yardv1.PolledTask) *activeAttempt {
	h := &activeAttempt{Attempt: newAttempt(s.worker.client.domain, t), traceparent: t.Traceparent, beats: s.beats, content: s.worker.client.content}
	if h.expires = h.Deadline.Add(outcomeGrace); h.Deadline.IsZero() {
		h.expires = time.Now().Add(outcomeLifetime)
	}
	return h
}

// returnUnstarted hands tasks back that came when the worker was stopping, or
// beyond what was asked for.
func (s *session) returnUnstarted(tasks []*yardv1.PolledTask) {
	for _, t := range tasks {
		h := s.hold(t)
		s.reportFailure(h, handBack(&h.Attempt, "the worker was stopping"))
	}
}

// errExited is the outcome of a handler that called runtime.Goexit, as a test's
// FailNow does.
var errExited = typedError{errors.New("the handler ended its goroutine"), TypePanic}

// execute runs the handler and reports what it returned.
func (s *session) execute(ctx context.Context, h *activeAttempt, handle *handler) {
	ctx, span := s.startRun(ctx, h.traceparent, &h.Attempt)
	began := time.Now()
	var result Payload
	var stored *yardv1.Payload
	var err error = errExited // stands where the handler neither returns nor panics
	defer func() {
		if value := recover(); value != nil {
			err = s.panicked(h, value)
		}
		if err == nil {
			var bad error
			if stored, bad = result.stored(h.content, payloadBytesMax); bad != nil {
				err = badResult(bad)
			}
		}
		cause := context.Cause(ctx)
		err = s.legible(h, s.classify(h, handle.classifiers, cause, s.legible(h, err)))
		if cause == context.DeadlineExceeded {
			err = s.tookTooLong(h, time.Since(began), err)
		}
		endRun(span, err, h.content)
		if h.until != nil {
			deadline, _ := h.until.Deadline()
			h.expires = deadline.Add(outcomeGrace)
		}
		s.conclude(h, cause, stored, err)
		if h.until != nil {
			h.until.stop()
		}
		h.cancel(nil)
		s.slots.finish()
	}()
	if coded.IsEncoded(h.Payload.Data) {
		err = typedError{errors.New("the payload is encoded, and this worker has no codec that decodes it"), TypeBadInput}
		return
	}
	result, err = handle.run(ctx, &h.Attempt)
}

// tookTooLong says in the log, and in the error that a handler returned, that its attempt had no more time, and how to give it more.
func (s *session) tookTooLong(h *activeAttempt, ran time.Duration, err error) error {
	s.log.Warn("an attempt had no more time (start_to_close) and counts as failed: raise StartToClose of the task or its type",
		"task_id", h.TaskID, "type", h.Type, "attempt", h.Number, "duration", ran, "error", err)
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: the attempt had no more time after %v: raise StartToClose of the task or its type", err, ran.Round(time.Millisecond))
}

// panicked is the error of a handler that panicked.
func (s *session) panicked(h *activeAttempt, value any) error {
	p := newHandlerPanic(value)
	s.log.Error("a handler panicked", "task_id", h.TaskID, "type", h.Type, "panic", value, "stack", string(p.stack))
	return p
}

// legible is err if it can be reported, else the panic of the one who tried: the methods of an error are the handler's
// code too, and that of a nil pointer, which is an error that is not nil, often panics.
func (s *session) legible(h *activeAttempt, err error) (legible error) {
	defer func() {
		if value := recover(); value != nil {
			legible = s.panicked(h, value)
		}
	}()
	if err != nil {
		failureOf(&h.Attempt, err)
	}
	return err
}

// conclude turns what the handler returned into an outcome. cause is why its
// context ended, nil where it had not.
func (s *session) conclude(h *activeAttempt, cause error, result *yardv1.Payload, err error) {
	switch {
	case cause == ErrLostAttempt:
		s.beats.remove(h)
		s.log.Debug("the outcome of a lost attempt is dropped", "task_id", h.TaskID, "error", err)
	case err == nil:
		s.slots.expectOutcome()
		completion := &yardv1.Completion{TaskId: h.TaskID, Token: h.token, Result: result}
		s.complete.add(outcome{attempt: h, completion: completion, size: completion.SizeVT()})
	case cause == ErrStopping:
		s.reportFailure(h, handBack(&h.Attempt, "the worker stopped before the handler was done"))
	case cause == ErrCancelled:
		s.reportFailure(h, failureOf(&h.Attempt, NonRetryable(typedError{err, TypeCancelled})))
	default:
		s.log.Debug("an attempt did not complete its task", "task_id", h.TaskID, "type", h.Type, "attempt", h.Number, "error", err)
		s.reportFailure(h, failureOf(&h.Attempt, err))
	}
}

func (s *session) reportFailure(h *activeAttempt, f *yardv1.Failure) {
	s.slots.expectOutcome()
	s.fail.add(outcome{attempt: h, failure: f, size: f.SizeVT()})
}

// finished is called when outcomes need no more work.
func (s *session) finished(batch []outcome) {
	for i := range batch {
		s.beats.remove(batch[i].attempt)
	}
	s.slots.reported(len(batch))
}
