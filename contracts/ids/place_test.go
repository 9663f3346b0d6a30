package ids

import "testing"

func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		at               Place
		domain, tasklist string
		parent           Place
	}{
		{PlaceOf("shop", "mail"), "shop", "mail", "shop"},
		{PlaceOf("shop", ""), "shop", "", ""},
		{"", "", "", ""},
	} {
		if c.at.Domain() != c.domain || c.at.Tasklist() != c.tasklist || c.at.Parent() != c.parent {
			t.Errorf("%q is %q of %q in %q", c.at, c.at.Tasklist(), c.at.Domain(), c.at.Parent())
		}
		for place, has := range map[Place]bool{c.at: true, "": true, c.parent: true, "shop.mail.x": false, "sho": false, "mall": false} {
			if got := place.Has(c.at); got != has && place != c.at {
				t.Errorf("%q has %q: %v", place, c.at, got)
			}
		}
	}
}
