package admission

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// What is split off a lane is added up.
func TestFillsAddUpTheStates(t *testing.T) {
	b := newBench(t)
	b.file(false, 1, "flood", 12)
	b.g.Replay(Step{Queue: Queue{lane, "flood"}, Kind: Split})
	b.g.Replay(Step{Queue: Queue{lane, "shop.mail"}, Kind: Split})
	b.g.Replay(Step{Queue: Queue{lane, "shop.push"}, Kind: Split})
	want, all := [ids.Lanes]LaneFill{}, b.g.States("")
	for n, s := range all {
		of := &want[s.Lane]
		if n < ids.Lanes {
			of.Lane = s.Fill
			continue
		}
		of.SplitOff.Tasks, of.SplitOff.TasksMax = of.SplitOff.Tasks+s.Tasks, of.SplitOff.TasksMax+s.TasksMax
		of.SplitOff.Bytes, of.SplitOff.BytesMax = of.SplitOff.Bytes+s.Bytes, of.SplitOff.BytesMax+s.BytesMax
	}
	want[lane].Domains, want[lane].Tasklists = 1, 2
	testkit.Equal(t, "what is split off together", b.g.Fills(), want)
}
