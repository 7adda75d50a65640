// The map's /vehicle endpoint on Go's actor frameworks: one actor per vehicle, asked on every request, the same JSON as ours.
//
// -system goakt (default) or protoactor, -http net (net/http, what most users take) or fast (fasthttp, what the hurried take).
// It prints "map on http://ADDRESS" once it serves. Vehicles are told their position at the start; nothing else runs.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

const askTimeout = 5 * time.Second

// Position is the answer, field by field as ours.
type Position struct {
	ID         string  `json:"id"`
	Operator   uint16  `json:"operator"`
	Vehicle    uint32  `json:"vehicle"`
	Mode       string  `json:"mode"`
	Line       string  `json:"line"`
	Direction  uint8   `json:"direction"`
	Latitude   float64 `json:"latitude"`
	Longitude  float64 `json:"longitude"`
	SpeedMps   float64 `json:"speed_mps"`
	HeadingDeg uint16  `json:"heading_deg"`
	DelayS     int16   `json:"delay_s"`
	AtMs       uint64  `json:"at_ms"`
}

// Problem is a refusal (RFC 9457).
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// System is a framework that holds vehicles.
type System interface {
	Spawn(key string, position Position)
	// Ask returns the vehicle's JSON, asked from its actor; nil for an unknown vehicle.
	Ask(key string) ([]byte, error)
}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address")
	system := flag.String("system", "goakt", "goakt or protoactor")
	server := flag.String("http", "net", "net or fast")
	vehicles := flag.Int("vehicles", 2000, "vehicles")
	flag.Parse()
	var actors System
	switch *system {
	case "goakt":
		actors = newGoakt()
	case "protoactor":
		actors = newProtoactor()
	default:
		log.Fatalf("no system %s", *system)
	}
	for number := range *vehicles {
		actors.Spawn(key(9000, uint64(number)), Position{
			ID: key(9000, uint64(number)), Operator: 9000, Vehicle: uint32(number), Mode: "bus", Line: "L", Direction: 1,
			Latitude: 60.2 + float64(number)/100_000, Longitude: 20.6, SpeedMps: 9.5, HeadingDeg: 90, DelayS: -12,
			AtMs: uint64(time.Now().UnixMilli()),
		})
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("map on http://%s\n", listener.Addr())
	if *server == "fast" {
		log.Fatal(fasthttp.Serve(listener, fast(actors)))
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /vehicle", func(w http.ResponseWriter, r *http.Request) {
		status, kind, body := answer(actors, r.URL.Query().Get("id"))
		w.Header().Set("content-type", kind)
		w.WriteHeader(status)
		w.Write(body)
	})
	log.Fatal(http.Serve(listener, mux))
}

func fast(actors System) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if string(ctx.Path()) != "/vehicle" {
			ctx.SetStatusCode(404)
			return
		}
		status, kind, body := answer(actors, string(ctx.QueryArgs().Peek("id")))
		ctx.SetStatusCode(status)
		ctx.SetContentType(kind)
		ctx.SetBody(body)
	}
}

func answer(actors System, id string) (int, string, []byte) {
	operator, number, found := strings.Cut(id, "/")
	o, operatorErr := strconv.ParseUint(operator, 10, 16)
	n, numberErr := strconv.ParseUint(number, 10, 32)
	if !found || operatorErr != nil || numberErr != nil || o > 9_999 || n > 99_999 {
		return refuse("Bad request", 400, "a vehicle is named OPERATOR/NUMBER")
	}
	body, err := actors.Ask(key(o, n))
	if err != nil {
		return refuse("Unavailable", 503, err.Error())
	}
	if body == nil {
		return refuse("Not found", 404, "vehicle "+id+" has never been heard of")
	}
	return 200, "application/json", body
}

func refuse(title string, status int, detail string) (int, string, []byte) {
	body, _ := json.Marshal(Problem{title, status, detail})
	return status, "application/problem+json", body
}

func key(operator, number uint64) string { return fmt.Sprintf("%04d/%05d", operator, number) }
