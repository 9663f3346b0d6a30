package yardv1

// The JSON form of the messages, where it differs from the plain field by
// field one. This file is written by hand; it stands beside the generated code
// since only methods of a type can say how the type is spelled.

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// binaryKey is the only member of the JSON object that stands for a binary payload.
const binaryKey = "$binary"

// MarshalJSONTo writes a JSON payload as it stands and a binary one as
// {"$binary": "<base64>"}.
func (p *Payload) MarshalJSONTo(enc *jsontext.Encoder) error {
	if p.GetEncoding() == Encoding_ENCODING_BINARY {
		return errors.Join(
			enc.WriteToken(jsontext.BeginObject),
			enc.WriteToken(jsontext.String(binaryKey)),
			enc.WriteToken(jsontext.String(base64.StdEncoding.EncodeToString(p.Data))),
			enc.WriteToken(jsontext.EndObject),
		)
	}
	if len(p.GetData()) == 0 {
		return enc.WriteToken(jsontext.Null)
	}
	return enc.WriteValue(jsontext.Value(p.Data))
}

// UnmarshalJSONFrom is the inverse of MarshalJSONTo.
func (p *Payload) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	value, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if value.Kind() == '{' && strings.Contains(string(value), binaryKey) {
		if data, ok, err := binaryPayload(value); ok {
			p.Data, p.Encoding = data, Encoding_ENCODING_BINARY
			return err
		}
	}
	p.Data, p.Encoding = value.Clone(), Encoding_ENCODING_JSON
	return nil
}

// binaryPayload decodes {"$binary": "…"}; ok is false for any other object.
func binaryPayload(value jsontext.Value) (data []byte, ok bool, err error) {
	var members map[string]jsontext.Value
	if json.Unmarshal(value, &members) != nil || len(members) != 1 {
		return nil, false, nil
	}
	var text string
	raw, ok := members[binaryKey]
	if !ok || json.Unmarshal(raw, &text) != nil {
		return nil, false, nil
	}
	data, err = base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, true, fmt.Errorf("%s is not base64: %w", binaryKey, err)
	}
	return data, true, nil
}

// MarshalJSONTo always writes the list, so that a client can loop over it.
func (r *PollResponse) MarshalJSONTo(enc *jsontext.Encoder) error {
	if r.Drain == nil {
		return writeList(enc, "tasks", r.Tasks, "")
	}
	if err := errors.Join(enc.WriteToken(jsontext.BeginObject), enc.WriteToken(jsontext.String("tasks")), json.MarshalEncode(enc, r.Tasks)); err != nil {
		return err
	}
	return errors.Join(enc.WriteToken(jsontext.String("drain")), json.MarshalEncode(enc, r.Drain), enc.WriteToken(jsontext.EndObject))
}

// MarshalJSONTo always writes the list, so that a client can loop over it.
func (r *ListResponse) MarshalJSONTo(enc *jsontext.Encoder) error {
	return writeList(enc, "tasks", r.Tasks, r.NextCursor)
}

// MarshalJSONTo always writes the list, so that a client can loop over it.
func (r *ListDomainsResponse) MarshalJSONTo(enc *jsontext.Encoder) error {
	return writeList(enc, "domains", r.Domains, r.NextCursor)
}

// MarshalJSONTo always writes the list, so that a client can loop over it.
func (r *ListTypesResponse) MarshalJSONTo(enc *jsontext.Encoder) error {
	return writeList(enc, "types", r.Types, r.NextCursor)
}

// MarshalJSONTo always writes the list, so that a client can loop over it.
func (r *ListBatchesResponse) MarshalJSONTo(enc *jsontext.Encoder) error {
	return writeList(enc, "batches", r.Batches, r.NextCursor)
}

// MarshalJSONTo always writes the list, so that a client can loop over it.
func (r *ListSchedulesResponse) MarshalJSONTo(enc *jsontext.Encoder) error {
	return writeList(enc, "schedules", r.Schedules, r.NextCursor)
}

// writeList writes a list and, where there is one, the cursor of the next page.
func writeList[T any](enc *jsontext.Encoder, name string, list []T, next string) error {
	if err := errors.Join(enc.WriteToken(jsontext.BeginObject), enc.WriteToken(jsontext.String(name)), enc.WriteToken(jsontext.BeginArray)); err != nil {
		return err
	}
	for _, item := range list {
		if err := json.MarshalEncode(enc, item); err != nil {
			return err
		}
	}
	if err := enc.WriteToken(jsontext.EndArray); err != nil {
		return err
	}
	if next != "" {
		if err := errors.Join(enc.WriteToken(jsontext.String("next_cursor")), enc.WriteToken(jsontext.String(next))); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

// Name is the state's JSON form, such as "running".
func (s TaskState) Name() string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "TASK_STATE_"))
}

// Finished tells whether the state is a last one.
func (s TaskState) Finished() bool {
	switch s {
	case TaskState_TASK_STATE_COMPLETED, TaskState_TASK_STATE_DEAD, TaskState_TASK_STATE_CANCELLED, TaskState_TASK_STATE_EXPIRED:
		return true
	}
	return false
}

// MarshalText implements encoding.TextMarshaler.
func (s TaskState) MarshalText() ([]byte, error) { return []byte(s.Name()), nil }

// UnmarshalText is the inverse of MarshalText.
func (s *TaskState) UnmarshalText(text []byte) error {
	v, ok := TaskState_value["TASK_STATE_"+strings.ToUpper(string(text))]
	if !ok || v == 0 || TaskState(v).Name() != string(text) {
		return fmt.Errorf("%q is not a task state", text)
	}
	*s = TaskState(v)
	return nil
}

// TaskIDs are the ids of the tasks, in order.
func (r *SubmitResponse) TaskIDs() []string {
	out := make([]string, len(r.GetResults()))
	for i, result := range r.GetResults() {
		out[i] = result.TaskId
	}
	return out
}

// Name is the outcome's JSON form, such as "created".
func (o SubmitOutcome) Name() string {
	return strings.ToLower(strings.TrimPrefix(o.String(), "SUBMIT_OUTCOME_"))
}

// MarshalText implements encoding.TextMarshaler.
func (o SubmitOutcome) MarshalText() ([]byte, error) { return []byte(o.Name()), nil }

// UnmarshalText is the inverse of MarshalText. An outcome of a newer engine is read as unspecified.
func (o *SubmitOutcome) UnmarshalText(text []byte) error {
	*o = SubmitOutcome(SubmitOutcome_value["SUBMIT_OUTCOME_"+strings.ToUpper(string(text))])
	return nil
}

// Name is the kind's JSON form, such as "handed_back".
func (k TaskEventKind) Name() string {
	return strings.ToLower(strings.TrimPrefix(k.String(), "TASK_EVENT_KIND_"))
}

// MarshalText implements encoding.TextMarshaler.
func (k TaskEventKind) MarshalText() ([]byte, error) { return []byte(k.Name()), nil }

// UnmarshalText is the inverse of MarshalText.
func (k *TaskEventKind) UnmarshalText(text []byte) error {
	v, ok := TaskEventKind_value["TASK_EVENT_KIND_"+strings.ToUpper(string(text))]
	if !ok {
		return fmt.Errorf("%q is not a kind of task event", text)
	}
	*k = TaskEventKind(v)
	return nil
}
