// Go: goroutines, channels, the collector, asynchronous preemption of loops without calls, timers, a server, select.
package main

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

func spin(stop *bool, n *int64) {
	for !*stop {
		*n++
	}
}

func main() {
	runtime.GOMAXPROCS(4)
	var wg sync.WaitGroup
	c := make(chan int, 10)
	sum := 0
	for i := 0; i < 8; i++ {
		wg.Add(1)
		go func(me int) {
			defer wg.Done()
			for k := 0; k < 200; k++ {
				b := make([]byte, 10000)
				c <- len(b) + me
				if k%50 == 0 {
					runtime.GC()
				}
			}
		}(i)
	}
	go func() { wg.Wait(); close(c) }()
	for v := range c {
		sum += v
	}
	fmt.Println(sum)
	stop := false
	var n int64
	go spin(&stop, &n)
	time.Sleep(20 * time.Millisecond)
	runtime.GC()
	stop = true
	fmt.Println(n >= 0)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			k, err := l.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(k, k); k.Close() }()
		}
	}()
	total := 0
	for i := 0; i < 20; i++ {
		k, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(k, "hello %d", i)
		k.(*net.TCPConn).CloseWrite()
		b, _ := io.ReadAll(k)
		total += len(b)
		k.Close()
	}
	l.Close()
	out, _ := exec.Command("echo", "child").Output()
	fmt.Println(total, string(out))
	var m sync.Map
	for i := range [100]int{} {
		m.Store(i, i)
	}
	count := 0
	m.Range(func(k, v any) bool { count = count*31 + k.(int); return true })
	fmt.Println(count)
	select {
	case <-time.After(5 * time.Millisecond):
		fmt.Println("timeout")
	}
}
