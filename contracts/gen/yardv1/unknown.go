package yardv1

// Finding fields that the sender knows and we do not: refused, since what they
// ask for would silently not happen. Written by hand; reading the unexported
// field costs nothing, where reflection would cost a microsecond per task.

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

func field(path string, unknown []byte) (string, bool) {
	if len(unknown) == 0 {
		return "", false
	}
	n, _, _ := protowire.ConsumeTag(unknown)
	return fmt.Sprintf("%s/#%d", path, n), true
}

func payloadField(path string, p *Payload) (string, bool) {
	if p == nil {
		return "", false
	}
	return field(path, p.unknownFields)
}

// firstOf returns the first unknown field among checks, which run in order.
func firstOf(checks ...func() (string, bool)) (string, bool) {
	for _, check := range checks {
		if path, ok := check(); ok {
			return path, true
		}
	}
	return "", false
}

// UnknownField returns the path of a field that this version does not know.
func (r *SubmitRequest) UnknownField() (string, bool) {
	for i, t := range r.Tasks {
		if len(t.unknownFields) == 0 && (t.Payload == nil || len(t.Payload.unknownFields) == 0) && !t.Retry.anyUnknown() {
			continue
		}
		at := fmt.Sprintf("/tasks/%d", i)
		return firstOf(
			func() (string, bool) { return field(at, t.unknownFields) },
			func() (string, bool) { return payloadField(at+"/payload", t.Payload) },
			func() (string, bool) { return t.Retry.unknownField(at + "/retry") },
		)
	}
	return field("", r.unknownFields)
}

// UnknownField returns the path of a field that this version does not know.
func (r *UpdateRequest) UnknownField() (string, bool) {
	for i, t := range r.Tasks {
		at := fmt.Sprintf("/tasks/%d", i)
		if path, ok := firstOf(
			func() (string, bool) { return field(at, t.unknownFields) },
			func() (string, bool) { return payloadField(at+"/payload", t.Payload) },
			func() (string, bool) { return t.Retry.unknownField(at + "/retry") },
		); ok {
			return path, true
		}
	}
	return field("", r.unknownFields)
}

// UnknownField returns the path of a field that this version does not know.
func (r *CompleteRequest) UnknownField() (string, bool) {
	for i, t := range r.Tasks {
		if len(t.unknownFields) > 0 {
			return field(fmt.Sprintf("/tasks/%d", i), t.unknownFields)
		}
		if t.Result != nil && len(t.Result.unknownFields) > 0 {
			return field(fmt.Sprintf("/tasks/%d/result", i), t.Result.unknownFields)
		}
	}
	return field("", r.unknownFields)
}

// UnknownField returns the path of a field that this version does not know.
func (r *FailRequest) UnknownField() (string, bool) {
	for i, t := range r.Tasks {
		if len(t.unknownFields) > 0 {
			return field(fmt.Sprintf("/tasks/%d", i), t.unknownFields)
		}
	}
	return field("", r.unknownFields)
}

// UnknownField returns the path of a field that this version does not know.
func (r *HeartbeatRequest) UnknownField() (string, bool) {
	for i, t := range r.Tasks {
		if len(t.unknownFields) > 0 {
			return field(fmt.Sprintf("/tasks/%d", i), t.unknownFields)
		}
		if t.Progress != nil && len(t.Progress.unknownFields) > 0 {
			return field(fmt.Sprintf("/tasks/%d/progress", i), t.Progress.unknownFields)
		}
	}
	return field("", r.unknownFields)
}

// UnknownField returns the path of a field that this version does not know.
func (r *PollRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *GetRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *ListRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *CancelRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *PutDomainRequest) UnknownField() (string, bool) {
	if d := r.Domain; d != nil && len(d.unknownFields) > 0 {
		return field("/domain", d.unknownFields)
	}
	if d := r.Domain; d != nil && d.Rate != nil && len(d.Rate.unknownFields) > 0 {
		return field("/domain/rate", d.Rate.unknownFields)
	}
	if d := r.Domain; d != nil && d.Quota != nil && len(d.Quota.unknownFields) > 0 {
		return field("/domain/quota", d.Quota.unknownFields)
	}
	return field("", r.unknownFields)
}

