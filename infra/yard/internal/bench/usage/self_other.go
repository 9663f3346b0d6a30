//go:build !unix

package usage

import "time"

// SelfCPU is not known here.
func SelfCPU() time.Duration { return 0 }

// PeakBytes is not known here.
func PeakBytes() int64 { return 0 }
