package distribution

import "testing"

func TestCancelsAreTakenUnlessReportedFull(t *testing.T) {
	c := NewCancels(2)
	want := func(what string, p int, domain string, takes bool) {
		t.Helper()
		if c.Takes(p, domain) != takes {
			t.Errorf("%s: partition %d, domain %s: %v", what, p, domain, !takes)
		}
	}
	want("nothing reported", 0, "shop", true)
	c.Report(0, false, []string{"rival", "shop"})
	want("over its share", 0, "shop", false)
	want("over its share", 0, "rival", false)
	want("another domain", 0, "quiet", true)
	want("another partition", 1, "shop", true)
	c.Report(0, true, nil)
	want("full", 0, "quiet", false)
	c.Report(0, false, nil)
	want("room again", 0, "shop", true)
	c.Report(2, true, nil)
	c.Report(-1, true, nil)
	want("others are full", 1, "shop", true)
}

func TestCancelsWithoutAReportAreBounded(t *testing.T) {
	c := NewCancels(2)
	c.Sent(1, CancelsSentMax-1)
	if !c.Takes(1, "shop") {
		t.Error("refused within the bound")
	}
	c.Sent(1, 1)
	if c.Takes(1, "shop") || !c.Takes(0, "shop") {
		t.Error("the bound is of the one partition")
	}
	c.Report(1, false, nil)
	if !c.Takes(1, "shop") {
		t.Error("refused after a report")
	}
}
