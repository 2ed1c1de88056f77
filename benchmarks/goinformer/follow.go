package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
)

// follow caches pods (and nodes), with two indices and a work queue whose workers do nothing, and prints what this cost.
func follow(args []string) error {
	flags := flag.NewFlagSet("follow", flag.ExitOnError)
	server := flags.String("server", "", "URL of a server without TLS")
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig of a real cluster")
	namespace := flags.String("namespace", "", "namespace of the pods")
	nodes := flags.Bool("nodes", false, "follow nodes too")
	events := flags.Int64("events", 0, "changes to wait for after the first list")
	contentType := flags.String("content-type", "application/vnd.kubernetes.protobuf", "encoding to ask for")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config := &rest.Config{Host: *server}
	if *kubeconfig != "" {
		loaded, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
		if err != nil {
			return err
		}
		config = loaded
	}
	config.ContentType = *contentType
	config.AcceptContentTypes = *contentType
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return measure(client, *namespace, *nodes, *events)
}

func measure(client kubernetes.Interface, namespace string, nodes bool, events int64) error {
	ctx := context.Background()
	started, cpu := time.Now(), cpuSeconds()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	pods := factory.Core().V1().Pods().Informer()
	if err := pods.AddIndexers(cache.Indexers{"node": byNode, "owner": byOwner}); err != nil {
		return err
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	var changes atomic.Int64
	done := make(chan struct{})
	enqueue := func(obj any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
			queue.Add(key)
		}
	}
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue,
		UpdateFunc: func(_, obj any) {
			enqueue(obj)
			if changes.Add(1) == events {
				close(done)
			}
		},
	}); err != nil {
		return err
	}
	synced := []cache.InformerSynced{pods.HasSynced}
	stores := []cache.Store{pods.GetStore()}
	if nodes {
		informer := factory.Core().V1().Nodes().Informer()
		synced = append(synced, informer.HasSynced)
		stores = append(stores, informer.GetStore())
	}
	for range 4 {
		go work(queue)
	}
	var stall atomic.Int64
	go watchScheduling(&stall)
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return fmt.Errorf("caches did not sync")
	}
	objects := int64(0)
	for _, store := range stores {
		objects += int64(len(store.ListKeys()))
	}
	syncSeconds := time.Since(started).Seconds()
	fmt.Println("synced")
	first := time.Now()
	if events > 0 {
		<-done
	}
	return report(map[string]any{
		"objects":        objects,
		"sync_s":         syncSeconds,
		"events_s":       time.Since(first).Seconds(),
		"cpu_s":          cpuSeconds() - cpu,
		"peak_rss_mb":    peakMegabytes(),
		"changes_seen":   changes.Load(),
		"worst_stall_ms": float64(stall.Load()) / 1e6,
	})
}

// watchScheduling measures how late a goroutine wakes up, as the Python program does for its event loop.
func watchScheduling(worst *atomic.Int64) {
	const period = 20 * time.Millisecond
	for {
		started := time.Now()
		time.Sleep(period)
		if late := int64(time.Since(started) - period); late > worst.Load() {
			worst.Store(late)
		}
	}
}

func work(queue workqueue.TypedRateLimitingInterface[string]) {
	for {
		key, stopped := queue.Get()
		if stopped {
			return
		}
		queue.Forget(key)
		queue.Done(key)
	}
}

func byNode(obj any) ([]string, error) {
	return []string{obj.(*corev1.Pod).Spec.NodeName}, nil
}

func byOwner(obj any) ([]string, error) {
	var owners []string
	for _, owner := range obj.(*corev1.Pod).OwnerReferences {
		owners = append(owners, string(owner.UID))
	}
	return owners, nil
}

func report(row map[string]any) error {
	return json.NewEncoder(os.Stdout).Encode(row)
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	seconds := func(value syscall.Timeval) float64 { return float64(value.Sec) + float64(value.Usec)/1e6 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}

func peakMegabytes() float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.SplitSeq(string(status), "\n") {
		var kilobytes float64
		if _, err := fmt.Sscanf(line, "VmHWM: %f kB", &kilobytes); err == nil {
			return kilobytes / 1024
		}
	}
	return 0
}
