package gateway

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/signalkit"
)

const sampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// traced returns a rig that exports to a sink; flush sends what is held.
func traced(t *testing.T, change ...func(*Deps)) (r *rig, sink *signalkit.TraceSink, flush func()) {
	t.Helper()
	sink = signalkit.RunTraceSink(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.Endpoint)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	tracing, err := telemetry.NewTracing(t.Context(), "yard-frontend", "n1", nil)
	testkit.NoError(t, err)
	r = newRig(t, append(change, func(d *Deps) { d.Tracing = tracing })...).running(t)
	return r, sink, func() {
		testkit.NoError(t, tracing.Shutdown(t.Context()))
	}
}

func named(spans []signalkit.Span, name string) (found []signalkit.Span) {
	for _, s := range spans {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

func TestASubmitStartsATraceForItsTasks(t *testing.T) {
	r, sink, flush := traced(t)
	got := accepted(t, <-r.submit(t, tasks(3)))
	flush()
	submits, appends := named(sink.Spans(), "submit"), named(sink.Spans(), "append")
	if len(submits) != 1 || len(appends) != 1 {
		t.Fatalf("%d submit and %d append spans", len(submits), len(appends))
	}
	if appends[0].ParentID != submits[0].SpanID || submits[0].ParentID != "" {
		t.Error("append is not a child of submit")
	}
	if a := submits[0].Attrs; a["yardmaster.domain"] != "shop" || a["yardmaster.tasklist"] != "main" || a["yardmaster.type"] != "email" || a["yardmaster.task_id"] != got[0] || a["messaging.batch.message_count"] != "3" {
		t.Errorf("attributes %v", a)
	}
	for _, m := range r.log.tries {
		for _, rec := range decode(t, m.Data).Tasks {
			testkit.Equal(t, "a task carries", telemetry.FormatTraceparent(rec.Trace), "00-"+submits[0].TraceID+"-"+submits[0].SpanID+"-01")
		}
	}
}

func TestATaskKeepsItsOwnTrace(t *testing.T) {
	r, sink, flush := traced(t)
	req := tasks(2)
	req.Tasks[1].Traceparent = sampled
	accepted(t, <-r.submit(t, req))
	flush()
	own, submit := 0, ""
	for _, s := range sink.Spans() {
		if s.TraceID == "0af7651916cd43dd8448eb211c80319c" {
			own++
			if s.Name == "submit" {
				submit = s.SpanID
			}
		}
	}
	if own != 2 || len(sink.Spans()) != 4 {
		t.Errorf("%d of %d spans are in the task's own trace", own, len(sink.Spans()))
	}
	if rec := decode(t, r.log.tries[0].Data).Tasks[1]; telemetry.FormatTraceparent(rec.Trace) != "00-0af7651916cd43dd8448eb211c80319c-"+submit+"-01" {
		t.Error("the task does not carry its own trace's submit")
	}
}

// TestATraceNamesTheTasksOfSeveralPartitions by the ids that the client gets.
func TestATraceNamesTheTasksOfSeveralPartitions(t *testing.T) {
	r, sink, flush := traced(t)
	req := ordered(keyIn(0), keyIn(1), keyIn(0))
	for _, task := range req.Tasks[1:] {
		task.Traceparent = sampled
	}
	got := accepted(t, <-r.submit(t, req))
	flush()
	named := map[string]bool{}
	for _, s := range sink.Spans() {
		named[s.Attrs["yardmaster.task_id"]+" in "+s.Attrs["yardmaster.partition"]] = true
	}
	for i, p := range []string{"0", "1", "0"} {
		if !named[got[i]+" in "+p] {
			t.Errorf("no span names task %d, %s in %s: %v", i, got[i], p, named)
		}
	}
}

// TestAStartWithTheSubmitIsASpan of each task that a poll is given, and of no other one.
func TestAStartWithTheSubmitIsASpan(t *testing.T) {
	r, sink, flush := traced(t, func(d *Deps) { d.Config.DirectStarts = true })
	r.pollHere(t, "first")
	r.tellAnswered(t, r.bus.sentPolls()[0].id)
	r.pollHere(t, "second", "mail")
	id := r.submitNow(t, &yardv1.NewTask{Type: "mail", Traceparent: sampled})[0]
	r.submitNow(t, &yardv1.NewTask{Type: "other", Traceparent: sampled})
	flush()
	starts := named(sink.Spans(), "start")
	if len(starts) != 1 {
		t.Fatalf("spans %v", sink.Spans())
	}
	s := starts[0]
	if a := s.Attrs; s.TraceID != "0af7651916cd43dd8448eb211c80319c" || a["yardmaster.task_id"] != id || a["yardmaster.type"] != "mail" || a["yardmaster.tasklist"] != "main" ||
		a["messaging.operation.type"] != "receive" || s.End.Before(s.Start) {
		t.Errorf("span %v", s)
	}
}

func TestTheCallersTraceGoesOnThroughOutcomes(t *testing.T) {
	r, sink, flush := traced(t)
	answer, got := r.answers(t)
	c := r.call()
	c.Trace = telemetry.ParseTraceparent(sampled)
	entry := completion(1, 1)
	r.Complete(c, &yardv1.CompleteRequest{Tasks: []*yardv1.Completion{entry}}, answer)
	testkit.Eventually(t, 10*time.Second, func() error {
		if len(r.bus.sentEvents()) == 0 {
			return errDown
		}
		return nil
	})
	r.TakeVerdicts(testkit.Encoded(t, &logv1.VerdictBatch{RequestId: r.bus.sentEvents()[0].id, Verdicts: []*logv1.EventVerdict{{}}}))
	verdicts(t, <-got)
	flush()
	spans := named(sink.Spans(), "complete")
	if len(spans) != 1 || spans[0].ParentID != "b7ad6b7169203331" || spans[0].Attrs["yardmaster.task_id"] != entry.TaskId || spans[0].Attrs["yardmaster.code"] != "OK" {
		t.Errorf("spans %v", spans)
	}
}

func TestWithoutTracingTheCallersContextPassesThrough(t *testing.T) {
	r := newRig(t).running(t)
	answer, got := r.answers(t)
	c := r.call()
	c.Trace = telemetry.ParseTraceparent(sampled)
	r.Submit(c, tasks(1), answer)
	accepted(t, <-got)
	if rec := decode(t, r.log.tries[0].Data).Tasks[0]; telemetry.FormatTraceparent(rec.Trace) != sampled {
		t.Error("the context is lost")
	}
	accepted(t, <-r.submit(t, tasks(1)))
	if rec := decode(t, r.log.tries[1].Data).Tasks[0]; len(rec.Trace) != 0 {
		t.Error("a context came from nowhere")
	}
}
