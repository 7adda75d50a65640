package main

import (
	"fmt"
	"runtime"
	"slices"
	"time"
)

const (
	rate    = 200_000
	everyNs = int64(time.Second) / rate
)

// As many operations a second, each due at its moment, from which its time runs; see read_states/paced.rs.
func paced(c cache, seconds int, picks []pick) {
	runtime.LockOSThread()
	all := make([]uint32, 0, seconds*rate)
	longest := make([]uint32, seconds)
	begun := time.Now()
	for second := range seconds {
		for n := second * rate; n < (second+1)*rate; n++ {
			due := int64(n) * everyNs
			for time.Since(begun).Nanoseconds() < due {
			}
			operate(c, &picks[n%len(picks)], 1<<20+uint64(n))
			took := uint32(min(time.Since(begun).Nanoseconds()-due, 1<<32-1))
			all = append(all, took)
			longest[second] = max(longest[second], took)
		}
	}
	for _, took := range longest {
		fmt.Println("second", took)
	}
	slices.Sort(all)
	fmt.Println("p50", all[len(all)/2])
	fmt.Println("p99.9", all[len(all)*999/1000])
	fmt.Println("longest", all[len(all)-1])
}
