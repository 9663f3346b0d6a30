package yard_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

func TestAPeekGoesBothWaysWhole(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		peek := answering[yardv1.PeekTasklistRequest](t, s, topology.API("shop", "tasklists.peek"), &yardv1.PeekTasklistResponse{
			Tasks:      []*yardv1.PeekedTask{{Task: &yardv1.Task{TaskId: "a", Priority: 2}, ReadyForMs: 412}, {Task: &yardv1.Task{TaskId: "b"}}},
			NextCursor: "next", UnreadBatches: 7,
		})
		got, err := s.client.PeekTasklist(soon(t), "mail", yard.PeekOptions{Type: "email.send", Limit: 2, Cursor: "here"})
		if err != nil || got.Cursor != "next" || got.UnreadBatches != 7 || len(got.Tasks) != 2 {
			t.Fatalf("%+v %v", got, err)
		}
		if first := got.Tasks[0]; first.ID != "a" || first.Priority != 2 || first.ReadyFor != 412*time.Millisecond || got.Tasks[1].ID != "b" {
			t.Errorf("%+v", got.Tasks)
		}
		if !proto.Equal(peek.requests()[0], &yardv1.PeekTasklistRequest{Name: "mail", Type: "email.send", Limit: 2, Cursor: "here"}) {
			t.Errorf("%v", peek.requests()[0])
		}
	})
}
