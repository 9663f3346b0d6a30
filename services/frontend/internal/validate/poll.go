package validate

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Poll checks a poll. It fills in the tasklist of the subject, if that names one.
func Poll(req *yardv1.PollRequest, subject string) error {
	if len(req.Tasklists) > 0 {
		if err := polledTasklists(req, subject); err != nil {
			return err
		}
	}
	switch {
	case subject == "":
	case req.Tasklist == "":
		req.Tasklist = subject
	case req.Tasklist != subject:
		return invalid("/tasklist", "is %q, and the subject names %q", req.Tasklist, subject)
	}
	if len(req.Tasklists) == 0 {
		if err := name("/tasklist", req.Tasklist); err != nil {
			return err
		}
	}
	least := int32(1)
	if req.NoTasks {
		least = 0
	}
	if err := firstError(
		between("/max_tasks", req.MaxTasks, least, BatchMax),
		between("/wait_ms", req.WaitMs, 0, ms(WaitMax)),
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

// polledTasklists checks the tasklists of a poll of several, and fills in their weights.
func polledTasklists(req *yardv1.PollRequest, subject string) error {
	switch {
	case subject != "":
		return invalid("/tasklists", "has no place in a request to a subject that names a tasklist: NATS permissions fence workers by that subject; poll %q alone, or send to tasks.poll", subject)
	case req.Tasklist != "":
		return invalid("/tasklists", "has no place beside tasklist")
	case len(req.Tasklists) > PollTasklistsMax:
		return invalid("/tasklists", "holds %d entries, at most %d are allowed", len(req.Tasklists), PollTasklistsMax)
	}
	seen := map[string]bool{}
	for i, l := range req.Tasklists {
		if l == nil {
			return invalid(at("tasklists", i, ""), "is missing")
		}
		if err := name(at("tasklists", i, "name"), l.Name); err != nil {
			return err
		}
		if seen[l.Name] {
			return invalid(at("tasklists", i, "name"), "%q is named twice", l.Name)
		}
		seen[l.Name] = true
		if l.Weight == 0 {
			l.Weight = 1
		}
		if err := between(at("tasklists", i, "weight"), l.Weight, 1, PollWeightMax); err != nil {
			return err
		}
	}
	return nil
}
