package workloads

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"time"
)

// gcPercent lets the heap grow to five times the live data before a collection: the setting that
// the runtime's guide names for throughput.
const gcPercent = 400

var errNoWorkload = errors.New("no such workload")

// Main speaks the command line of every system under test: WORKLOAD --messages N --seconds S.
// Exit status 1 is a failed check, 2 a bad argument, 3 a workload this system does not have.
func Main[A, G any](start func(Crowd) System[A, G]) {
	debug.SetGCPercent(gcPercent)
	name, b, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	samples, system, err := run(start, name, b)
	if errors.Is(err, errNoWorkload) {
		fmt.Fprintf(os.Stderr, "no workload %s\n", name)
		os.Exit(3)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s %s: %v\n", system, name, err)
		os.Exit(1)
	}
	for _, s := range samples {
		line, _ := json.Marshal(map[string]any{
			"system": system, "workload": name, "metric": s.metric, "unit": s.unit,
			"value": s.value, "note": s.note,
		})
		fmt.Println(string(line))
	}
}

func run[A, G any](
	start func(Crowd) System[A, G], name string, b budget,
) (samples []sample, system string, err error) {
	few := func() System[A, G] { s := start(Few); system = s.Name(); return s }
	many := func() System[A, G] { s := start(Many); system = s.Name(); return s }
	switch name {
	case "tell-8to1":
		samples, err = tell(few(), b, 1, false)
	case "tell-8to1-actors":
		samples, err = tell(few(), b, 1, true)
	case "tell-8to8":
		samples, err = tell(few(), b, 8, false)
	case "ask-1":
		samples, err = askOne(few(), b)
	case "ask-8":
		samples, err = askEight(few(), b)
	case "publish-1k":
		samples, err = publish(many(), b, 1_000)
	case "publish-100k":
		samples, err = publish(many(), b, 100_000)
	case "publish-1m":
		samples, err = publish(many(), b, 1_000_000)
	case "actor-memory":
		samples, err = memory(many(), b)
	case "spawn", "stop":
		samples, err = lifecycle(many(), b, name)
	default:
		err = errNoWorkload
	}
	return samples, system, err
}

func parse(arguments []string) (name string, b budget, err error) {
	b = budget{messages: 2_000_000, seconds: time.Second, warmUp: 300 * time.Millisecond}
	for i := 0; i < len(arguments); i++ {
		argument := arguments[i]
		if argument[0] != '-' {
			name = argument
			continue
		}
		if i++; i == len(arguments) {
			return "", b, fmt.Errorf("%s needs a value", argument)
		}
		value, err := strconv.ParseFloat(arguments[i], 64)
		if err != nil || value < 0 {
			return "", b, fmt.Errorf("%s %s is not a number", argument, arguments[i])
		}
		switch argument {
		case "--messages":
			b.messages = uint64(value)
		case "--seconds":
			b.seconds = time.Duration(value * float64(time.Second))
		case "--warmup":
			b.warmUp = time.Duration(value * float64(time.Second))
		default:
			return "", b, fmt.Errorf("unknown option %s", argument)
		}
	}
	if name == "" || b.messages == 0 {
		return "", b, errors.New("usage: WORKLOAD --messages N --seconds S [--warmup S]")
	}
	return name, b, nil
}
