package settings

import (
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
	switch err := f.read(v, raw); {
	case err == nil:
		return nil
	case f.secret:
		return fmt.Errorf("want %s", f.want()) // without the value
	case raw == nil:
		return fmt.Errorf("want %s, got nothing", f.want())
	default:
		return fmt.Errorf("want %s, got %q", f.want(), f.shown(fmt.Sprint(raw)))
	}
}

// errForm says that a value has the wrong form; set turns any error of read into words.
var errForm = errors.New("wrong form")

func (f *field) read(v reflect.Value, raw any) error {
	text, isText := raw.(string)
	switch {
	case f.isList():
		return readList(v, raw)
	case v.Kind() == reflect.String && isText:
		v.SetString(text)
		return nil
	case v.Kind() == reflect.String:
		return errForm // a bare 1.10 in YAML is a number and would lose its zero: ask for quotes
	}
	switch raw.(type) {
	case string, bool, int, int64, uint64, float64: // what YAML makes of scalars
		return f.parse(v, strings.TrimSpace(fmt.Sprint(raw)))
	}
	return errForm
}

// readList reads a list of the file, or text with commas.
func readList(v reflect.Value, raw any) error {
	var list []string
	switch raw := raw.(type) {
	case []any:
		for _, item := range raw {
			text, ok := item.(string)
			if !ok {
				return errForm
			}
			list = append(list, text)
		}
	case string:
		for item := range strings.SplitSeq(raw, ",") {
			list = append(list, strings.TrimSpace(item))
		}
	default:
		return errForm
	}
	v.Set(reflect.ValueOf(list))
	return nil
}

// parse reads text into a bool, a whole number or a duration.
func (f *field) parse(v reflect.Value, text string) error {
	switch {
	case f.typ == durationTyp:
		d, err := time.ParseDuration(text)
		v.SetInt(int64(d))
		return err
	case f.bytes:
		n, err := parseSize(text)
		v.SetInt(n)
		return err
	case v.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(text)
		v.SetBool(b)
		return err
	}
	n, err := strconv.ParseInt(text, 10, f.typ.Bits())
	v.SetInt(n)
	return err
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

// parseSize reads "400KiB", "1 GB" or a plain number of bytes.
func parseSize(text string) (int64, error) {
	unit := int64(1)
	for _, u := range sizeUnits {
		if len(text) > len(u.name) && strings.EqualFold(text[len(text)-len(u.name):], u.name) {
			text, unit = strings.TrimSpace(text[:len(text)-len(u.name)]), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if size := n * unit; err != nil || n >= 0 && size/unit == n {
		return size, err
	}
	return 0, errForm
}

// formatSize is the inverse of parseSize, in the binary units only.
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
	switch {
	case f.isList():
		return "a list of text (in quotes) each"
	case f.typ == durationTyp:
		return `a duration such as "5s"`
	case f.bytes:
		return `a size such as "400KiB"`
	case f.typ.Kind() == reflect.Bool:
		return "true or false"
	case f.typ.Kind() == reflect.String:
		return "text (in quotes)"
	}
	return "a whole number"
}

// format gives a value as text that set reads back. Secrets that are set become
// stars.
func (f *field) format(v reflect.Value) string {
	switch {
	case f.secret && !v.IsZero():
		return "********"
	case f.isList():
		items := make([]string, v.Len())
		for i := range items {
			items[i] = f.shown(v.Index(i).String())
		}
		return strings.Join(items, ",")
	case f.bytes:
		return formatSize(v.Int())
	}
	return f.shown(fmt.Sprint(v.Interface()))
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
