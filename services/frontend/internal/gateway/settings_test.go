package gateway

import (
	"cmp"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
)

// kind is a kind of settings, with the verbs about it. N is some number that is set.
type kind struct {
	put  func(r *rig, name string, n int32, revision int64) (codec.Message, error)
	get  func(r *rig, name string) (codec.Message, error)
	list func(r *rig, domain, cursor string, limit int32) (codec.Message, error)
	del  func(r *rig, name string, revision int64) (codec.Message, error)
	add  func(t *testing.T, r *rig, domain string, names ...string)
	// most is how many a domain may have, field where one more is refused, hint what the refusal of one that is not there names.
	most        int
	field, hint string
}

var kinds = map[string]kind{
	"types": {
		func(r *rig, name string, n int32, revision int64) (codec.Message, error) {
			return asked(r, "shop", true, r.PutType, &yardv1.PutTypeRequest{Type: &yardv1.TaskType{Name: name, MaxConcurrency: n, Revision: revision}})
		},
		func(r *rig, name string) (codec.Message, error) {
			return asked(r, "shop", true, r.GetType, &yardv1.GetTypeRequest{Name: name})
		},
		func(r *rig, domain, cursor string, limit int32) (codec.Message, error) {
			return asked(r, domain, true, r.ListTypes, &yardv1.ListTypesRequest{Cursor: cursor, Limit: limit})
		},
		func(r *rig, name string, revision int64) (codec.Message, error) {
			return asked(r, "shop", true, r.DeleteType, &yardv1.DeleteTypeRequest{Name: name, Revision: revision})
		},
		func(t *testing.T, r *rig, domain string, names ...string) {
			add(t, r.catalog, catalog.Types, domain, each(names, func(name string) *yardv1.TaskType { return &yardv1.TaskType{Name: name} })...)
		},
		validate.TypesMax, "/type/name", "types.put",
	},
	"limits": {
		func(r *rig, name string, n int32, revision int64) (codec.Message, error) {
			return asked(r, "shop", true, r.PutLimit, &yardv1.PutLimitRequest{Limit: &yardv1.Limit{Name: name, Description: "their API", MaxConcurrency: n, Revision: revision}})
		},
		func(r *rig, name string) (codec.Message, error) {
			return asked(r, "shop", true, r.GetLimit, &yardv1.GetLimitRequest{Name: name})
		},
		func(r *rig, domain, cursor string, limit int32) (codec.Message, error) {
			return asked(r, domain, true, r.ListLimits, &yardv1.ListLimitsRequest{Cursor: cursor, Limit: limit})
		},
		func(r *rig, name string, revision int64) (codec.Message, error) {
			return asked(r, "shop", true, r.DeleteLimit, &yardv1.DeleteLimitRequest{Name: name, Revision: revision})
		},
		func(t *testing.T, r *rig, domain string, names ...string) {
			add(t, r.catalog, catalog.Limits, domain, each(names, func(name string) *yardv1.Limit { return &yardv1.Limit{Name: name, MaxConcurrency: 1} })...)
		},
		validate.LimitsMax, "/limit/name", "limits.put",
	},
	"tasklists": {
		func(r *rig, name string, n int32, revision int64) (codec.Message, error) {
			return asked(r, "shop", true, r.PutTasklist, &yardv1.PutTasklistRequest{Tasklist: &yardv1.Tasklist{Name: name, Priority: n, Revision: revision}})
		},
		func(r *rig, name string) (codec.Message, error) {
			return asked(r, "shop", true, r.GetTasklist, &yardv1.GetTasklistRequest{Name: name})
		},
		func(r *rig, domain, cursor string, limit int32) (codec.Message, error) {
			return asked(r, domain, true, r.ListTasklists, &yardv1.ListTasklistsRequest{Cursor: cursor, Limit: limit})
		},
		func(r *rig, name string, revision int64) (codec.Message, error) {
			return asked(r, "shop", true, r.DeleteTasklist, &yardv1.DeleteTasklistRequest{Name: name, Revision: revision})
		},
		func(t *testing.T, r *rig, domain string, names ...string) {
			add(t, r.catalog, catalog.Tasklists, domain, each(names, func(name string) *yardv1.Tasklist { return &yardv1.Tasklist{Name: name} })...)
		},
		validate.TasklistsMax, "/tasklist/name", "tasklists.put",
	},
	"groups": {
		func(r *rig, name string, n int32, revision int64) (codec.Message, error) {
			return asked(r, "shop", true, r.PutGroup, &yardv1.PutGroupRequest{Group: &yardv1.Group{Name: name, Weight: new(float64(n)), Revision: revision}})
		},
		func(r *rig, name string) (codec.Message, error) {
			return asked(r, "shop", true, r.GetGroup, &yardv1.GetGroupRequest{Name: name})
		},
		func(r *rig, domain, cursor string, limit int32) (codec.Message, error) {
			return asked(r, domain, true, r.ListGroups, &yardv1.ListGroupsRequest{Cursor: cursor, Limit: limit})
		},
		func(r *rig, name string, revision int64) (codec.Message, error) {
			return asked(r, "shop", true, r.DeleteGroup, &yardv1.DeleteGroupRequest{Name: name, Revision: revision})
		},
		func(t *testing.T, r *rig, domain string, names ...string) {
			add(t, r.catalog, catalog.Groups, domain, each(names, func(name string) *yardv1.Group { return &yardv1.Group{Name: name} })...)
		},
		validate.GroupsMax, "/group/name", "settings",
	},
}

