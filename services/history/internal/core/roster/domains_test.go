package roster

import (
	"strconv"
	"testing"
	"time"
)

// I14: names of domains that no worker is of take no memory for good, and those that have workers are kept.
func TestNamesOfDomainsAreBounded(t *testing.T) {
	r := New()
	r.Passes("shop", time.Second)
	r.Heard("shop", &Sign{ID: "0123456789abcdef", Every: time.Second}, time.Second)
	for i := range 3 * domainsMax {
		r.Passes(strconv.Itoa(i), time.Second)
	}
	if len(r.domains) > domainsMax || len(r.domains["shop"].workers) != 1 {
		t.Errorf("%d domains are known", len(r.domains))
	}
}
