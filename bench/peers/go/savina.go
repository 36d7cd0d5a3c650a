package main

// The workloads of conversing actors: a server that is called, and five of Savina's programs, as
// goroutines with a channel each for a mailbox. Go has no unbounded channel: a mailbox has room for
// whatever can be on its way to it at once, where a sender that waits for room could be waited for.

import "sync"

// lcg is the generator that all programs of the comparison share.
type lcg uint32

func (l *lcg) next() int {
	*l = *l*1664525 + 1013904223
	return int(*l >> 16)
}

// callReply: one client calls one server n times; the server answers with the sum so far.
func callReply(n uint64) {
	type request struct {
		value uint64
		reply chan uint64
	}
	requests := make(chan request, 16)
	done := make(chan uint64)
	go func() {
		sum := uint64(0)
		for r := range requests {
			sum += r.value
			r.reply <- sum
		}
	}()
	go func() {
		sum := uint64(0)
		for i := uint64(1); i <= n; i++ {
			reply := make(chan uint64, 1)
			requests <- request{i, reply}
			sum = <-reply
		}
		close(requests)
		done <- sum
	}()
	check(<-done == n*(n+1)/2, "call_reply")
}

func forkJoinThroughput(members int, each uint64) {
	var boxes []chan uint64
	sums := make(chan uint64, members)
	for i := 0; i < members; i++ {
		box := make(chan uint64, each)
		boxes = append(boxes, box)
		go func() {
			sum := uint64(0)
			for v := range box {
				sum += v
			}
			sums <- sum
		}()
	}
	for i := uint64(0); i < each; i++ {
		for _, box := range boxes {
			box <- i
		}
	}
	for _, box := range boxes {
		close(box)
	}
	for range boxes {
		check(<-sums == each*(each-1)/2, "fork_join_throughput")
	}
}

// counting: a message without a reply channel is an increment, one with it asks for the count.
func counting(n int) {
	type message struct{ reply chan int }
	box := make(chan message, n+1)
	done := make(chan int)
	go func() {
		count := 0
		for m := range box {
			if m.reply != nil {
				m.reply <- count
			} else {
				count++
			}
		}
	}()
	go func() {
		for i := 0; i < n; i++ {
			box <- message{}
		}
		reply := make(chan int, 1)
		box <- message{reply}
		count := <-reply
		close(box)
		done <- count
	}()
	check(<-done == n, "counting")
}

type bigKind int

const (
	ping bigKind = iota
	pong
	halt
)

type bigMessage struct {
	kind bigKind
	from int
}

func bigMember(id, rounds int, boxes []chan bigMessage, done chan<- int, answered chan<- int) {
	random := lcg(id)
	pingAnother := func() {
		boxes[(id+1+random.next()%(len(boxes)-1))%len(boxes)] <- bigMessage{ping, id}
	}
	count := 0
	pingAnother()
	for m := range boxes[id] {
		switch m.kind {
		case ping:
			boxes[m.from] <- bigMessage{pong, id}
			count++
		case pong:
			rounds--
			if rounds > 0 {
				pingAnother()
			} else {
				done <- id
			}
		case halt:
			check(rounds == 0, "big: a pong is missing")
			answered <- count
			return
		}
	}
}

func big(members, rounds int) {
	boxes := make([]chan bigMessage, members)
	for i := range boxes {
		boxes[i] = make(chan bigMessage, members+2)
	}
	done, answered := make(chan int, members), make(chan int, members)
	for i := range boxes {
		go bigMember(i, rounds, boxes, done, answered)
	}
	for range boxes {
		<-done
	}
	for _, box := range boxes {
		box <- bigMessage{kind: halt}
	}
	sum := 0
	for range boxes {
		sum += <-answered
	}
	check(sum == members*rounds, "big")
}

type forkRequest struct {
	who      int
	finished bool
}

func arbitrator(requests <-chan forkRequest, philosophers []chan bool) int {
	taken := make([]bool, len(philosophers))
	meals := 0
	for r := range requests {
		left, right := r.who, (r.who+1)%len(taken)
		if r.finished {
			check(taken[left] && taken[right], "a fork was not held")
			taken[left], taken[right] = false, false
			continue
		}
		free := !taken[left] && !taken[right]
		if free {
			taken[left], taken[right] = true, true
			meals++
		}
		philosophers[left] <- free
	}
	for _, fork := range taken {
		check(!fork, "a fork was not given back")
	}
	return meals
}

func philosophers(seats, rounds int) {
	requests := make(chan forkRequest, 2*seats)
	boxes := make([]chan bool, seats)
	for i := range boxes {
		boxes[i] = make(chan bool, 1)
	}
	meals := make(chan int)
	go func() { meals <- arbitrator(requests, boxes) }()
	var wg sync.WaitGroup
	wg.Add(seats)
	for i := range boxes {
		go func(who int) {
			for eaten := 0; eaten < rounds; eaten++ {
				requests <- forkRequest{who, false}
				for !<-boxes[who] {
					requests <- forkRequest{who, false}
				}
				requests <- forkRequest{who, true}
			}
			wg.Done()
		}(i)
	}
	wg.Wait()
	close(requests)
	check(<-meals == seats*rounds, "philosophers")
}

type bankKind int

const (
	transfer bankKind = iota
	deposit
	closing
)

type bankMessage struct {
	kind   bankKind
	amount int
	to     int
	reply  chan bool
}

type balance struct{ account, amount int }

func account(id int, boxes []chan bankMessage, teller chan<- int, balances chan<- balance) {
	held := 0
	for m := range boxes[id] {
		switch m.kind {
		case transfer:
			held -= m.amount
			reply := make(chan bool, 1)
			boxes[m.to] <- bankMessage{kind: deposit, amount: m.amount, reply: reply}
			<-reply
			teller <- m.amount
		case deposit:
			held += m.amount
			m.reply <- true
		case closing:
			balances <- balance{id, held}
			return
		}
	}
}

// bankTransaction: the teller's mailbox holds all replies, since it orders everything first. A full
// account's mailbox is no deadlock: transfers go to higher numbers only.
func bankTransaction(size, transfers int) {
	boxes := make([]chan bankMessage, size)
	for i := range boxes {
		boxes[i] = make(chan bankMessage, 256)
	}
	teller, balances := make(chan int, transfers), make(chan balance, size)
	for i := range boxes {
		go account(i, boxes, teller, balances)
	}
	books := make([]int, size)
	random, moved := lcg(1), 0
	for i := 0; i < transfers; i++ {
		from := random.next() % (size / 10 * 8)
		to := from + 1 + random.next()%(size-from-1)
		amount := 1 + random.next()%1000
		books[from] -= amount
		books[to] += amount
		moved += amount
		boxes[from] <- bankMessage{kind: transfer, amount: amount, to: to}
	}
	for i := 0; i < transfers; i++ {
		moved -= <-teller
	}
	check(moved == 0, "bank_transaction")
	for _, box := range boxes {
		box <- bankMessage{kind: closing}
	}
	for range boxes {
		b := <-balances
		check(b.amount == books[b.account], "a balance is wrong")
	}
}
