package doctor

import "time"

// Ahead has all that is stored be older than it is.
func Ahead(o Options, d time.Duration) Options {
	o.ahead = d
	return o
}
