package validate

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

func TestPeekRefuses(t *testing.T) {
	place := Place{3, 1763721600000, goodID}
	good := func() *yardv1.PeekTasklistRequest {
		return &yardv1.PeekTasklistRequest{Name: "mail", Type: "email.send", Group: "acme", Limit: PeekMax, Cursor: place.String()}
	}
	table := map[string]row[*yardv1.PeekTasklistRequest]{
		"no name":   {func(r *yardv1.PeekTasklistRequest) { r.Name = "" }, "/name"},
		"bad type":  {func(r *yardv1.PeekTasklistRequest) { r.Type = "a b" }, "/type"},
		"bad group": {func(r *yardv1.PeekTasklistRequest) { r.Group = "a b" }, "/group"},
		"too many":  {func(r *yardv1.PeekTasklistRequest) { r.Limit++ }, "/limit"},
		"negative":  {func(r *yardv1.PeekTasklistRequest) { r.Limit = -1 }, "/limit"},
	}
	for _, cursor := range []string{goodID.String(), "x.1." + goodID.String(), "1.x." + goodID.String(), "1.1.x"} {
		table[cursor] = row[*yardv1.PeekTasklistRequest]{func(r *yardv1.PeekTasklistRequest) { r.Cursor = cursor }, "/cursor"}
	}
	refusals(t, good, func(r *yardv1.PeekTasklistRequest) error { _, err := Peek(r); return err }, table)
	if after, err := Peek(good()); err != nil || after != place {
		t.Errorf("%v %v", after, err)
	}
	first := &yardv1.PeekTasklistRequest{Name: "mail"}
	if after, err := Peek(first); err != nil || after != (Place{}) || first.Limit != PeekDefault {
		t.Errorf("%v %v of %v", after, err, first)
	}
}
