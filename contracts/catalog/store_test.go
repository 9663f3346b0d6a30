package catalog

import (
	"errors"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/catalog/catalogtest"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

var errBroken = errors.New("the server is away")

// refused checks the code and the path of an error.
func refused(t *testing.T, what string, err error, code fault.Code, path string) {
	t.Helper()
	if e := fault.From(err); e == nil || e.Code != code || e.Path != path {
		t.Errorf("%s: got %v, want %s at %q", what, err, code, path)
	}
}

// A put whose answer was lost is repeated, and is answered with the revision of the first try.
func TestARepeatedPutHasTheRevisionOfTheFirst(t *testing.T) {
	b, ctx := catalogtest.New(), t.Context()
	first, err := Domains.Put(ctx, b, "", &yardv1.Domain{Name: "shop"})
	checktest.NoError(t, err)
	changed := &yardv1.Domain{Name: "shop", RetentionMs: 60_000, Revision: first}
	stored, err := Domains.Put(ctx, b, "", changed)
	checktest.NoError(t, err)
	if again, err := Domains.Put(ctx, b, "", changed); err != nil || again != stored {
		t.Errorf("the repeat has revision %d, not %d: %v", again, stored, err)
	}
	// The same content at a revision that is not newer is no repeat.
	_, err = Domains.Put(ctx, b, "", &yardv1.Domain{Name: "shop", RetentionMs: 60_000, Revision: stored + 5})
	refused(t, "a revision of the future", err, fault.Stale, "/domain/revision")
}

func TestADeleteIsOfTheRevisionThatItNames(t *testing.T) {
	b, ctx := catalogtest.New(), t.Context()
	revision, err := Types.Put(ctx, b, "shop", &yardv1.TaskType{Name: "x", MaxConcurrency: 2})
	checktest.NoError(t, err)
	_, err = Types.Delete(ctx, b, "shop", "x", revision+1)
	refused(t, "another revision", err, fault.Stale, "/revision")
	was, err := Types.Delete(ctx, b, "shop", "x", revision)
	if err != nil || was.MaxConcurrency != 2 || was.Revision != revision {
		t.Errorf("%v %v", was, err)
	}
	_, err = Types.Delete(ctx, b, "shop", "x", 0)
	refused(t, "what is deleted already", err, fault.NotFound, "")

	revision, err = Types.Put(ctx, b, "shop", &yardv1.TaskType{Name: "x"})
	checktest.NoError(t, err)
	b.Meanwhile = func() {
		checktest.Check(t, checktest.Err(Types.Put(ctx, b, "shop", &yardv1.TaskType{Name: "x", MaxConcurrency: 9})))
	}
	_, err = Types.Delete(ctx, b, "shop", "x", revision)
	refused(t, "what was changed meanwhile", err, fault.Stale, "/revision")
	if left, err := Types.Get(ctx, b, "shop", "x"); err != nil || left.MaxConcurrency != 9 {
		t.Errorf("%v %v", left, err)
	}
}

// A domain goes with its types, and with no other's.
func TestADomainTakesItsTypesAlong(t *testing.T) {
	b, ctx := catalogtest.New(), t.Context()
	for _, name := range []string{"shop", "shop2"} {
		checktest.NoError(t, checktest.Err(Domains.Put(ctx, b, "", &yardv1.Domain{Name: name})))
		for _, ty := range []string{"a", "b.c"} {
			checktest.NoError(t, checktest.Err(Types.Put(ctx, b, name, &yardv1.TaskType{Name: ty})))
		}
	}
	_, err := DeleteDomain(ctx, b, "shop", 99)
	refused(t, "another revision", err, fault.Stale, "/revision")
	checktest.Check(t, checktest.Err(Types.Get(ctx, b, "shop", "a")))
	if was, err := DeleteDomain(ctx, b, "shop", 1); err != nil || was.Name != "shop" {
		t.Fatal(was, err)
	}
	for key, want := range map[string]bool{
		Domains.Key("", "shop"): false, Types.Key("shop", "a"): false, Types.Key("shop", "b.c"): false,
		Domains.Key("", "shop2"): true, Types.Key("shop2", "a"): true, Types.Key("shop2", "b.c"): true,
	} {
		if there := b.Has(key); there != want {
			t.Errorf("%s is there: %v", key, there)
		}
	}
	for _, name := range []string{"shop", "*", ">", "", "a.b"} {
		_, err := DeleteDomain(ctx, b, name, 0)
		refused(t, "domain "+name, err, fault.NotFound, "")
	}
	if !b.Has(Types.Key("shop2", "a")) {
		t.Error("a wildcard took the types of another domain along")
	}
}

// Types that a first delete left, since it was cut off, go with the next.
func TestTypesWithoutADomainAreDeleted(t *testing.T) {
	b, ctx := catalogtest.New(), t.Context()
	checktest.NoError(t, checktest.Err(Types.Put(ctx, b, "shop", &yardv1.TaskType{Name: "a"})))
	_, err := DeleteDomain(ctx, b, "shop", 0)
	refused(t, "a domain that is gone", err, fault.NotFound, "")
	if b.Has(Types.Key("shop", "a")) {
		t.Error("its type is left")
	}
}

// A type that is put while its domain is deleted is not deleted by its old revision.
func TestATypeThatIsPutMeanwhileStays(t *testing.T) {
	b, ctx := catalogtest.New(), t.Context()
	checktest.NoError(t, checktest.Err(Types.Put(ctx, b, "shop", &yardv1.TaskType{Name: "a"})))
	b.Meanwhile = func() { // after the domain was looked for
		b.Meanwhile = func() { // after the types were listed
			checktest.Check(t, checktest.Err(Types.Put(ctx, b, "shop", &yardv1.TaskType{Name: "a", MaxConcurrency: 4})))
		}
	}
	_, err := DeleteDomain(ctx, b, "shop", 0)
	refused(t, "a domain that is gone", err, fault.NotFound, "")
	if !b.Has(Types.Key("shop", "a")) {
		t.Error("the new type was deleted")
	}
}

func TestABucketThatIsAwayIsUnavailable(t *testing.T) {
	b, ctx := catalogtest.New(), t.Context()
	b.Broken = errBroken
	_, put := Domains.Put(ctx, b, "", &yardv1.Domain{Name: "shop"})
	_, update := Types.Put(ctx, b, "shop", &yardv1.TaskType{Name: "x", Revision: 3})
	_, domain := Domains.Get(ctx, b, "", "shop")
	_, ty := Types.Get(ctx, b, "shop", "x")
	_, gone := DeleteDomain(ctx, b, "shop", 0)
	_, goneType := Types.Delete(ctx, b, "shop", "x", 0)
	for what, err := range map[string]error{"put": put, "update": update, "get": domain, "get a type": ty, "delete": gone, "delete a type": goneType} {
		refused(t, what, err, fault.Unavailable, "")
	}
}

func TestTheVersionOnlyRises(t *testing.T) {
	b, ctx := catalogtest.New(), t.Context()
	if none, err := GetVersion(ctx, b); err == nil {
		t.Fatalf("a bucket without one has version %d", none.Number)
	}
	checktest.NoError(t, CreateVersion(ctx, b, 2))
	checktest.Check(t, CreateVersion(ctx, b, 3))
	read, err := GetVersion(ctx, b)
	if err != nil || read.Number != 2 {
		t.Fatal(read, err)
	}
	for _, to := range []uint32{0, 1, 2} {
		if err := RaiseVersion(ctx, b, read, to); err == nil {
			t.Errorf("it went from 2 to %d", to)
		}
	}
	checktest.NoError(t, RaiseVersion(ctx, b, read, 4))
	if err := RaiseVersion(ctx, b, read, 5); err != ErrVersionChanged {
		t.Errorf("it was raised by who had not read it: %v", err)
	}
	if now, err := GetVersion(ctx, b); err != nil || now.Number != 4 {
		t.Errorf("%v %v", now, err)
	}
	for _, text := range []string{"", "0", "-1", "x", "4294967296"} {
		checktest.NoError(t, checktest.Err(b.Put(ctx, topology.VersionKey, []byte(text))))
		if v, err := GetVersion(ctx, b); err == nil {
			t.Errorf("%q is version %d", text, v.Number)
		}
	}
	b.Broken = errBroken
	if _, err := GetVersion(ctx, b); err == nil {
		t.Error("a bucket that is away has a version")
	}
	if CreateVersion(ctx, b, 2) == nil || RaiseVersion(ctx, b, read, 9) == nil {
		t.Error("it was written nowhere")
	}
}
