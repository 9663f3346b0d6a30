package yard

import (
	"context"
	"log/slog"
	"time"
)

// LogAttempts logs the end of each attempt: at info level, at warn level with the error if it
// failed. The context is the handler's, for loggers that add the trace. A panic is logged by the worker.
func LogAttempts(log *slog.Logger) Middleware {
	return func(next HandlerFunc) HandlerFunc {
		return func(ctx context.Context, a *Attempt) (Payload, error) {
			began := time.Now()
			result, err := next(ctx, a)
			about := []any{"type", a.Type, "task_id", a.TaskID, "attempt", a.Number, "duration", time.Since(began)}
			if err != nil {
				log.WarnContext(ctx, "an attempt failed", append(about, "error", err)...)
				return result, err
			}
			log.InfoContext(ctx, "an attempt is done", about...)
			return result, nil
		}
	}
}

// LogSubmits logs each submit: at debug level, at warn level with the error if it failed. Payloads are not logged.
func LogSubmits(log *slog.Logger) SubmitMiddleware {
	return func(next SubmitFunc) SubmitFunc {
		return func(ctx context.Context, tasks []Task) ([]string, error) {
			began := time.Now()
			ids, err := next(ctx, tasks)
			about := []any{"tasks", len(tasks), "duration", time.Since(began)}
			if len(tasks) == 1 {
				about = append(about, "type", tasks[0].Type, "tasklist", tasks[0].Tasklist)
			}
			if err != nil {
				log.WarnContext(ctx, "a submit failed", append(about, "error", err)...)
				return ids, err
			}
			if len(ids) == 1 {
				about = append(about, "task_id", ids[0])
			}
			log.DebugContext(ctx, "submitted", about...)
			return ids, nil
		}
	}
}
