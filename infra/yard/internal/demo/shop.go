package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// The shop's task types and how urgent they are.
const (
	typeReset      = "email.reset"
	typeReceipt    = "email.receipt"
	typeFollowUp   = "email.followup"
	typeNewsletter = "email.newsletter"

	priorityReset      = 1
	priorityReceipt    = 2
	priorityFollowUp   = 3
	priorityNewsletter = 5
)

// The shop's customers, as fractions.
const (
	asksFollowUp   = 0.5 // of orders are asked about some seconds later
	regretFollowUp = 0.1 // of those say at once that they do not want to be
)

// customer is who gets an e-mail.
type customer struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// product is a thing the shop sells.
type product struct {
	Title string `json:"title"`
	Cents int64  `json:"cents"`
}

// line is one line of an order.
type line struct {
	product
	Quantity int64 `json:"quantity"`
}

// Total is in cents.
func (l line) Total() int64 { return l.Quantity * l.Cents }

// order is the payload of receipts and follow-ups.
type order struct {
	Number        string    `json:"number"`
	Customer      customer  `json:"customer"`
	Lines         []line    `json:"lines"`
	ShippingCents int64     `json:"shipping_cents"`
	PlacedAt      time.Time `json:"placed_at"`
}

// Total is in cents, shipping included.
func (o order) Total() int64 {
	sum := o.ShippingCents
	for _, l := range o.Lines {
		sum += l.Total()
	}
	return sum
}

// passwordReset is the payload of a reset.
type passwordReset struct {
	Customer customer `json:"customer"`
	Code     string   `json:"code"`
	Minutes  int      `json:"minutes"`
}

// newsletter is the payload of one copy of a newsletter.
type newsletter struct {
	Customer customer  `json:"customer"`
	Issue    int       `json:"issue"`
	Offers   []product `json:"offers"`
}

// newShop is the tenant with bursts, priorities, delayed tasks and cancels.
func newShop() (tenant, error) {
	mail, err := newMailer()
	if err != nil {
		return tenant{}, err
	}
	retry := &yard.RetryPolicy{MaxAttempts: 5, InitialInterval: 500 * time.Millisecond}
	var types []yard.TaskType
	for _, name := range []string{typeReset, typeReceipt, typeFollowUp, typeNewsletter} {
		types = append(types, yard.TaskType{Name: name, StartToClose: 30 * time.Second, Retry: retry})
	}
	return tenant{
		domain: "shop", tasklist: "emails", description: "An online shop's e-mails",
		types: types, concurrency: 8,
		register: func(w *yard.Worker) {
			yard.Handle(w, typeReset, func(ctx context.Context, p passwordReset) (sentMessage, error) {
				return mail.send(ctx, "reset", p.Customer, "Your code to set a new password", p)
			})
			yard.Handle(w, typeReceipt, func(ctx context.Context, o order) (sentMessage, error) {
				return mail.send(ctx, "receipt", o.Customer, "Thank you for order "+o.Number, o)
			})
			yard.Handle(w, typeFollowUp, func(ctx context.Context, o order) (sentMessage, error) {
				return mail.send(ctx, "followup", o.Customer, "How was your order?", o)
			})
			yard.Handle(w, typeNewsletter, func(ctx context.Context, n newsletter) (sentMessage, error) {
				return mail.send(ctx, "newsletter", n.Customer, fmt.Sprintf("This week at the shop (no. %d)", n.Issue), n)
			})
		},
		flows: []flow{
			{every: time.Second, tasks: orders, regret: unwanted},
			{every: 400 * time.Millisecond, tasks: resets},
			{every: 8 * time.Second, tasks: campaign},
		},
	}, nil
}

// orders is a burst of orders: a receipt each, and for some the question, some
// seconds later, how it was.
func orders(r *rand.Rand, scale float64) []yard.Task {
	burst := 20.0
	if r.IntN(5) == 0 {
		burst = 120 // somebody well known has praised the shop
	}
	var tasks []yard.Task
	for range scaled(r, burst*scale) {
		o := newOrder(r)
		tasks = append(tasks, yard.Task{Type: typeReceipt, Priority: priorityReceipt, Payload: o})
		if r.Float64() < asksFollowUp {
			later := 3*time.Second + time.Duration(r.Int64N(int64(3*time.Second)))
			tasks = append(tasks, yard.Task{Type: typeFollowUp, Priority: priorityFollowUp, Delay: later, Payload: o})
		}
	}
	return tasks
}

// unwanted picks the follow-ups that their customers do not want.
func unwanted(r *rand.Rand, tasks []yard.Task) []int {
	var picked []int
	for i, t := range tasks {
		if t.Type == typeFollowUp && r.Float64() < regretFollowUp {
			picked = append(picked, i)
		}
	}
	return picked
}

func resets(r *rand.Rand, scale float64) []yard.Task {
	tasks := make([]yard.Task, scaled(r, scale))
	for i := range tasks {
		tasks[i] = yard.Task{Type: typeReset, Priority: priorityReset, Payload: passwordReset{
			Customer: newCustomer(r), Code: fmt.Sprintf("%06d", r.IntN(1e6)), Minutes: 15,
		}}
	}
	return tasks
}

// campaign is a newsletter to many.
func campaign(r *rand.Rand, scale float64) []yard.Task {
	n := newsletter{Issue: 1 + r.IntN(52), Offers: []product{pick(r, products()), pick(r, products()), pick(r, products())}}
	tasks := make([]yard.Task, scaled(r, 400*scale))
	for i := range tasks {
		n.Customer = newCustomer(r)
		tasks[i] = yard.Task{Type: typeNewsletter, Priority: priorityNewsletter, Payload: n}
	}
	return tasks
}

func newOrder(r *rand.Rand) order {
	o := order{
		Number: fmt.Sprintf("A%07d", r.IntN(1e7)), Customer: newCustomer(r), ShippingCents: 490,
		PlacedAt: time.Date(2026, 1, 1, 0, 0, r.IntN(365*24*3600), 0, time.UTC),
	}
	for range 1 + r.IntN(4) {
		o.Lines = append(o.Lines, line{product: pick(r, products()), Quantity: 1 + r.Int64N(3)})
	}
	return o
}

func newCustomer(r *rand.Rand) customer {
	first := pick(r, []string{"Zoë", "Liam", "Aylin", "Søren", "Chidi", "Mei", "Jürgen", "Inés"})
	last := pick(r, []string{"O'Brien", "Müller", "Okafor", "Łukasik", "Chen", "García & Hijos", "Ødegård", "Smith"})
	return customer{Name: first + " " + last, Email: fmt.Sprintf("customer%05d@example.com", r.IntN(1e5))}
}

func products() []product {
	return []product{
		{"Teapot <“Nordlys”>, 1.2 l", 4990},
		{"Notebook A5, dotted", 1290},
		{"Espresso beans, 1 kg", 2450},
		{"Bicycle bell", 890},
		{"Linen apron", 3400},
		{"Chess set, walnut & maple", 12900},
		{"Reading lamp", 7950},
		{"Sourdough starter", 600},
	}
}
