package validate

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/pace"
)

// Poll checks a poll. It fills in the tasklist of the subject, if that names one.
func Poll(req *yardv1.PollRequest, subject string) error {
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
	if err := firstError(
		name("/tasklist", req.Tasklist),
		between("/max_tasks", req.MaxTasks, least, BatchMax),
		between("/wait_ms", req.WaitMs, 0, ms(pace.Of(WaitMax))),
		text("/worker", req.Worker, WorkerBytesMax),
		text("/worker_version", req.WorkerVersion, VersionBytesMax),
		workerID("/worker_id", req.WorkerId),
	); err != nil {
		return err
	}
	if len(req.Types) > PollTypesMax {
		return invalid("/types", "holds %d entries, at most %d are allowed", len(req.Types), PollTypesMax)
	}
	for i, t := range req.Types {
		if err := typeName(at("types", i, ""), t); err != nil {
			return err
		}
	}
	if len(req.Unanswered) > PollUnansweredMax {
		return invalid("/unanswered", "holds %d entries, at most %d are allowed", len(req.Unanswered), PollUnansweredMax)
	}
	for i, inbox := range req.Unanswered {
		if err := text(at("unanswered", i, ""), inbox, InboxBytesMax); err != nil {
			return err
		}
	}
	return nil
}
