package api

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

func TestPublicShowsARecordAsATask(t *testing.T) {
	id := ids.NewTaskID(time.UnixMilli(1234), 1, 5)
	r := &logv1.Record{
		Id: id[:], Domain: "shop", Tasklist: "mail", Type: "email.send", Priority: 2, Payload: []byte("p"), PayloadEncoding: 1,
		DueAtMs: 99, Version: 5, Updates: &logv1.Updates{Applied: 4, Passed: 2}, Steps: []*logv1.Step{{Kind: 6, AtMs: 7, Grant: 3, Worker: "w", Message: "m", ErrorType: "e", DueAtMs: 99}},
	}
	want := &yardv1.Task{
		TaskId: id.String(), Domain: "shop", Tasklist: "mail", Type: "email.send", Priority: 2,
		State: yardv1.TaskState_TASK_STATE_WAITING, Grants: 3, CreatedAtMs: 1234, DueAtMs: 99, Revision: 5,
	}
	if got := public(r, true); !proto.Equal(got, want) {
		t.Errorf("brief: %v", got)
	}
	r.Failures, want.Failures, want.State = 1, 1, yardv1.TaskState_TASK_STATE_BACKOFF
	want.Payload = &yardv1.Payload{Data: []byte("p"), Encoding: yardv1.Encoding_ENCODING_BINARY}
	want.Events = []*yardv1.TaskEvent{{Kind: yardv1.TaskEventKind_TASK_EVENT_KIND_FAILED, AtMs: 7, Grant: 3, Worker: "w", Message: "m", ErrorType: "e", DueAtMs: 99}}
	if got := public(r, false); !proto.Equal(got, want) {
		t.Errorf("whole: %v", got)
	}
}
