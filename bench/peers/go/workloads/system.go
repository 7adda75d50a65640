package workloads

// System is an actor library as the workloads see it. A is the address of an actor that wraps a
// Tally, G the subscribers of one publisher.
type System[A any, G any] interface {
	Name() string
	// PublishesBy says how Publish reaches the subscribers.
	PublishesBy() string
	// LifecycleMax bounds the actors of spawn and stop, for a system whose stop slows down with
	// their number; 0 is no bound.
	LifecycleMax() uint64
	Spawn(tally *Tally) A
	// SpawnProducer starts an actor that answers Burst by telling target from its handler.
	SpawnProducer(target A) A
	Burst(producer A, count uint64)
	Tell(to A, number uint64)
	Ask(to A, number uint64) uint64
	Stop(address A)
	Group(members []Tally) G
	Publish(group G, number uint64)
}

// Crowd tells a system how many actors it will hold, where that decides a setting.
type Crowd int

const (
	// Few actors: tells and asks.
	Few Crowd = iota
	// Many actors: memory, spawn, stop, publish.
	Many
)
