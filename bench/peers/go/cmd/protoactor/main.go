// Proto.Actor under the shared workloads. MAILBOX=bounded takes its ring of 1,024 places, whose
// senders wait for room; otherwise its unbounded lock-free queue.
package main

import (
	"log/slog"
	"os"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/router"
	"peers/workloads"
)

const (
	askTimeout = time.Minute
	mailboxLen = 1024
	// Messages per turn of an actor before the goroutine yields; the library's default.
	throughput = 300
)

type add struct{ number uint64 }
type ask struct{ number uint64 }
type burst struct{ count uint64 }

type counter struct{ tally *workloads.Tally }

func (c *counter) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case add:
		c.tally.Add(message.number)
	case ask:
		ctx.Respond(c.tally.Add(message.number))
	case *actor.Started:
		c.tally.Started()
	case *actor.Stopped:
		c.tally.Stopped()
	}
}

type producer struct{ target *actor.PID }

func (p *producer) Receive(ctx actor.Context) {
	if message, ok := ctx.Message().(burst); ok {
		for number := range message.count {
			ctx.Send(p.target, add{number})
		}
	}
}

type protoactor struct {
	root  *actor.RootContext
	props *actor.Props
	// next is what the producer function hands out: Spawn calls it before it returns.
	next actor.Actor
}

func (p *protoactor) Name() string        { return "protoactor-go" }
func (p *protoactor) PublishesBy() string { return "broadcast group" }

func (p *protoactor) LifecycleMax() uint64 { return 0 }
func (p *protoactor) spawn(next actor.Actor) *actor.PID {
	p.next = next
	return p.root.Spawn(p.props)
}

func (p *protoactor) Spawn(tally *workloads.Tally) *actor.PID { return p.spawn(&counter{tally}) }
func (p *protoactor) SpawnProducer(target *actor.PID) *actor.PID {
	return p.spawn(&producer{target})
}
func (p *protoactor) Burst(to *actor.PID, count uint64) { p.root.Send(to, burst{count}) }
func (p *protoactor) Tell(to *actor.PID, number uint64) { p.root.Send(to, add{number}) }
func (p *protoactor) Ask(to *actor.PID, number uint64) uint64 {
	reply, err := p.root.RequestFuture(to, ask{number}, askTimeout).Result()
	if err != nil {
		panic(err)
	}
	return reply.(uint64)
}
func (p *protoactor) Stop(address *actor.PID) { p.root.Poison(address) }
func (p *protoactor) Group(members []workloads.Tally) *actor.PID {
	addresses := make([]*actor.PID, len(members))
	for i := range members {
		addresses[i] = p.Spawn(&members[i])
	}
	return p.root.Spawn(router.NewBroadcastGroup(addresses...))
}
func (p *protoactor) Publish(group *actor.PID, number uint64) { p.root.Send(group, add{number}) }

func main() {
	workloads.Main(func(workloads.Crowd) workloads.System[*actor.PID, *actor.PID] {
		quiet := func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }
		system := actor.NewActorSystem(actor.WithLoggerFactory(quiet))
		p := &protoactor{root: system.Root}
		options := []actor.PropsOption{actor.WithDispatcher(actor.NewDefaultDispatcher(throughput))}
		if os.Getenv("MAILBOX") == "bounded" {
			options = append(options, actor.WithMailbox(actor.Bounded(mailboxLen)))
		}
		p.props = actor.PropsFromProducer(func() actor.Actor { return p.next }, options...)
		return p
	})
}
