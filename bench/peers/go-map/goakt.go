// Vehicles on GoAkt. Its messages must be protobuf messages, so the actor answers with its JSON in the well-known BytesValue.
package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/tochemey/goakt/v3/actor"
	"github.com/tochemey/goakt/v3/goaktpb"
	golog "github.com/tochemey/goakt/v3/log"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type goaktVehicle struct{ position Position }

func (v *goaktVehicle) PreStart(context.Context) error { return nil }
func (v *goaktVehicle) PostStop(context.Context) error { return nil }
func (v *goaktVehicle) Receive(ctx *actor.ReceiveContext) {
	switch ctx.Message().(type) {
	case *goaktpb.PostStart:
	case *emptypb.Empty:
		body, _ := json.Marshal(&v.position)
		ctx.Response(wrapperspb.Bytes(body))
	default:
		ctx.Unhandled()
	}
}

type goakt struct {
	system actor.ActorSystem
	ctx    context.Context
	// Addresses are kept, as its users do: looking one up by name takes locks of the whole system.
	addresses map[string]*actor.PID
}

func newGoakt() *goakt {
	ctx := context.Background()
	system, err := actor.NewActorSystem("map", actor.WithLogger(golog.DiscardLogger))
	if err == nil {
		err = system.Start(ctx)
	}
	if err != nil {
		panic(err)
	}
	return &goakt{system, ctx, map[string]*actor.PID{}}
}

func (g *goakt) Spawn(key string, position Position) {
	name := strings.Replace(key, "/", "-", 1)
	pid, err := g.system.Spawn(g.ctx, name, &goaktVehicle{position}, actor.WithLongLived())
	if err != nil {
		panic(err)
	}
	g.addresses[key] = pid
}

func (g *goakt) Ask(key string) ([]byte, error) {
	pid := g.addresses[key]
	if pid == nil {
		return nil, nil
	}
	reply, err := actor.Ask(g.ctx, pid, &emptypb.Empty{}, askTimeout)
	if err != nil {
		return nil, err
	}
	return reply.(*wrapperspb.BytesValue).Value, nil
}
