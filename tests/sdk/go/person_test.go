package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/centrifugal/centrifuge-go"
)

// Longer than anything takes on a loaded machine.
const patience = 20 * time.Second

// format is how a client speaks: its constructor, and what it adds to the address.
type format struct {
	name  string
	query string
	make  func(string, centrifuge.Config) *centrifuge.Client
}

var formats = []format{
	{"json", "", centrifuge.NewJsonClient},
	{"protobuf", "", centrifuge.NewProtobufClient},
	{"protobuf by cf_protocol", "?cf_protocol=protobuf", centrifuge.NewProtobufClient},
	{"protobuf by format", "?format=protobuf", centrifuge.NewProtobufClient},
}

// event is what a stream of a room or of a user carries; a field that an event has not stays empty.
type event struct {
	Offset uint64
	Type   string `json:"type"`
	Body   string `json:"body"`
}

type person struct {
	t            *testing.T
	account      account
	client       *centrifuge.Client
	own          chan event
	connecting   chan struct{}
	disconnected chan uint32
}

// newPerson makes a client of the official SDK that is not connected yet.
func newPerson(t *testing.T, made account, url string, speaks format) *person {
	t.Helper()
	p := &person{t: t, account: made, own: make(chan event, 4096), connecting: make(chan struct{}, 64), disconnected: make(chan uint32, 64)}
	p.client = speaks.make(url, centrifuge.Config{
		Token: made.Token, Name: "sdk-test", MinReconnectDelay: 20 * time.Millisecond, MaxReconnectDelay: 200 * time.Millisecond,
		ReadTimeout: patience, HandshakeTimeout: patience,
	})
	p.client.OnPublication(func(published centrifuge.ServerPublicationEvent) { p.own <- decode(t, published.Publication) })
	p.client.OnConnecting(func(centrifuge.ConnectingEvent) { p.connecting <- struct{}{} })
	p.client.OnDisconnected(func(ended centrifuge.DisconnectedEvent) { p.disconnected <- ended.Code })
	t.Cleanup(p.client.Close)
	return p
}

func connect(t *testing.T, made account, url string, speaks format) *person {
	t.Helper()
	p := newPerson(t, made, url, speaks)
	connected := make(chan struct{}, 64)
	p.client.OnConnected(func(centrifuge.ConnectedEvent) { connected <- struct{}{} })
	if err := p.client.Connect(); err != nil {
		t.Fatal(err)
	}
	take(t, connected, "the connection")
	take(t, p.connecting, "the first attempt")
	return p
}

func decode(t *testing.T, published centrifuge.Publication) event {
	var decoded event
	if err := json.Unmarshal(published.Data, &decoded); err != nil {
		t.Errorf("an event is no JSON: %v: %s", err, published.Data)
	}
	decoded.Offset = published.Offset
	return decoded
}

func take[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case taken := <-from:
		return taken
	case <-time.After(patience):
		t.Fatalf("%s did not come within %v", what, patience)
		panic("unreachable")
	}
}

// rpc calls a method and decodes its answer.
func rpc[T any](p *person, method string, wish map[string]any) T {
	p.t.Helper()
	answer, err := call[T](p, method, wish)
	if err != nil {
		p.t.Fatalf("%s: %v", method, err)
	}
	return answer
}

func call[T any](p *person, method string, wish map[string]any) (T, error) {
	var answer T
	body, _ := json.Marshal(wish)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	reply, err := p.client.RPC(ctx, method, body)
	if err == nil {
		err = json.Unmarshal(reply.Data, &answer)
	}
	return answer, err
}

// refused says with which code a method is refused.
func (p *person) refused(code uint32, method string, wish map[string]any) {
	p.t.Helper()
	_, err := call[map[string]any](p, method, wish)
	var refusal *centrifuge.Error
	if !errors.As(err, &refusal) || refusal.Code != code {
		p.t.Fatalf("%s should be refused with %d: %v", method, code, err)
	}
}

// stream is a subscription and what came by it.
type stream struct {
	*centrifuge.Subscription
	t          *testing.T
	events     chan event
	subscribed chan centrifuge.SubscribedEvent
}

func (p *person) subscribe(channel string) *stream {
	p.t.Helper()
	subscription, err := p.client.NewSubscription(channel)
	if err != nil {
		p.t.Fatal(err)
	}
	s := &stream{subscription, p.t, make(chan event, 4096), make(chan centrifuge.SubscribedEvent, 64)}
	subscription.OnPublication(func(published centrifuge.PublicationEvent) { s.events <- decode(p.t, published.Publication) })
	subscription.OnSubscribed(func(subscribed centrifuge.SubscribedEvent) { s.subscribed <- subscribed })
	subscription.OnError(func(failed centrifuge.SubscriptionErrorEvent) { p.t.Errorf("%s: %v", channel, failed.Error) })
	if err := subscription.Subscribe(); err != nil {
		p.t.Fatal(err)
	}
	return s
}

// expectExactly takes as many messages as were sent: these, in order, without a gap in the stream.
func (s *stream) expectExactly(bodies ...string) {
	s.t.Helper()
	var before uint64
	for _, body := range bodies {
		came := take(s.t, s.events, body)
		if came.Body != body || (before != 0 && came.Offset != before+1) {
			s.t.Fatalf("after offset %d came %+v, not %q", before, came, body)
		}
		before = came.Offset
	}
}

func (s *stream) say(wish map[string]any) {
	s.t.Helper()
	body, _ := json.Marshal(wish)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := s.Publish(ctx, body); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stream) page(options ...centrifuge.HistoryOption) centrifuge.HistoryResult {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	page, err := s.History(ctx, options...)
	if err != nil {
		s.t.Fatal(err)
	}
	return page
}
