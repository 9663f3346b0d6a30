package topology

import (
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

func TestArchiveTasksAreToldFromItsIndex(t *testing.T) {
	for subject, want := range map[string]bool{
		ArchiveOf(3, "shop"): true, ArchiveShared(3, 60): true,
		ArchiveOf(4, "shop"): false, ArchivePage(3, "tasks", 17): false, ArchiveIndexed(3): false,
	} {
		if got := IsArchiveTasks(3, subject); got != want {
			t.Errorf("IsArchiveTasks(%s) is %v", subject, got)
		}
	}
}

func TestLaneOf(t *testing.T) {
	for lane := range ids.Lane(ids.Lanes) {
		for _, subject := range []string{Submit(3, lane, "shop", "mail"), SubmitShared(3, lane)} {
			if got, ok := LaneOf(3, subject); got != lane || !ok || !IsSubmit(3, subject) {
				t.Errorf("%s is a submit: %v, lane %v %v", subject, IsSubmit(3, subject), got, ok)
			}
			if !strings.HasPrefix(subject, strings.TrimSuffix(SubmitLane(3, lane), ">")) {
				t.Errorf("the filter %s does not match %s", SubmitLane(3, lane), subject)
			}
		}
	}
	for _, subject := range []string{Event(3), Fired(3), Submit(4, 1, "shop", "mail")} {
		if _, ok := LaneOf(3, subject); ok || IsSubmit(3, subject) {
			t.Errorf("%s is no submit of partition 3", subject)
		}
	}
	if _, ok := LaneOf(3, "yard.history.3.submit.other"); ok {
		t.Error("a submit without a lane has one")
	}
}
