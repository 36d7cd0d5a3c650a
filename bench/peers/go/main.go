// Peer benchmark: Go goroutines and channels.
//
//	go_peer <bench> <threads>            one JSON line on stdout
//	go_peer tcp_server <threads> <port>  echo server, runs until killed
//	go_peer idle|sleep1ms <threads> <seconds>
//
// threads = 0 keeps the runtime's default. See bench/README.md for the definitions.
package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const peer = "go"

func die(format string, a ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", a...)
	os.Exit(1)
}

func check(ok bool, what string) {
	if !ok {
		die("go_peer: wrong result: %s", what)
	}
}

// ---------------------------------------------------------------- harness

// cost is what the whole process has used up: CPU microseconds, context switches.
type cost struct{ cpu, voluntary, involuntary float64 }

func costNow() cost {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		die("getrusage: %v", err)
	}
	tv := func(t syscall.Timeval) float64 { return float64(t.Sec)*1e6 + float64(t.Usec) }
	return cost{tv(ru.Utime) + tv(ru.Stime), float64(ru.Nvcsw), float64(ru.Nivcsw)}
}

func envInt(name string, def int) int {
	if v, err := strconv.Atoi(os.Getenv(name)); err == nil && v > 0 {
		return v
	}
	return def
}

func median(v []float64) float64 {
	s := append([]float64(nil), v...)
	sort.Float64s(s)
	m := len(s) / 2
	if len(s)%2 == 1 {
		return s[m]
	}
	return (s[m-1] + s[m]) / 2
}

// measure runs f once to warm up, then PEERS_RUNS times (at least 4, fewer
// than asked when PEERS_BUDGET_S seconds are used up).
func measure(bench string, threads, n int, f func()) {
	runs, budget := envInt("PEERS_RUNS", 7), time.Duration(envInt("PEERS_BUDGET_S", 12))*time.Second
	f()
	var wall, cpu, voluntary, involuntary []float64
	begin := time.Now()
	for i := 0; i < runs && (i < 4 || time.Since(begin) < budget); i++ {
		c0, t0 := costNow(), time.Now()
		f()
		dt := time.Since(t0)
		c1 := costNow()
		wall = append(wall, float64(dt.Nanoseconds())/1e3)
		cpu = append(cpu, c1.cpu-c0.cpu)
		voluntary = append(voluntary, c1.voluntary-c0.voluntary)
		involuntary = append(involuntary, c1.involuntary-c0.involuntary)
	}
	lo, hi := wall[0], wall[0]
	for _, w := range wall {
		if w < lo {
			lo = w
		}
		if w > hi {
			hi = w
		}
	}
	med := median(wall)
	fmt.Printf(`{"peer":"%s","bench":"%s","threads":%d,"n":%d,"median_us":%.1f,"min_us":%.1f,"max_us":%.1f,"runs":%d,"cpu_us":%.1f,"ns_per_op":%.1f,"vol_cs":%.1f,"invol_cs":%.1f,"samples_us":%s}`+"\n",
		peer, bench, threads, n, med, lo, hi, len(wall), median(cpu), med*1e3/float64(n), median(voluntary), median(involuntary), listed(wall))
}

// listed prints the numbers as a JSON list.
func listed(values []float64) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = strconv.FormatFloat(v, 'f', 1, 64)
	}
	return "[" + strings.Join(words, ",") + "]"
}

func mappingCount() int {
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		die("%v", err)
	}
	return strings.Count(string(b), "\n")
}

// procStatus returns a kB field of /proc/self/status in bytes.
func procStatus(key string) int {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		die("%v", err)
	}
	for _, line := range strings.Split(string(b), "\n") {
		if strings.HasPrefix(line, key+":") {
			v, _ := strconv.Atoi(strings.Fields(line)[1])
			return v * 1024
		}
	}
	return 0
}

// sleepMillis gives task i its deterministic pseudo-random 1..10 ms.
func sleepMillis(i int) int { return 1 + int((uint32(i)*2654435761)>>16)%10 }

// ---------------------------------------------------------------- workloads

func chainedSpawn(n int) {
	for i := 0; i < n; i++ {
		done := make(chan struct{})
		go func() { close(done) }()
		<-done
	}
}

func yieldMany(tasks, yields int) {
	var wg sync.WaitGroup
	wg.Add(tasks)
	for i := 0; i < tasks; i++ {
		go func() {
			for j := 0; j < yields; j++ {
				runtime.Gosched()
			}
			wg.Done()
		}()
	}
	wg.Wait()
}

func pingPong(n int) {
	// Go has no unbounded channel; the buffer is never full here.
	ping, pong := make(chan uint64, 16), make(chan uint64, 16)
	done := make(chan uint64)
	go func() {
		for v := range ping {
			pong <- v + 1
		}
	}()
	go func() {
		v := uint64(0)
		for i := 0; i < n; i++ {
			ping <- v
			v = <-pong
		}
		close(ping)
		done <- v
	}()
	check(<-done == uint64(n), "ping_pong")
}

