package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// writeJSON writes the report for programs.
func writeJSON(w io.Writer, r report, _ string) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// writeSummary writes the report for people.
func writeSummary(w io.Writer, r report, command string) error {
	var s strings.Builder
	all := r.total()
	fmt.Fprintf(&s, "\nYardmaster demo, %.0f s, seed %d\n\n", r.Seconds, r.Seed)
	fmt.Fprintf(&s, "  %-8s %9s = %9s + %5s + %9s   %10s %5s %6s\n", "tenant", "accepted", "completed", "dead", "cancelled", "unfinished", "lost", "twice")
	for _, t := range append(r.Tenants[:len(r.Tenants):len(r.Tenants)], all) {
		fmt.Fprintf(&s, "  %-8s %9s = %9s + %5s + %9s   %10s %5s %6s\n", t.Name, whole(t.Accepted), whole(t.Completed),
			whole(t.Dead), whole(t.Cancelled), whole(t.Unfinished), whole(t.Lost), whole(t.Twice))
	}
	fmt.Fprintf(&s, "\n  %s attempts failed, %s were retries.", whole(all.Failed), whole(all.Retried))
	if all.Refused+all.Unsure > 0 {
		fmt.Fprintf(&s, " %s tasks were refused, the fate of %s is unknown.", whole(all.Refused), whole(all.Unsure))
	}
	if all.Leftovers > 0 {
		fmt.Fprintf(&s, " %s tasks that an earlier run left behind ran too.", whole(all.Leftovers))
	}
	s.WriteString("\n\n")
	for _, c := range r.Checks {
		verdict := "ok   "
		if !c.OK {
			verdict = "WRONG"
		}
		fmt.Fprintf(&s, "  %s  %s (%s)\n", verdict, c.Claim, c.Detail)
	}
	writeHints(&s, r.Seed, command)
	_, err := io.WriteString(w, s.String())
	return err
}

// writeHints tells what to do next.
func writeHints(s *strings.Builder, seed uint64, command string) {
	s.WriteString("\nTry next:\n")
	hint := func(what, args string) { fmt.Fprintf(s, "  %-52s # %s\n", command+" "+args, what) }
	hint("these very tasks again", fmt.Sprint("demo --seed ", seed))
	hint("a system that stays; then, in another terminal:", "dev")
	hint("hand in a task", `task submit greet '"Zoë"' --tasklist hello`)
	hint("what there is", "task list")
	hint("all that happened to one", "task get TASK")
	hint("what the machine can do", "bench")
	s.WriteString("With OTEL_EXPORTER_OTLP_ENDPOINT set, every task is a trace from its submit to its end.\n")
}
