package validate

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
)

// headerReserved begins the names of headers that the engine may give a meaning.
const headerReserved = "yard-"

// headers checks the headers of a task. The first bad one by name is reported, so that the answer is always the same.
func headers(path string, all map[string]string) error {
	if len(all) > HeadersMax {
		return invalid(path, "holds %d headers, at most %d are allowed", len(all), HeadersMax)
	}
	size := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := header(path, name, all[name]); err != nil {
			return err
		}
		size += len(name) + len(all[name])
	}
	if size > HeaderBytesMax {
		return invalid(path, "takes %d bytes, at most %d are allowed, names and values together", size, HeaderBytesMax)
	}
	return nil
}

// header checks one header. A bad name is not part of the path, since it may hold anything.
func header(path, name, value string) error {
	switch {
	case !headerName(name):
		return invalid(path, "the name %.80q is not [A-Za-z0-9._-]{1,%d}", name, HeaderNameBytesMax)
	case len(name) >= len(headerReserved) && strings.EqualFold(name[:len(headerReserved)], headerReserved):
		return invalid(path+"/"+name, "names that begin with %s are reserved", headerReserved)
	case len(value) > HeaderValueBytesMax:
		return invalid(path+"/"+name, "is %d bytes long, at most %d are allowed", len(value), HeaderValueBytesMax)
	case !utf8.ValidString(value):
		return invalid(path+"/"+name, "is not valid UTF-8")
	case strings.ContainsFunc(value, longInJSON):
		return invalid(path+"/"+name, "holds a control character, and only tabs and line breaks are allowed")
	}
	return nil
}

// longInJSON tells whether JSON takes six bytes for a character of one byte. Answers leave room for two.
func longInJSON(c rune) bool { return c < ' ' && c != '\t' && c != '\n' && c != '\r' }

func headerName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= HeaderNameBytesMax
}

// storedHeaders are headers as the log keeps them: by name, so that equal ones are equal bytes.
func storedHeaders(all map[string]string) []*logv1.Header {
	if len(all) == 0 {
		return nil
	}
	stored := make([]*logv1.Header, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		stored = append(stored, &logv1.Header{Name: name, Value: all[name]})
	}
	return stored
}