// UnknownField returns the path of a field that this version does not know.
func (r *GetDomainRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *ListDomainsRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *DeleteDomainRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *ListTypesRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *DeleteTypeRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *PutTasklistRequest) UnknownField() (string, bool) {
	if l := r.Tasklist; l != nil && len(l.unknownFields) > 0 {
		return field("/tasklist", l.unknownFields)
	}
	if l := r.Tasklist; l != nil && l.Rate != nil && len(l.Rate.unknownFields) > 0 {
		return field("/tasklist/rate", l.Rate.unknownFields)
	}
	return field("", r.unknownFields)
}

// UnknownField returns the path of a field that this version does not know.
func (r *GetTasklistRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *ListTasklistsRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *DeleteTasklistRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *PutTypeRequest) UnknownField() (string, bool) {
	if t := r.Type; t != nil {
		if len(t.unknownFields) > 0 {
			return field("/type", t.unknownFields)
		}
		if t.Retry.anyUnknown() {
			return t.Retry.unknownField("/type/retry")
		}
		if t.Rate != nil && len(t.Rate.unknownFields) > 0 {
			return field("/type/rate", t.Rate.unknownFields)
		}
	}
	return field("", r.unknownFields)
}

// UnknownField returns the path of a field that this version does not know.
func (r *GetTypeRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *DescribeTasklistRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

func (r *RetryPolicy) anyUnknown() bool {
	_, found := r.unknownField("")
	return found
}

func (r *RetryPolicy) unknownField(path string) (string, bool) {
	if r == nil {
		return "", false
	}
	for i, e := range r.ByError {
		if len(e.unknownFields) > 0 {
			return field(fmt.Sprintf("%s/by_error/%d", path, i), e.unknownFields)
		}
	}
	return field(path, r.unknownFields)
}

// UnknownField returns the path of a field that this version does not know.
func (r *PeekTasklistRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *GetLimitRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *ListLimitsRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *DeleteLimitRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *PutLimitRequest) UnknownField() (string, bool) {
	if l := r.Limit; l != nil && len(l.unknownFields) > 0 {
		return field("/limit", l.unknownFields)
	}
	if l := r.Limit; l != nil && l.Rate != nil && len(l.Rate.unknownFields) > 0 {
		return field("/limit/rate", l.Rate.unknownFields)
	}
	return field("", r.unknownFields)
}

// UnknownField returns the path of a field that this version does not know.
func (r *GetGroupRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *ListGroupsRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *DeleteGroupRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *PutGroupRequest) UnknownField() (string, bool) {
	if g := r.Group; g != nil && len(g.unknownFields) > 0 {
		return field("/group", g.unknownFields)
	}
	return field("", r.unknownFields)
}

// UnknownField returns the path of a field that this version does not know.
func (r *TasklistPollersRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *TopLimitsRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *ListWorkersRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *DrainWorkerRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *StopWorkerRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *ResumeWorkerRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

func (f *DeadLetterFilter) unknownField() (string, bool) {
	if f == nil {
		return "", false
	}
	return field("/filter", f.unknownFields)
}

// UnknownField returns the path of a field that this version does not know.
func (r *GetDeadLetterRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *ListDeadLettersRequest) UnknownField() (string, bool) {
	return firstOf(r.Filter.unknownField, func() (string, bool) { return field("", r.unknownFields) })
}

// UnknownField returns the path of a field that this version does not know.
func (r *CountDeadLettersRequest) UnknownField() (string, bool) {
	return firstOf(r.Filter.unknownField, func() (string, bool) { return field("", r.unknownFields) })
}

// UnknownField returns the path of a field that this version does not know.
func (r *RedriveRequest) UnknownField() (string, bool) {
	return firstOf(
		r.Filter.unknownField,
		func() (string, bool) { return r.Retry.unknownField("/retry") },
		func() (string, bool) { return field("", r.unknownFields) },
	)
}

// UnknownField returns the path of a field that this version does not know.
func (r *PurgeDeadLettersRequest) UnknownField() (string, bool) {
	return firstOf(r.Filter.unknownField, func() (string, bool) { return field("", r.unknownFields) })
}

// UnknownField returns the path of a field that this version does not know.
func (r *ListQueuesRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *PauseRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *ResumeRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *PurgeRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }

// UnknownField returns the path of a field that this version does not know.
func (r *TopDomainsRequest) UnknownField() (string, bool) { return field("", r.unknownFields) }
