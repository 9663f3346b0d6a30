package codec

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

// An unknown field inside of a setting is refused in protobuf as it is in JSON, and its message is named.
func TestUnknownFieldsInsideOfSettings(t *testing.T) {
	unknown := protoreflect.RawFields(protowire.AppendVarint(protowire.AppendTag(nil, 999, protowire.VarintType), 1))
	rate, retry, group := &yardv1.Rate{Tasks: 1}, &yardv1.RetryPolicy{}, &yardv1.Group{}
	rule := &yardv1.ErrorRetry{ErrorType: "x"}
	ruled := &yardv1.RetryPolicy{ByError: []*yardv1.ErrorRetry{{ErrorType: "y"}, rule}}
	for _, m := range []protoreflect.ProtoMessage{rate, retry, group, rule} {
		m.ProtoReflect().SetUnknown(unknown)
	}
	for path, m := range map[string]Message{
		"/domain/rate":              &yardv1.PutDomainRequest{Domain: &yardv1.Domain{Rate: rate}},
		"/tasklist/rate":            &yardv1.PutTasklistRequest{Tasklist: &yardv1.Tasklist{Rate: rate}},
		"/type/rate":                &yardv1.PutTypeRequest{Type: &yardv1.TaskType{Rate: rate}},
		"/limit/rate":               &yardv1.PutLimitRequest{Limit: &yardv1.Limit{Rate: rate}},
		"/type/retry":               &yardv1.PutTypeRequest{Type: &yardv1.TaskType{Retry: retry}},
		"/tasks/0/retry":            &yardv1.SubmitRequest{Tasks: []*yardv1.NewTask{{Retry: retry}}},
		"/type/retry/by_error/1":    &yardv1.PutTypeRequest{Type: &yardv1.TaskType{Retry: ruled}},
		"/tasks/1/retry/by_error/1": &yardv1.SubmitRequest{Tasks: []*yardv1.NewTask{{}, {Retry: ruled}}},
		"/group":                    &yardv1.PutGroupRequest{Group: group},
	} {
		data, err := Marshal(Protobuf, m)
		checktest.NoError(t, err)
		back := m.(protoreflect.ProtoMessage).ProtoReflect().New().Interface().(Message)
		if e := fault.From(UnmarshalRequest(Protobuf, data, back)); e == nil || e.Code != fault.InvalidArgument || e.Path != path+"/#999" {
			t.Errorf("%s: got %v", path, e)
		}
	}
}
