package ids

import "testing"

// References are stored in the log and in tables, so they stay as they are; each kind has its own form.
func TestReferencesOfLimits(t *testing.T) {
	for ref, want := range map[string]string{
		DomainLimit: "domain", TasklistLimit("a"): "tasklist/a", SharedLimit("a"): "shared/a", TypeLimit("a.b"): "type/a.b",
	} {
		if ref != want {
			t.Errorf("%s, want %s", ref, want)
		}
		typ, isType := TypeOfLimit(ref)
		shared, isShared := SharedOfLimit(ref)
		if isType != (ref == TypeLimit("a.b")) || isShared != (ref == SharedLimit("a")) || isType && typ != "a.b" || isShared && shared != "a" {
			t.Errorf("%s is of type %q %v, shared %q %v", ref, typ, isType, shared, isShared)
		}
	}
}

// The limit of a group names the limit per group and the group, whatever names they have; no other limit is taken for one.
func TestReferencesOfGroups(t *testing.T) {
	for _, of := range []string{DomainLimit, TasklistLimit("group"), SharedLimit("group"), TypeLimit("group"), TypeLimit("a.b")} {
		each := PerGroupLimit(of)
		if each != of+"/group" {
			t.Errorf("each group of %s has the limit %s", of, each)
		}
		for _, plain := range []string{of, each} {
			if _, group, ok := GroupOfLimit(plain); ok {
				t.Errorf("%s is taken for the limit of group %s", plain, group)
			}
		}
		for _, group := range []string{"acme", "group", "a.b-c_d"} {
			ref := GroupLimit(each, group)
			if ref != each+"/"+group {
				t.Errorf("the limit of %s is %s", group, ref)
			}
			if gotOf, got, ok := GroupOfLimit(ref); !ok || gotOf != each || got != group {
				t.Errorf("%s is that of %q in %q: %v", ref, got, gotOf, ok)
			}
			_, isType := TypeOfLimit(ref)
			_, isShared := SharedOfLimit(ref)
			if isType || isShared {
				t.Errorf("%s is taken for the limit of a type, or a shared one", ref)
			}
		}
	}
}
