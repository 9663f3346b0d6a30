package testkit

import (
	"flag"
	"strconv"
)

// SideBySide lets n parallel tests of a package run at once, whatever the number of
// cores: for packages whose tests wait most of the time. TestMain calls it first; the
// flag on the command line wins.
func SideBySide(n int) {
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err) // the testing package has had this flag forever
	}
}
