package provision_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestI13ANewClusterWritesTheNewestVersion, and one that has lost it is refused. R21.
func TestI13ANewClusterWritesTheNewestVersion(t *testing.T) {
	t.Parallel()
	js := cluster(t)
	kv := configBucket(t, js)
	e, err := kv.Get(t.Context(), topology.VersionKey)
	if err != nil || e.Revision() == 0 {
		t.Fatalf("a new cluster has no version: %v", err)
	}
	if v, err := catalog.GetVersion(t.Context(), kv); err != nil || v.Number != logversion.Newest() {
		t.Errorf("%+v %v", v, err)
	}
	testkit.NoError(t, kv.Purge(t.Context(), topology.VersionKey))
	if err := apply(t, js, two); err == nil {
		t.Error("a cluster without a version was accepted")
	}
}

// TestI13AClusterOfANewerVersionIsRefused, before anything in it is changed. R21.
func TestI13AClusterOfANewerVersionIsRefused(t *testing.T) {
	t.Parallel()
	js := cluster(t)
	kv := configBucket(t, js)
	v, err := catalog.GetVersion(t.Context(), kv)
	testkit.NoError(t, err)
	testkit.NoError(t, catalog.RaiseVersion(t.Context(), kv, v, logversion.Newest()+1))
	if err := catalog.RaiseVersion(t.Context(), kv, v, logversion.Newest()+2); !errors.Is(err, catalog.ErrVersionChanged) {
		t.Errorf("a version was raised by who had not read it: %v", err)
	}
	name := topology.TimerStream(1)
	testkit.NoError(t, js.DeleteStream(t.Context(), name))
	var unknown *logversion.UnknownError
	if err := apply(t, js, two); !errors.As(err, &unknown) || !strings.Contains(err.Error(), "run a newer version") {
		t.Errorf("apply: %v", err)
	}
	if _, err := js.Stream(t.Context(), name); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("a refused program created a stream: %v", err)
	}
	if err := provision.Version(t.Context(), js); !errors.As(err, &unknown) {
		t.Errorf("look: %v", err)
	}
}

// TestI13AVersionNeverGoesDown: neither by a raise nor in a program that watches.
func TestI13AVersionNeverGoesDown(t *testing.T) {
	t.Parallel()
	js := cluster(t)
	kv := configBucket(t, js)
	c, err := catalog.Watch(t.Context(), kv, nil)
	testkit.NoError(t, err)
	own := logversion.Newest()
	if c.Version() != own || c.WriteVersion() != own {
		t.Errorf("%d %d", c.Version(), c.WriteVersion())
	}
	v, err := catalog.GetVersion(t.Context(), kv)
	testkit.NoError(t, err)
	if err := catalog.RaiseVersion(t.Context(), kv, v, v.Number); err == nil {
		t.Error("a version was raised to itself")
	}
	testkit.NoError(t, catalog.RaiseVersion(t.Context(), kv, v, own+3))
	testkit.Eventually(t, 30*time.Second, func() error {
		if c.Version() != own+3 {
			return errors.New("the raised version is not known yet")
		}
		return nil
	})
	testkit.Equal(t, "this program writes", c.WriteVersion(), own)
	for _, value := range []string{"1", "none"} {
		testkit.NoError(t, testkit.Err(kv.PutString(t.Context(), topology.VersionKey, value)))
		put(t, kv, "mark"+value, 1)
		testkit.Eventually(t, 30*time.Second, func() error {
			if c.Domain("mark"+value) == nil {
				return errors.New("not seen yet")
			}
			return nil
		})
		if c.Version() != own+3 {
			t.Errorf("after %q the version is %d", value, c.Version())
		}
	}
	if _, err := catalog.GetVersion(t.Context(), kv); err == nil {
		t.Error("nonsense was read as a version")
	}
}
