//go:build !unix

package bench

import "time"

// selfCPU is not known here.
func selfCPU() time.Duration { return 0 }

// peakBytes is not known here.
func peakBytes() int64 { return 0 }
