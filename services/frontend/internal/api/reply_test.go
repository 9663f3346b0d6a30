package api

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit/signalkit"
)

// A line about a request names its verb and its domain, and the trace that the client sent with it.
func TestTheLogNamesTheRequest(t *testing.T) {
	var lines bytes.Buffer
	a := &API{Deps: Deps{Log: slog.New(slog.NewTextHandler(&lines, nil))}}
	verb := newTally(signalkit.Metrics(t), "tasks.get")
	(&reply{api: a, tally: verb, domain: "shop"}).refuse(fault.New(fault.Internal, "one"))
	trace := telemetry.ParseTraceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00")
	(&reply{api: a, tally: verb, domain: "shop", trace: trace}).refuse(fault.New(fault.Internal, "two"))
	all := strings.Split(strings.TrimSpace(lines.String()), "\n")
	if len(all) != 2 || !strings.Contains(all[0], "verb=tasks.get domain=shop error=") || !strings.Contains(all[1], "domain=shop trace_id=4bf92f3577b34da6a3ce929d0e0e4736 error=") {
		t.Errorf("the log has\n%s", lines.String())
	}
}
