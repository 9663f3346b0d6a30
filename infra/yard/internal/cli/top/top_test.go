package top

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func busy() *yardv1.TopDomainsResponse {
	return &yardv1.TopDomainsResponse{
		Domains: []*yardv1.TopDomain{
			{Domain: "shop", Weight: 3, Share: 0.75, Received: 0.6, AdmittedPerS: 820, StartedPerS: 606, CompletedPerS: 600.25, FailedPerS: 6, Ready: 4200, Running: 64, Backoff: 3, Unread: 17, OldestReadyMs: 65_000},
			{Domain: "media", Weight: 1, Share: 0.25, Received: 0.4, CompletedPerS: 400, Running: 40, Waiting: 120_000, LateMs: 2500},
		},
		Total:      &yardv1.TopDomain{Weight: 4, CompletedPerS: 1000.25, Ready: 4200, Running: 104, OldestReadyMs: 65_000, Waiting: 120_000, LateMs: 2500},
		Others:     5,
		FullLimits: []*yardv1.FullLimit{{Domain: "shop", Ref: "type/email.send", MaxConcurrency: 30, Running: 30, FullForMs: 61_000, WaitingTasklists: 1}, {Domain: "shop", Ref: "rate/type/sms", FullForMs: 900, WaitingTasklists: 2}},
		Late:       []*yardv1.TopDomain{{Domain: "media", Waiting: 120_000, LateMs: 2500}},
		Partitions: 4, Shards: 2, SilentHistory: []int32{1, 3},
	}
}

func TestFrames(t *testing.T) {
	for _, size := range [][2]int{{160, 40}, {80, 6}} {
		name := fmt.Sprintf("%dx%d", size[0], size[1])
		t.Run(name, func(t *testing.T) {
			var text bytes.Buffer
			for _, l := range frame("yard top", busy(), size[0], size[1]) {
				mark := ' '
				if l.Heading {
					mark = '*'
				}
				fmt.Fprintf(&text, "%c|%s\n", mark, l.Text)
			}
			testkit.Golden(t, "testdata/frame-"+name+".txt", text.Bytes())
		})
	}
}

// A frame without an answer says since when its numbers are old, and why. What an error says does not steer the terminal.
func TestATitleSaysThatNoAnswerCame(t *testing.T) {
	now := time.Date(2026, 11, 30, 15, 4, 5, 0, time.Local)
	testkit.Equal(t, "with an answer", title("ready", now, now, nil), "yard top, by ready, "+now.Format(command.TimeForm)+"; q ends")
	old := title("ready", now, now.Add(-time.Minute), errors.New("no\x1b answer"))
	testkit.Equal(t, "without", old, "yard top, by ready, "+now.Format(command.TimeForm)+"; q ends; the numbers are from "+now.Add(-time.Minute).Format(command.TimeForm)+": no\ufffd answer")
}
