// Command metricsdoc writes METRICS.md, the reference of all metrics.
//
// Owns: that file. Never does: decide what is in it; contracts/signals does. On failure: it
// says why and exits 1.
package main

import (
	"fmt"
	"os"

	"github.com/yardmaster-io/yardmaster/contracts/signals"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: metricsdoc FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(signals.Page()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
