package catalog

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// The tests that need a server stand in shared/provision, which can start one:
// contracts is what clients depend on, so it depends on no server.

func TestLookupsDoNotAllocate(t *testing.T) {
	c := &Catalog{}
	c.now.Store(&state{
		domains:   map[string]*yardv1.Domain{"shop": {Name: "shop"}},
		types:     map[string]map[string]*yardv1.TaskType{"shop": {"email.send": {Name: "email.send"}}},
		tasklists: map[string]map[string]*yardv1.Tasklist{"shop": {"mail": {Name: "mail"}}},
	})
	if n := testing.AllocsPerRun(100, func() {
		_, domain := c.Domain("shop")
		_, known := c.Type("shop", "email.send")
		_, other := c.Type("nobody", "email.send")
		_, list := c.Tasklist("shop", "mail")
		_, none := c.Tasklist("nobody", "mail")
		if !domain || !known || other || !list || none {
			t.Error("a lookup went wrong")
		}
	}); n != 0 {
		t.Errorf("%v allocations per lookup", n)
	}
}

func TestNamesThatAreNoKeys(t *testing.T) {
	for _, name := range []string{"", ".a", "a.", "a..b", "a b"} {
		if _, err := PutType(t.Context(), nil, "shop", &yardv1.TaskType{Name: name}); fault.CodeOf(err) != fault.InvalidArgument {
			t.Errorf("type %q: %v", name, err)
		}
	}
	for _, name := range []string{"", "a.b", "*"} {
		if _, err := PutTasklist(t.Context(), nil, "shop", &yardv1.Tasklist{Name: name}); fault.CodeOf(err) != fault.InvalidArgument {
			t.Errorf("tasklist %q: %v", name, err)
		}
		if _, err := PutDomain(t.Context(), nil, &yardv1.Domain{Name: name}); fault.CodeOf(err) != fault.InvalidArgument {
			t.Errorf("domain %q: %v", name, err)
		}
	}
	if _, err := GetType(t.Context(), nil, "shop", "a..b"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("%v", err)
	}
}
