package validate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// wide returns n headers whose names and values take bytes in all.
func wide(n, bytes int) map[string]string {
	all := map[string]string{}
	for i := range n {
		size := bytes / (n - i)
		bytes -= size
		all[fmt.Sprintf("h%03d", i)] = strings.Repeat("v", size-4)
	}
	return all
}

func TestHeadersAreBounded(t *testing.T) {
	one := func(name, value string) map[string]string { return map[string]string{name: value} }
	for name, c := range map[string]struct {
		headers map[string]string
		path    string // empty = good
	}{
		"none":               {nil, ""},
		"all kinds of bytes": {one("aZ09._-", "été\t\r\n\"\\\x7f"), ""},
		"a control":          {one("a", "v\x00"), "/tasks/1/headers/a"},
		"the last control":   {one("a", "\x1f"), "/tasks/1/headers/a"},
		"empty value":        {one("a", ""), ""},
		"longest":            {one(strings.Repeat("n", 64), strings.Repeat("v", 1024)), ""},
		"almost reserved":    {one("yard", "v"), ""},
		"most bytes":         {wide(32, 4096), ""},
		"too many bytes":     {wide(32, 4097), "/tasks/1/headers"},
		"too many":           {wide(33, 33*5), "/tasks/1/headers"},
		"no name":            {one("", "v"), "/tasks/1/headers"},
		"long name":          {one(strings.Repeat("n", 65), "v"), "/tasks/1/headers"},
		"blank in a name":    {one("a b", "v"), "/tasks/1/headers"},
		"slash in a name":    {one("a/b", "v"), "/tasks/1/headers"},
		"foreign letter":     {one("é", "v"), "/tasks/1/headers"},
		"reserved":           {one("yard-x", "v"), "/tasks/1/headers/yard-x"},
		"reserved, capital":  {one("YARD-x", "v"), "/tasks/1/headers/YARD-x"},
		"long value":         {one("a", strings.Repeat("v", 1025)), "/tasks/1/headers/a"},
		"no UTF-8":           {one("a", "\xff"), "/tasks/1/headers/a"},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(2)
			r.Tasks[1].Headers = c.headers
			err := Submit(r, now, Form{})
			if c.path == "" {
				testkit.NoError(t, err)
				return
			}
			wants{fault.InvalidArgument, c.path}.check(t, err)
		})
	}
}

func TestAListNamesFewHeaders(t *testing.T) {
	testkit.Check(t, List(&yardv1.ListRequest{Headers: wide(4, 40)}))
	wants{fault.InvalidArgument, "/headers"}.check(t, List(&yardv1.ListRequest{Headers: wide(5, 50)}))
	wants{fault.InvalidArgument, "/headers"}.check(t, List(&yardv1.ListRequest{Headers: map[string]string{" ": "v"}}))
}

// TestHeadersAreStoredByName: equal ones are equal bytes in the log, whatever the order of a map.
func TestHeadersAreStoredByName(t *testing.T) {
	r := request(1)
	r.Tasks[0].Headers = map[string]string{"c": "3", "a": "1", "b": "2"}
	for range 20 {
		var got string
		for _, h := range Accept(r, under(nil)).Records[0].Headers {
			got += h.Name + "=" + h.Value + " "
		}
		if got != "a=1 b=2 c=3 " {
			t.Fatal(got)
		}
	}
}
