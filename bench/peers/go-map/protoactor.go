// Vehicles on Proto.Actor; its messages are plain values.
package main

import (
	"encoding/json"
	"io"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
)

type getPosition struct{}

type protoVehicle struct{ position Position }

func (v *protoVehicle) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*getPosition); ok {
		ctx.Respond(&v.position)
	}
}

type protoactor struct {
	system    *actor.ActorSystem
	addresses map[string]*actor.PID
}

func newProtoactor() *protoactor {
	quiet := actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(io.Discard, nil))
	})
	return &protoactor{actor.NewActorSystem(quiet), map[string]*actor.PID{}}
}

func (p *protoactor) Spawn(key string, position Position) {
	props := actor.PropsFromProducer(func() actor.Actor { return &protoVehicle{position} })
	p.addresses[key] = p.system.Root.Spawn(props)
}

func (p *protoactor) Ask(key string) ([]byte, error) {
	pid := p.addresses[key]
	if pid == nil {
		return nil, nil
	}
	reply, err := p.system.Root.RequestFuture(pid, &getPosition{}, askTimeout).Result()
	if err != nil {
		return nil, err
	}
	return json.Marshal(reply.(*Position))
}