func pingPongOneshot(n int) {
	sum := 0
	for i := 0; i < n; i++ {
		reply := make(chan int, 1)
		go func(v int) { reply <- v }(i)
		sum += <-reply
	}
	check(sum == n*(n-1)/2, "ping_pong_oneshot")
}

func spawnStorm(n int) {
	var wg sync.WaitGroup
	wg.Add(n)
	for i := 0; i < n; i++ {
		go wg.Done()
	}
	wg.Wait()
}

// mpsc sends producers*each messages; capacity >= the total means that a send
// never blocks, as on an unbounded channel.
func mpsc(producers, each, capacity int) {
	ch := make(chan uint64, capacity)
	done := make(chan uint64)
	go func() {
		sum := uint64(0)
		for i := 0; i < producers*each; i++ {
			sum += <-ch
		}
		done <- sum
	}()
	for p := 0; p < producers; p++ {
		go func() {
			for i := 0; i < each; i++ {
				ch <- uint64(i)
			}
		}()
	}
	check(<-done == uint64(producers)*uint64(each)*uint64(each-1)/2, "mpsc")
}

func manyTimers(n int) {
	var wg sync.WaitGroup
	wg.Add(n)
	for i := 0; i < n; i++ {
		go func(ms int) {
			time.Sleep(time.Duration(ms) * time.Millisecond)
			wg.Done()
		}(sleepMillis(i))
	}
	wg.Wait()
}

func countPrimes(below uint32) int {
	count := 0
	for n := uint32(2); n < below; n++ {
		prime := n == 2 || n%2 == 1
		for d := uint32(3); prime && d*d <= n; d += 2 {
			prime = n%d != 0
		}
		if prime {
			count++
		}
	}
	return count
}

func fanOut(tasks int) {
	out := make(chan int, tasks)
	for i := 0; i < tasks; i++ {
		go func() { out <- countPrimes(200_000) }()
	}
	for i := 0; i < tasks; i++ {
		check(<-out == 17984, "primes")
	}
}

// ring passes a token `hops` times; then a negative token, once around, ends
// the tasks.
func ring(size, hops int) {
	done := make(chan int, 1)
	var wg sync.WaitGroup
	wg.Add(size)
	first := make(chan int, 1)
	in := first
	for i := 0; i < size; i++ {
		out := make(chan int, 1)
		if i == size-1 {
			out = first
		}
		go func(id int, in, out chan int) {
			defer wg.Done()
			for {
				left := <-in
				if left < 0 {
					if left > -size {
						out <- left - 1
					}
					return
				}
				if left == 0 {
					done <- id
					out <- -2
					return
				}
				out <- left - 1
			}
		}(i, in, out)
		in = out
	}
	first <- hops
	check(<-done == hops%size, "ring")
	wg.Wait()
}

func skynetNode(parent chan<- uint64, num, size uint64) {
	if size == 1 {
		parent <- num
		return
	}
	mine := make(chan uint64, 10)
	step := size / 10
	for i := uint64(0); i < 10; i++ {
		go skynetNode(mine, num+i*step, step)
	}
	sum := uint64(0)
	for i := 0; i < 10; i++ {
		sum += <-mine
	}
	parent <- sum
}

func skynet(leaves uint64) {
	root := make(chan uint64, 1)
	go skynetNode(root, 0, leaves)
	check(<-root == leaves*(leaves-1)/2, "skynet")
}

func mutexContention(tasks, each int) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	counter := 0
	wg.Add(tasks)
	for i := 0; i < tasks; i++ {
		go func() {
			for j := 0; j < each; j++ {
				mu.Lock()
				counter++
				mu.Unlock()
			}
			wg.Done()
		}()
	}
	wg.Wait()
	check(counter == tasks*each, "mutex")
}

func panicIsolation(n int) {
	seen := 0
	for i := 0; i < n; i++ {
		result := make(chan any, 1)
		go func() {
			defer func() { result <- recover() }()
			panic("boom")
		}()
		if <-result != nil {
			seen++
		}
	}
	check(seen == n, "panic_isolation")
}

