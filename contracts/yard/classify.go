package yard

import (
	"context"
	"errors"
	"slices"
)

// Classifier decides what follows from a handler's error, for errors that are classified in one place rather than where they
// come up. It returns err as it is, or nil, if the retry policy decides, and err in NonRetryable or RetryAfter, or a Snooze, otherwise.
//
// It sees the errors that neither the handler nor a classifier before it has put into one of these or made a Snooze, panics too (of error type
// TypePanic), and not those of attempts that were cancelled, lost or handed back. A classifier that panics is logged, and the
// retry policy decides. Several attempts run it at once.
type Classifier func(a *Attempt, err error) error

// WithClassifier adds classifiers for the errors of all handlers of the worker. They are asked in order, after those of the
// handler. Default: none, so the retry policy decides about each error that is in neither NonRetryable nor RetryAfter.
func WithClassifier(c ...Classifier) WorkerOption {
	return func(cfg *workerConfig) { cfg.classifiers = append(cfg.classifiers, c...) }
}

// WithHandlerClassifier adds classifiers for the errors of this handler. They are asked in order, before those of the worker.
func WithHandlerClassifier(c ...Classifier) HandlerOption {
	return func(cfg *handlerConfig) { cfg.classifiers = append(cfg.classifiers, c...) }
}

// NonRetryableErrors is the classifier by which errors that match one of the targets, as errors.Is says, are not retried.
func NonRetryableErrors(targets ...error) Classifier {
	return func(_ *Attempt, err error) error {
		if slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) }) {
			return NonRetryable(err)
		}
		return err
	}
}

// NonRetryableTypes is the classifier by which errors of one of these error types, as ErrorType returns them, are not retried.
func NonRetryableTypes(names ...string) Classifier {
	return func(_ *Attempt, err error) error {
		if slices.Contains(names, ErrorType(err)) {
			return NonRetryable(err)
		}
		return err
	}
}

// decided reports whether err itself says what follows.
func decided(err error) bool {
	var final nonRetryable
	var later retryAfter
	var put snoozed
	return errors.As(err, &final) || errors.As(err, &later) || errors.As(err, &put)
}

// classify is err as the classifiers want it: those of the handler, then those of the worker, until one has decided. Cause is
// why the attempt's context ended.
func (s *session) classify(h *activeAttempt, own []Classifier, cause, err error) error {
	switch {
	case cause != nil && cause != context.DeadlineExceeded:
		return err // the outcome does not depend on it
	case err == nil || decided(err):
		return err
	}
	for _, all := range [][]Classifier{own, s.worker.cfg.classifiers} {
		for _, c := range all {
			if err = s.ask(c, h, err); decided(err) {
				return err
			}
		}
	}
	return err
}

// ask is what one classifier makes of err.
func (s *session) ask(c Classifier, h *activeAttempt, err error) (classified error) {
	defer func() {
		if value := recover(); value != nil {
			s.log.Error("a classifier of errors panicked", "task_id", h.TaskID, "type", h.Type, "panic", value, "error", err)
			classified = err
		}
	}()
	if classified = c(&h.Attempt, err); classified == nil {
		return err
	}
	return classified
}
