package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"net"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

const protobufType = "application/vnd.kubernetes.protobuf"

// serve answers the first watch of pods with prepared bytes: all pods, the bookmark, then all changes, one chunk each.
func serve(args []string) error {
	flags := flag.NewFlagSet("serve", flag.ExitOnError)
	pods := flags.Int("pods", 10000, "pods in the first list")
	events := flags.Int("events", 40000, "changes after it")
	listen := flags.String("listen", "127.0.0.1:0", "address")
	if err := flags.Parse(args); err != nil {
		return err
	}
	replays := map[string][][]byte{}
	for _, kind := range []string{"application/json", protobufType} {
		chunks, err := replay(*pods, *events, kind)
		if err != nil {
			return err
		}
		replays[kind] = chunks
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	server := &http.Server{Handler: handler(replays), ReadHeaderTimeout: 10 * time.Second}
	return server.Serve(listener)
}

func handler(replays map[string][][]byte) http.Handler {
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		kind := "application/json"
		if strings.Contains(request.Header.Get("Accept"), protobufType) {
			kind = protobufType
		}
		if request.URL.Query().Get("watch") == "" {
			http.Error(writer, "only watches are replayed", http.StatusBadRequest)
			return
		}
		suffix := ""
		if kind == protobufType {
			suffix = ";stream=watch"
		}
		writer.Header().Set("Content-Type", kind+suffix)
		flusher := writer.(http.Flusher)
		for _, chunk := range replays[kind] {
			if _, err := writer.Write(chunk); err != nil {
				return
			}
			flusher.Flush()
		}
		<-request.Context().Done()
	})
}

// replay encodes a watch as kube-apiserver would send it.
func replay(pods, events int, kind string) ([][]byte, error) {
	chunks := make([][]byte, 0, pods+events+1)
	add := func(event watch.EventType, pod *corev1.Pod) error {
		chunk, err := encode(event, pod, kind)
		chunks = append(chunks, chunk)
		return err
	}
	version := 1000
	for number := range pods {
		version++
		if err := add(watch.Added, pod(number, version)); err != nil {
			return nil, err
		}
	}
	end := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: fmt.Sprint(version),
		Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
	if err := add(watch.Bookmark, end); err != nil {
		return nil, err
	}
	shuffled := rand.New(rand.NewSource(1))
	var order []int
	for number := range events {
		if number%pods == 0 {
			order = shuffled.Perm(pods)
		}
		version++
		if err := add(watch.Modified, pod(order[number%pods], version)); err != nil {
			return nil, err
		}
	}
	return chunks, nil
}

func encode(event watch.EventType, pod *corev1.Pod, kind string) ([]byte, error) {
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	if kind != protobufType {
		object, err := json.Marshal(pod)
		if err != nil {
			return nil, err
		}
		return []byte(fmt.Sprintf("{\"type\":%q,\"object\":%s}\n", event, object)), nil
	}
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	var object bytes.Buffer
	if err := serializer.Encode(pod, &object); err != nil {
		return nil, err
	}
	envelope := &metav1.WatchEvent{Type: string(event), Object: runtime.RawExtension{Raw: object.Bytes()}}
	var frame bytes.Buffer
	raw := protobuf.NewRawSerializer(scheme.Scheme, scheme.Scheme)
	if err := raw.Encode(envelope, protobuf.LengthDelimitedFramer.NewFrameWriter(&frame)); err != nil {
		return nil, err
	}
	return frame.Bytes(), nil
}

// pod makes a worker pod as large as a real one: about 8 KB of JSON, a quarter of it managedFields.
func pod(number, version int) *corev1.Pod {
	name := fmt.Sprintf("slurm-worker-cpu-%d", number)
	now := metav1.NewTime(time.Unix(1790000000+int64(version), 0))
	labels := map[string]string{}
	for _, label := range []string{"name", "instance", "component", "cluster", "managed-by", "part-of", "version"} {
		labels["app.kubernetes.io/"+label] = "slurm-worker-" + label
	}
	fields := strings.Repeat(`"f:example.org/field-of-some-length":{".":{},"f:name":{},"f:value":{}},`, 22)
	managed := func(manager string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &now,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{" + fields + `"f:last":{}}`),
		}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "slurm", UID: types.UID(fmt.Sprintf("5f0c8b4e-0000-4000-8000-%012d", number)),
			ResourceVersion: fmt.Sprint(version), CreationTimestamp: now, Labels: labels,
			Annotations: map[string]string{"nodeset.slinky.slurm.net/pod-cordon": "false", "note": strings.Repeat("n", 200)},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "slinky.slurm.net/v1beta1", Kind: "NodeSet", Name: "cpu",
				UID: types.UID(fmt.Sprintf("owner-%d", number%10)),
			}},
			ManagedFields: []metav1.ManagedFieldsEntry{managed("kubeslurm-nodeset")},
		},
		Spec:   podSpec(number),
		Status: podStatus(now, version),
	}
}

func podSpec(number int) corev1.PodSpec {
	var environment []corev1.EnvVar
	var mounts []corev1.VolumeMount
	var volumes []corev1.Volume
	for index := range 12 {
		name := fmt.Sprintf("volume-%d", index)
		environment = append(environment, corev1.EnvVar{Name: fmt.Sprintf("SLURM_VARIABLE_%d", index), Value: strings.Repeat("v", 40)})
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: "/mnt/" + name, ReadOnly: true})
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}},
		}})
	}
	amounts := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("64Gi"),
	}
	container := func(name string) corev1.Container {
		return corev1.Container{
			Name: name, Image: "registry.example.org/slurm/" + name + ":26.05", Env: environment, VolumeMounts: mounts,
			Args:      []string{"--conf-server", "slurm-controller:6817", "-N", fmt.Sprintf("cpu-%d", number)},
			Resources: corev1.ResourceRequirements{Limits: amounts, Requests: amounts},
		}
	}
	return corev1.PodSpec{
		NodeName: fmt.Sprintf("node-%d", number), Hostname: fmt.Sprintf("cpu-%d", number), Subdomain: "slurm-workers",
		Containers: []corev1.Container{container("slurmd"), container("logfile")}, Volumes: volumes,
		Tolerations: []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}},
	}
}

func podStatus(now metav1.Time, version int) corev1.PodStatus {
	var conditions []corev1.PodCondition
	for _, kind := range []string{"Initialized", "Ready", "ContainersReady", "PodScheduled", "SlurmNodeStateIdle"} {
		conditions = append(conditions, corev1.PodCondition{
			Type: corev1.PodConditionType(kind), Status: corev1.ConditionTrue, LastTransitionTime: now,
		})
	}
	started := true
	var statuses []corev1.ContainerStatus
	for _, name := range []string{"slurmd", "logfile"} {
		statuses = append(statuses, corev1.ContainerStatus{
			Name: name, Ready: true, Started: &started, RestartCount: int32(version % 3),
			Image: "registry.example.org/slurm/" + name + ":26.05", ImageID: "sha256:" + strings.Repeat("a", 64),
			ContainerID: "containerd://" + strings.Repeat("b", 64),
			State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	return corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "10.1.2.3", HostIP: "10.0.0.1", StartTime: &now,
		Conditions: conditions, ContainerStatuses: statuses,
	}
}