// idleMemory parks n goroutines with a channel each, sends each one a message, and ends them all.
func idleMemory(bench string, threads, n int) {
	runtime.GC()
	debug.FreeOSMemory()
	before := procStatus("VmRSS")
	t0 := time.Now()
	micros := func() float64 {
		dt := float64(time.Since(t0).Nanoseconds()) / 1e3
		t0 = time.Now()
		return dt
	}
	var ready, received atomic.Int64
	var wg sync.WaitGroup
	wg.Add(n)
	boxes := make([]chan uint64, 0, n)
	for i := 0; i < n; i++ {
		box := make(chan uint64, 1)
		boxes = append(boxes, box)
		go func() {
			ready.Add(1)
			for v := range box {
				received.Add(int64(v))
			}
			wg.Done()
		}()
	}
	for ready.Load() != int64(n) {
		time.Sleep(time.Millisecond)
	}
	wall := micros()
	time.Sleep(200 * time.Millisecond)
	after, mappings := procStatus("VmRSS"), mappingCount()
	micros()
	for _, box := range boxes {
		box <- 1
	}
	for received.Load() != int64(n) {
		time.Sleep(time.Millisecond)
	}
	wake := micros()
	for _, box := range boxes {
		close(box)
	}
	wg.Wait()
	boxes = nil
	debug.FreeOSMemory()
	stop := micros()
	time.Sleep(200 * time.Millisecond)
	fmt.Printf(`{"peer":"%s","bench":"%s","threads":%d,"n":%d,"median_us":%.1f,"min_us":%.1f,"max_us":%.1f,"runs":1,"bytes_per_task":%.1f,"rss_before":%d,"rss_after":%d,"vm_hwm":%d,"mappings":%d,"wake_us":%.1f,"stop_us":%.1f,"rss_end":%d}`+"\n",
		peer, bench, threads, n, wall, wall, wall, float64(after-before)/float64(n), before, after, procStatus("VmHWM"), mappings, wake, stop, procStatus("VmRSS"))
	os.Stdout.Sync()
	os.Exit(0)
}

func tcpServer(port string) {
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		die("%v", err)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			die("%v", err)
		}
		go func() {
			defer c.Close()
			buf := make([]byte, 4096)
			for {
				n, err := c.Read(buf)
				if err != nil {
					return
				}
				if _, err = c.Write(buf[:n]); err != nil {
					return
				}
			}
		}()
	}
}

func main() {
	if len(os.Args) < 3 {
		die("usage: go_peer <bench> <threads> [port|seconds]")
	}
	bench := os.Args[1]
	threads, _ := strconv.Atoi(os.Args[2])
	if threads > 0 {
		runtime.GOMAXPROCS(threads)
	}
	arg := "5"
	if len(os.Args) > 3 {
		arg = os.Args[3]
	}
	secs, _ := strconv.ParseFloat(arg, 64)
	run := func(n int, f func()) { measure(bench, threads, n, f) }
	switch bench {
	case "chained_spawn":
		run(10_000, func() { chainedSpawn(10_000) })
	case "yield_many":
		run(100_000, func() { yieldMany(100, 1_000) })
	case "ping_pong":
		run(100_000, func() { pingPong(100_000) })
	case "ping_pong_oneshot":
		run(10_000, func() { pingPongOneshot(10_000) })
	case "spawn_storm":
		run(100_000, func() { spawnStorm(100_000) })
	case "mpsc_contention":
		run(160_000, func() { mpsc(8, 20_000, 160_000) })
	case "mpsc_contention_b1024":
		run(160_000, func() { mpsc(8, 20_000, 1024) })
	case "uncontended_channel":
		run(1_000_000, func() { mpsc(1, 1_000_000, 1_000_000) })
	case "uncontended_channel_b1024":
		run(1_000_000, func() { mpsc(1, 1_000_000, 1024) })
	case "many_timers":
		run(10_000, func() { manyTimers(10_000) })
	case "fan_out_compute":
		run(8, func() { fanOut(8) })
	case "ring":
		run(1_000_000, func() { ring(503, 1_000_000) })
	case "skynet":
		run(111_111, func() { skynet(100_000) })
	case "skynet_1m":
		run(1_111_111, func() { skynet(1_000_000) })
	case "mutex_contention":
		run(400_000, func() { mutexContention(8, 50_000) })
	case "panic_isolation":
		run(10_000, func() { panicIsolation(10_000) })
	case "call_reply":
		run(200_000, func() { callReply(200_000) })
	case "fork_join_throughput":
		run(1_200_000, func() { forkJoinThroughput(60, 20_000) })
	case "counting":
		run(1_000_000, func() { counting(1_000_000) })
	case "big":
		run(360_000, func() { big(120, 3_000) })
	case "philosophers":
		run(200_000, func() { philosophers(20, 10_000) })
	case "bank_transaction":
		run(100_000, func() { bankTransaction(1_000, 100_000) })
	case "idle_memory_100k":
		idleMemory(bench, threads, 100_000)
	case "idle_memory_1m":
		idleMemory(bench, threads, 1_000_000)
	case "tcp_server":
		tcpServer(arg)
	case "idle":
		time.Sleep(time.Duration(secs * float64(time.Second)))
	case "sleep1ms":
		iters, t0 := 0, time.Now()
		for time.Since(t0).Seconds() < secs {
			time.Sleep(time.Millisecond)
			iters++
		}
		fmt.Printf("iters_per_s=%.1f\n", float64(iters)/time.Since(t0).Seconds())
	default:
		fmt.Printf(`{"peer":"%s","bench":"%s","threads":%d,"skip":"not available"}`+"\n", peer, bench, threads)
	}
}
