package gather

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// TestAPageMayEndWhereASearchStopped: also one without tasks; and what others reported beyond comes later.
func TestAPageMayEndWhereASearchStopped(t *testing.T) {
	task := func(id string) *yardv1.Task { return &yardv1.Task{TaskId: id} }
	stopped := &rpcv1.ListTasksResponse{More: true, End: "6"}
	for _, c := range []struct {
		found      []*rpcv1.ListTasksResponse
		page, next string
	}{
		{[]*rpcv1.ListTasksResponse{{Tasks: []*yardv1.Task{task("9"), task("4")}}, stopped}, "9", "6"},
		{[]*rpcv1.ListTasksResponse{{Tasks: []*yardv1.Task{task("4")}}, stopped}, "", "6"},
		{[]*rpcv1.ListTasksResponse{{Tasks: []*yardv1.Task{task("4")}}, {}}, "4", ""},
	} {
		page, next := Newest(c.found)
		got := ""
		for _, t := range page {
			got += t.TaskId
		}
		if got != c.page || next != c.next {
			t.Errorf("page %q, next %q, want %q, %q", got, next, c.page, c.next)
		}
	}
}
