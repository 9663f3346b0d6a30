package topology_test

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// A key of a pause tells whose it is, and no key of settings is one.
func TestKeysOfPausesAreReadBack(t *testing.T) {
	key := topology.TasklistPauseKey("shop", "mail")
	if domain, name, ok := topology.TasklistPauseOfKey(key); !ok || domain != "shop" || name != "mail" {
		t.Errorf("%s: %s %s %t", key, domain, name, ok)
	}
	if _, _, ok := topology.TypePauseOfKey(key); ok {
		t.Errorf("%s is of a type", key)
	}
	key = topology.TypePauseKey("shop", "email.send")
	if domain, name, ok := topology.TypePauseOfKey(key); !ok || domain != "shop" || name != "email.send" {
		t.Errorf("%s: %s %s %t", key, domain, name, ok)
	}
	if _, _, ok := topology.TasklistPauseOfKey(key); ok {
		t.Errorf("%s is of a tasklist", key)
	}
	for _, other := range []string{topology.TypeKey("shop", "a"), topology.TasklistSettingsKey("shop", "a"), topology.LimitKey("shop", "a")} {
		if _, _, ok := topology.TypePauseOfKey(other); ok {
			t.Errorf("%s is the pause of a type", other)
		}
		if _, _, ok := topology.TasklistPauseOfKey(other); ok {
			t.Errorf("%s is the pause of a tasklist", other)
		}
	}
}

// A scale has keys of its own, which are read back and are of no settings.
func TestKeysOfScalesAreReadBack(t *testing.T) {
	key := topology.ScaleKey("shop", "mail")
	if domain, name, ok := topology.ScaleOfKey(key); !ok || domain != "shop" || name != "mail" {
		t.Errorf("%s: %s %s %t", key, domain, name, ok)
	}
	if _, _, ok := topology.TasklistOfKey(key); ok {
		t.Errorf("%s is of settings", key)
	}
	if _, _, ok := topology.ScaleOfKey(topology.TasklistSettingsKey("shop", "a")); ok {
		t.Error("settings are a scale")
	}
}

// A drain has keys of its own, which are read back and are of no pause.
func TestKeysOfDrainsAreReadBack(t *testing.T) {
	key := topology.TasklistDrainKey("shop", "mail")
	if domain, name, ok := topology.TasklistDrainOfKey(key); !ok || domain != "shop" || name != "mail" {
		t.Errorf("%s: %s %s %t", key, domain, name, ok)
	}
	if _, _, ok := topology.TasklistPauseOfKey(key); ok {
		t.Errorf("%s is a pause", key)
	}
	key = topology.TypeDrainKey("shop", "email.send")
	if domain, name, ok := topology.TypeDrainOfKey(key); !ok || domain != "shop" || name != "email.send" {
		t.Errorf("%s: %s %s %t", key, domain, name, ok)
	}
	if _, _, ok := topology.TypePauseOfKey(key); ok {
		t.Errorf("%s is a pause", key)
	}
	if _, _, ok := topology.TypeDrainOfKey(topology.TypePauseKey("shop", "a")); ok {
		t.Error("a pause is a drain")
	}
}

// So has what is stopped of a group, whose name may hold dots.
func TestKeysOfStoppedGroupsAreReadBack(t *testing.T) {
	pause, drain := topology.GroupPauseKey("shop", "acme.eu"), topology.GroupDrainKey("shop", "acme.eu")
	if domain, name, ok := topology.GroupPauseOfKey(pause); !ok || domain != "shop" || name != "acme.eu" {
		t.Errorf("%s: %s %s %t", pause, domain, name, ok)
	}
	if domain, name, ok := topology.GroupDrainOfKey(drain); !ok || domain != "shop" || name != "acme.eu" {
		t.Errorf("%s: %s %s %t", drain, domain, name, ok)
	}
	for what, of := range map[string]func(string) (string, string, bool){
		"the drain of a group": topology.GroupDrainOfKey, "the settings of a group": topology.GroupOfKey, "the pause of a type": topology.TypePauseOfKey, "a limit": topology.LimitOfKey,
	} {
		if _, _, ok := of(pause); ok {
			t.Errorf("%s is %s", pause, what)
		}
	}
	if _, _, ok := topology.GroupPauseOfKey(drain); ok {
		t.Errorf("%s is a pause", drain)
	}
	if _, _, ok := topology.GroupPauseOfKey(topology.GroupKey("shop", "a")); ok {
		t.Error("settings are a pause")
	}
}

// The drained workers of a domain have a key of its own, which is of nothing else.
func TestKeysOfDrainedWorkersAreReadBack(t *testing.T) {
	key := topology.WorkersKey("shop")
	if domain, ok := topology.WorkersOfKey(key); !ok || domain != "shop" {
		t.Errorf("%s: %s %t", key, domain, ok)
	}
	if _, ok := topology.DomainOfKey(key); ok {
		t.Errorf("%s is a domain", key)
	}
	for _, other := range []string{topology.DomainKey("shop"), "workers.", "workers.a.b"} {
		if _, ok := topology.WorkersOfKey(other); ok {
			t.Errorf("%s is of workers", other)
		}
	}
}
