package archive

const (
	// MessageBytes is how large a message becomes, unless one task is larger. A reader moves that much for one task; a
	// message costs its writer about 10 µs.
	MessageBytes = 32 << 10
	// ownBytes is how much a domain must have to get messages of its own.
	ownBytes = MessageBytes / 2
)

// Item is what matters of one finished task.
type Item struct {
	Domain string
	// RetentionS is for how long it is kept, in seconds.
	RetentionS int64
	// Bytes is its encoded size.
	Bytes int
}

// Message is tasks that are stored together, by their index among the items.
type Message struct {
	// Domain is empty where several domains share the message.
	Domain     string
	RetentionS int64
	Items      []int
	Bytes      int
}

// Share puts items into messages: those of a domain that has many into messages of its own, the others by retention,
// since a message expires as a whole. Items keep their order within a message.
func Share(items []Item) []Message {
	bytes := make(map[string]int)
	for i := range items {
		bytes[items[i].Domain] += items[i].Bytes
	}
	type key struct {
		domain     string
		retentionS int64
	}
	open := make(map[key]int) // the message of each key that still takes items
	var all []Message
	for i := range items {
		k := key{retentionS: items[i].RetentionS}
		if bytes[items[i].Domain] >= ownBytes {
			k.domain = items[i].Domain
		}
		at, ok := open[k]
		if !ok || all[at].Bytes+items[i].Bytes > MessageBytes {
			at = len(all)
			open[k] = at
			all = append(all, Message{Domain: k.domain, RetentionS: k.retentionS})
		}
		m := &all[at]
		m.Items = append(m.Items, i)
		m.Bytes += items[i].Bytes
	}
	return all
}
