// Hollywood under the shared workloads. Its inbox is a ring that grows; it starts with 1,024 places
// where messages are counted and 16 where actors are.
package main

import (
	"strconv"
	"time"

	"github.com/anthdm/hollywood/actor"
	"peers/workloads"
)

const askTimeout = time.Minute

type add struct{ number uint64 }
type ask struct{ number uint64 }
type burst struct{ count uint64 }

type counter struct{ tally *workloads.Tally }

func (c *counter) Receive(ctx *actor.Context) {
	switch message := ctx.Message().(type) {
	case add:
		c.tally.Add(message.number)
	case ask:
		ctx.Respond(c.tally.Add(message.number))
	case actor.Started:
		c.tally.Started()
	case actor.Stopped:
		c.tally.Stopped()
	}
}

type producer struct{ target *actor.PID }

func (p *producer) Receive(ctx *actor.Context) {
	if message, ok := ctx.Message().(burst); ok {
		for number := range message.count {
			ctx.Send(p.target, add{number})
		}
	}
}

type hollywood struct {
	engine *actor.Engine
	inbox  int
	nextID int
	// next is what the producer function hands out: Spawn calls it before it returns.
	next actor.Receiver
}

func (h *hollywood) Name() string         { return "hollywood" }
func (h *hollywood) PublishesBy() string  { return "loop of tells" }
func (h *hollywood) LifecycleMax() uint64 { return 0 }
func (h *hollywood) produce() actor.Receiver {
	return h.next
}

func (h *hollywood) spawn(receiver actor.Receiver) *actor.PID {
	h.next = receiver
	h.nextID++
	return h.engine.Spawn(h.produce, "counter",
		actor.WithID(strconv.Itoa(h.nextID)), actor.WithInboxSize(h.inbox))
}

func (h *hollywood) Spawn(tally *workloads.Tally) *actor.PID { return h.spawn(&counter{tally}) }
func (h *hollywood) SpawnProducer(target *actor.PID) *actor.PID {
	return h.spawn(&producer{target})
}
func (h *hollywood) Burst(to *actor.PID, count uint64) { h.engine.Send(to, burst{count}) }
func (h *hollywood) Tell(to *actor.PID, number uint64) { h.engine.Send(to, add{number}) }
func (h *hollywood) Ask(to *actor.PID, number uint64) uint64 {
	reply, err := h.engine.Request(to, ask{number}, askTimeout).Result()
	if err != nil {
		panic(err)
	}
	return reply.(uint64)
}
func (h *hollywood) Stop(address *actor.PID) { h.engine.Poison(address) }

func (h *hollywood) Group(members []workloads.Tally) []*actor.PID {
	addresses := make([]*actor.PID, len(members))
	for i := range members {
		addresses[i] = h.Spawn(&members[i])
	}
	return addresses
}

// Publish does not use the event stream: at 100,000 subscribers it took 5 µs for each.
func (h *hollywood) Publish(group []*actor.PID, number uint64) {
	for _, address := range group {
		h.Tell(address, number)
	}
}

func main() {
	workloads.Main(func(crowd workloads.Crowd) workloads.System[*actor.PID, []*actor.PID] {
		engine, err := actor.NewEngine(actor.NewEngineConfig())
		if err != nil {
			panic(err)
		}
		inbox := 1024
		if crowd == workloads.Many {
			inbox = 16
		}
		return &hollywood{engine: engine, inbox: inbox}
	})
}
