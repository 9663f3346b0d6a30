package validate

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Poll checks a poll, which may wait for so long. It fills in the tasklist of the subject, if that names one.
func Poll(req *yardv1.PollRequest, subject string, wait time.Duration) error {
	switch {
	case subject == "":
	case req.Tasklist == "":
		req.Tasklist = subject
	case req.Tasklist != subject:
		return invalid("/tasklist", "is %q, and the subject names %q", req.Tasklist, subject)
	}
	least := int32(1)
	if req.NoTasks {
		least = 0
	}
	return firstError(
		name("/tasklist", req.Tasklist),
		between("/max_tasks", req.MaxTasks, least, BatchMax),
		between("/wait_ms", req.WaitMs, 0, ms(wait)),
		text("/worker", req.Worker, WorkerBytesMax),
		text("/worker_version", req.WorkerVersion, VersionBytesMax),
		workerID("/worker_id", req.WorkerId),
		few("/types", len(req.Types), PollTypesMax),
		each("/types", req.Types, typeName),
		few("/unanswered", len(req.Unanswered), PollUnansweredMax),
		each("/unanswered", req.Unanswered, func(path, inbox string) error { return text(path, inbox, InboxBytesMax) }),
	)
}
