// A plain client-go informer, with which benchmarks/runtime.py compares our engine, and the server that replays a watch to both.
//
//	goinformer serve  -pods N -events N -listen HOST:PORT
//	goinformer follow -server URL | -kubeconfig FILE  [-namespace NAME] [-nodes] -events N
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: goinformer serve|follow [flags]")
		os.Exit(2)
	}
	var err error
	switch os.Args[1] {
	case "serve":
		err = serve(os.Args[2:])
	case "follow":
		err = follow(os.Args[2:])
	default:
		err = fmt.Errorf("unknown command %q", os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
