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