func each[M any](names []string, one func(name string) M) (all []M) {
	for _, name := range names {
		all = append(all, one(name))
	}
	return all
}

// settingsIn are the settings that an answer holds.
func settingsIn(t *testing.T, resp codec.Message, err error) (all []proto.Message) {
	t.Helper()
	testkit.NoError(t, err)
	resp.(proto.Message).ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				all = append(all, v.List().Get(i).Message().Interface())
			}
		default:
			all = append(all, v.Message().Interface())
		}
		return true
	})
	return all
}

func revisionOf(m proto.Message) int64 { return m.(catalog.Settings).GetRevision() }

// R9: put and delete name the revision that they mean, and tell the new one.
func TestSettingsHaveRevisions(t *testing.T) {
	for name, k := range kinds {
		inBubble(t, name, func(t *testing.T) {
			r := newRig(t)
			one := func(resp codec.Message, err error) proto.Message {
				t.Helper()
				all := settingsIn(t, resp, err)
				testkit.MustEqual(t, "settings", len(all), 1)
				return all[0]
			}
			first := one(k.put(r, "a", 3, 0))
			next := one(k.put(r, "a", 2, revisionOf(first)))
			if revisionOf(first) == 0 || revisionOf(next) <= revisionOf(first) {
				t.Errorf("revision %d, then %d", revisionOf(first), revisionOf(next))
			}
			wantCode(t, testkit.Err(k.put(r, "a", 1, revisionOf(first))), fault.Stale)
			wantCode(t, testkit.Err(k.del(r, "a", revisionOf(first))), fault.Stale)
			if got := one(k.get(r, "a")); !proto.Equal(got, next) {
				t.Errorf("got %v, want %v", got, next)
			}
			if got := one(k.del(r, "a", revisionOf(next))); !proto.Equal(got, next) {
				t.Errorf("deleted %v, want %v", got, next)
			}
			for _, err := range []error{testkit.Err(k.get(r, "a")), testkit.Err(k.del(r, "a", 0))} {
				if wantAt(t, err, fault.NotFound, "/name"); !strings.Contains(err.Error(), k.hint) {
					t.Errorf("no next step: %v", err)
				}
			}
		})
	}
}

func TestSettingsAreListedPageByPage(t *testing.T) {
	for name, k := range kinds {
		inBubble(t, name, func(t *testing.T) {
			r := flooded(t, listing(make([]map[string]*yardv1.ListedTasklist, 2*rigPartitions)))
			between := cmp.Or(map[string]string{"types": "a.b", "groups": "a.b"}[name], "a-b") // names of the others have no dots
			k.add(t, r, "shop", "c", between, "b", "a")
			k.add(t, r, "flood", "z")
			var names []string
			for cursor, limit := "", int32(3); limit > 0; limit-- {
				resp, err := k.list(r, "shop", cursor, limit)
				for _, m := range settingsIn(t, resp, err) {
					names = append(names, m.(interface{ GetName() string }).GetName())
				}
				if cursor = resp.(interface{ GetNextCursor() string }).GetNextCursor(); cursor == "" {
					break
				}
			}
			testkit.Equal(t, "listed", names, []string{"a", between, "b", "c"})
			wantCode(t, testkit.Err(k.list(r, "nobody", "", 1)), fault.NotFound)
		})
	}
}

// R9, I7, I14: a domain's settings are bounded, since every process keeps them. What is there may be changed all the same.
func TestSettingsOfADomainAreBounded(t *testing.T) {
	for name, k := range kinds {
		inBubble(t, name, func(t *testing.T) {
			r := newRig(t)
			names := make([]string, k.most)
			for i := range names {
				names[i] = strconv.Itoa(i)
			}
			k.add(t, r, "shop", names...)
			wantCode(t, testkit.Err(k.put(r, "7", 1, 0)), "")
			wantAt(t, testkit.Err(k.put(r, "new", 1, 0)), fault.FailedPrecondition, k.field)
		})
	}
}
