package uniquekey

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestHas(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	before := now.Add(-unsureAfter).UnixMilli()
	for name, c := range map[string]struct {
		holder Holder
		want   bool
	}{
		"no task":                    {Holder{}, false},
		"it has not ended":           {Holder{Exists: true, ForMS: 1}, true},
		"it has just ended":          {Holder{Exists: true, FinishedAt: now.UnixMilli()}, true},
		"ended two minutes ago":      {Holder{Exists: true, FinishedAt: before}, true},
		"ended longer ago":           {Holder{Exists: true, FinishedAt: before - 1}, false},
		"and keeps its key":          {Holder{Exists: true, FinishedAt: before - 1000, ForMS: 1000}, true},
		"and has kept it for longer": {Holder{Exists: true, FinishedAt: before - 1001, ForMS: 1000}, false},
	} {
		testkit.Equal(t, name, Has(c.holder, now), c.want)
	}
}

func TestFrees(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	for name, c := range map[string]struct {
		holder Holder
		want   bool
	}{
		"no task":              {Holder{}, false},
		"it has not ended":     {Holder{Exists: true}, false},
		"it has just ended":    {Holder{Exists: true, FinishedAt: now.UnixMilli()}, true},
		"and keeps its key":    {Holder{Exists: true, FinishedAt: now.UnixMilli() - 999, ForMS: 1000}, false},
		"and has kept its key": {Holder{Exists: true, FinishedAt: now.UnixMilli() - 1000, ForMS: 1000}, true},
	} {
		testkit.Equal(t, name, Frees(c.holder, now), c.want)
	}
}

func TestCheck(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	mine, other := ids.NewTaskID(now, 1, 7), ids.NewTaskID(now, 1, 8)
	for name, c := range map[string]struct {
		head Head
		want Word
	}{
		"no message":                     {Head{}, Free},
		"another task":                   {Head{Seq: 3, Task: other, At: now}, Taken},
		"another task for two minutes":   {Head{Seq: 3, Task: other, At: now.Add(-unsureAfter)}, Taken},
		"another task for longer":        {Head{Seq: 3, Task: other, At: now.Add(-unsureAfter - 1)}, Unsure},
		"another task, in time":          {Head{Seq: 3, Task: other, At: now.Add(time.Second), Within: 2 * time.Second}, Taken},
		"another task, perhaps too late": {Head{Seq: 3, Task: other, At: now.Add(time.Second + 1), Within: 2 * time.Second}, Unsure},
		"another task that has ended":    {Head{Seq: 3, Task: other, FreeAt: now.UnixMilli() + 1, At: now.Add(-time.Hour)}, Taken},
		"another task, free since then":  {Head{Seq: 3, Task: other, FreeAt: now.UnixMilli(), At: now}, Free},
		"its own":                        {Head{Seq: 3, Task: mine, At: now}, Own},
		"its own, that has ended":        {Head{Seq: 3, Task: mine, FreeAt: now.UnixMilli() - 1, At: now}, Own},
	} {
		testkit.Equal(t, name, Check(c.head, mine, now), c.want)
	}
}
