package settings

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// set reads raw into v. Raw is text from the environment or a flag, or whatever
// YAML made of a value in the file.
func (f *field) set(v reflect.Value, raw any) error {
	err := f.setAny(v, raw)
	switch {
	case err == nil:
		return nil
	case f.secret:
		return fmt.Errorf("want %s", f.want()) // without the value
	case isText(f.typ) && !errors.Is(err, errForm):
		return err // the type knows better what it wants
	case raw == nil:
		return fmt.Errorf("want %s, got nothing", f.want())
	default:
		return fmt.Errorf("want %s, got %q", f.want(), f.shown(fmt.Sprint(raw)))
	}
}

// errForm says that a value has the wrong form; set turns it into words.
var errForm = errors.New("wrong form")

func (f *field) setAny(v reflect.Value, raw any) error {
	if !f.isList() {
		return f.setScalar(v, raw)
	}
	var items []any
	switch raw := raw.(type) {
	case []any:
		items = raw
	case string:
		for item := range strings.SplitSeq(raw, ",") {
			items = append(items, strings.TrimSpace(item))
		}
	default:
		return errForm
	}
	list := reflect.MakeSlice(f.typ, len(items), len(items))
	for i, item := range items {
		if err := f.setScalar(list.Index(i), item); err != nil {
			return err
		}
	}
	v.Set(list)
	return nil
}

func (f *field) setScalar(v reflect.Value, raw any) error {
	text, isString := raw.(string)
	if isText(v.Type()) {
		into, ok := v.Addr().Interface().(encoding.TextUnmarshaler)
		if !ok || !isString {
			return errForm
		}
		return into.UnmarshalText([]byte(text))
	}
	if v.Kind() == reflect.String {
		// A bare 1.10 in YAML is a number and would lose its zero: ask for quotes.
		if !isString {
			return errForm
		}
		v.SetString(text)
		return nil
	}
	switch raw.(type) {
	case string, bool, int, int64, uint64, float64: // what YAML makes of scalars
		return f.parse(v, strings.TrimSpace(fmt.Sprint(raw)))
	default:
		return errForm
	}
}

// parse reads text into a bool, a number or a duration.
func (f *field) parse(v reflect.Value, text string) error {
	bits := v.Type().Bits
	switch {
	case v.Type() == durationTyp:
		d, err := time.ParseDuration(text)
		v.SetInt(int64(d))
		return err
	case f.bytes:
		return setSize(v, text)
	case v.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(text)
		v.SetBool(b)
		return err
	case v.CanInt():
		n, err := strconv.ParseInt(text, 10, bits())
		v.SetInt(n)
		return err
	case v.CanUint():
		n, err := strconv.ParseUint(text, 10, bits())
		v.SetUint(n)
		return err
	default:
		n, err := strconv.ParseFloat(text, bits())
		v.SetFloat(n)
		return err
	}
}

// sizeUnits from large to small, so that a size is printed in the largest unit
// that divides it.
var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40},
	{"GiB", 1 << 30},
	{"MiB", 1 << 20},
	{"KiB", 1 << 10},
	{"TB", 1e12},
	{"GB", 1e9},
	{"MB", 1e6},
	{"KB", 1e3},
	{"B", 1},
}

// setSize reads "400KiB", "1 GB" or a plain number of bytes.
func setSize(v reflect.Value, text string) error {
	unit := int64(1)
	for _, u := range sizeUnits {
		if len(text) > len(u.name) && strings.EqualFold(text[len(text)-len(u.name):], u.name) {
			text, unit = strings.TrimSpace(text[:len(text)-len(u.name)]), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return err
	}
	size := n * unit
	if n < 0 || size/unit != n {
		return errForm
	}
	if v.CanUint() {
		if v.OverflowUint(uint64(size)) {
			return errForm
		}
		v.SetUint(uint64(size))
		return nil
	}
	if v.OverflowInt(size) {
		return errForm
	}
	v.SetInt(size)
	return nil
}

// formatSize is the inverse of setSize, in the binary units only.
func formatSize(n int64) string {
	for _, u := range sizeUnits {
		if strings.HasSuffix(u.name, "iB") && n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// want says in words what form a value has.
func (f *field) want() string {
	if f.isList() {
		return "a list of " + wantScalar(f.typ.Elem(), f.bytes) + " each"
	}
	return wantScalar(f.typ, f.bytes)
}

func wantScalar(t reflect.Type, bytes bool) string {
	switch {
	case t == durationTyp:
		return `a duration such as "5s"`
	case bytes:
		return `a size such as "400KiB"`
	case isText(t):
		return "a " + t.Name()
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.String:
		return "text (in quotes)"
	case t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64:
		return "a number"
	case reflect.Zero(t).CanUint():
		return fmt.Sprintf("a whole number from 0 to %d", ^uint64(0)>>(64-t.Bits()))
	default:
		return "a whole number"
	}
}

// format gives a value as text that set reads back. Secrets that are set become
// stars.
func (f *field) format(v reflect.Value) string {
	if f.secret && !v.IsZero() {
		return "********"
	}
	if !f.isList() {
		return f.shown(f.formatScalar(v))
	}
	items := make([]string, v.Len())
	for i := range items {
		items[i] = f.shown(f.formatScalar(v.Index(i)))
	}
	return strings.Join(items, ",")
}

// userinfo is what stands between the scheme, or the beginning, of a URL and its host.
var userinfo = regexp.MustCompile(`(^|[,\s]|://)[^/,\s]*@`)

// shown is a value without its secrets: in a URL, the user and password, or the token.
func (f *field) shown(text string) string {
	if !f.url {
		return text
	}
	return userinfo.ReplaceAllString(text, "${1}********@")
}

func (f *field) formatScalar(v reflect.Value) string {
	switch {
	case f.bytes && v.CanInt():
		return formatSize(v.Int())
	case f.bytes && v.CanUint():
		return formatSize(int64(v.Uint()))
	}
	if m, ok := v.Addr().Interface().(encoding.TextMarshaler); ok {
		if text, err := m.MarshalText(); err == nil {
			return string(text)
		}
	}
	return fmt.Sprint(v.Interface())
}
