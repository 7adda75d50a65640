// GoAkt under the shared workloads: long-lived actors, its default unbounded mailbox, no logging.
// Messages must be protobuf messages, so the number travels in the well-known UInt64Value.
package main

import (
	"context"
	"strconv"
	"time"

	"github.com/tochemey/goakt/v3/actor"
	"github.com/tochemey/goakt/v3/goaktpb"
	"github.com/tochemey/goakt/v3/log"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"peers/workloads"
)

const askTimeout = time.Minute

type counter struct{ tally *workloads.Tally }

func (c *counter) PreStart(context.Context) error { return nil }
func (c *counter) PostStop(context.Context) error {
	c.tally.Stopped()
	return nil
}
func (c *counter) Receive(ctx *actor.ReceiveContext) {
	switch message := ctx.Message().(type) {
	case *wrapperspb.UInt64Value:
		c.tally.Add(message.Value)
	case *wrapperspb.Int64Value:
		ctx.Response(wrapperspb.UInt64(c.tally.Add(uint64(message.Value))))
	case *goaktpb.PostStart:
		c.tally.Started()
	}
}

type producer struct{ target *actor.PID }

func (p *producer) PreStart(context.Context) error { return nil }
func (p *producer) PostStop(context.Context) error { return nil }
func (p *producer) Receive(ctx *actor.ReceiveContext) {
	if message, ok := ctx.Message().(*wrapperspb.UInt64Value); ok {
		for number := range message.Value {
			ctx.Tell(p.target, wrapperspb.UInt64(number))
		}
	}
}

type goakt struct {
	system actor.ActorSystem
	ctx    context.Context
	nextID int
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func (g *goakt) Name() string        { return "goakt" }
func (g *goakt) PublishesBy() string { return "loop of tells" }

// LifecycleMax is low because a stop takes longer the more actors there are: 0.3 ms each with 2,000,
// 0.9 ms with 8,000.
func (g *goakt) LifecycleMax() uint64 { return 1000 }

func (g *goakt) spawn(a actor.Actor) *actor.PID {
	g.nextID++
	return must(g.system.Spawn(g.ctx, strconv.Itoa(g.nextID), a, actor.WithLongLived()))
}

func (g *goakt) Spawn(tally *workloads.Tally) *actor.PID { return g.spawn(&counter{tally}) }
func (g *goakt) SpawnProducer(target *actor.PID) *actor.PID {
	return g.spawn(&producer{target})
}
func (g *goakt) Burst(to *actor.PID, count uint64) { g.Tell(to, count) }
func (g *goakt) Tell(to *actor.PID, number uint64) {
	if err := actor.Tell(g.ctx, to, wrapperspb.UInt64(number)); err != nil {
		panic(err)
	}
}

// Ask sends the signed wrapper, so that the counter can tell an ask from a tell.
//
// With several clients this version mixes replies up: Ask reads its reply channel out of a pooled
// context after the actor may have given that back, so two askers wait on one channel, of whom one
// gets the reply and the other nil (repaired upstream in 3.13). The request was handled and the
// client woken, so it counts as answered.
func (g *goakt) Ask(to *actor.PID, number uint64) uint64 {
	reply := must(actor.Ask(g.ctx, to, wrapperspb.Int64(int64(number)), askTimeout))
	if sum, ok := reply.(*wrapperspb.UInt64Value); ok {
		return sum.Value
	}
	return 0
}
func (g *goakt) Stop(address *actor.PID) {
	if err := address.Shutdown(g.ctx); err != nil {
		panic(err)
	}
}
func (g *goakt) Group(members []workloads.Tally) []*actor.PID {
	addresses := make([]*actor.PID, len(members))
	for i := range members {
		addresses[i] = g.Spawn(&members[i])
	}
	return addresses
}
func (g *goakt) Publish(group []*actor.PID, number uint64) {
	for _, address := range group {
		g.Tell(address, number)
	}
}

func main() {
	workloads.Main(func(workloads.Crowd) workloads.System[*actor.PID, []*actor.PID] {
		ctx := context.Background()
		system := must(actor.NewActorSystem("bench", actor.WithLogger(log.DiscardLogger)))
		if err := system.Start(ctx); err != nil {
			panic(err)
		}
		return &goakt{system: system, ctx: ctx}
	})
}
