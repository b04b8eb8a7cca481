// The part of a kubelet that deals with device plugins and pod-resources, made of the kubelet's own code: its device manager, its
// checkpoint and its pod-resources server, without the container runtime and the API server around them. tests/contract compares our
// fake kubelet with it.
//
//	kubelet-devices DIR   serve DIR/device-plugins and DIR/pod-resources; one command in JSON on each line of standard input, one
//	                      answer in JSON on each line of standard output; ends with its input
//
// Commands: {"do": "run", "namespace", "pod", "container", "resource", "count"} admits a pod and prepares its container;
// {"do": "end", "namespace", "pod"}; {"do": "resource", "resource"}; {"do": "drop", "resource"} disconnects a plugin.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"sync"
	_ "unsafe" // for go:linkname

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/kubernetes/pkg/kubelet/apis/podresources"
	_ "k8s.io/kubernetes/pkg/kubelet/cm" // for containerDevices
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/metrics"

	cadvisor "github.com/google/cadvisor/info/v1"
)

// The exported function knows one folder only, that of the machine's own kubelet.
//
//go:linkname newManager k8s.io/kubernetes/pkg/kubelet/cm/devicemanager.newManagerImpl
func newManager(logger klog.Logger, socket string, topology []cadvisor.Node, store topologymanager.Store) (*devicemanager.ManagerImpl, error)

//go:linkname containerDevices k8s.io/kubernetes/pkg/kubelet/cm.containerDevicesFromResourceDeviceInstances
func containerDevices(devices devicemanager.ResourceDeviceInstances) []*api.ContainerDevices

type allReady struct{}

func (allReady) AddSource(string) {}
func (allReady) AllReady() bool   { return true }

// kubelet is what the container manager and the pod manager are in a whole one.
type kubelet struct {
	manager *devicemanager.ManagerImpl
	mutex   sync.Mutex
	pods    []*v1.Pod
}

func (k *kubelet) GetActivePods() []*v1.Pod {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return append([]*v1.Pod(nil), k.pods...)
}

func (k *kubelet) GetPods() []*v1.Pod { return k.GetActivePods() }

func (k *kubelet) GetPodByName(namespace, name string) (*v1.Pod, bool) {
	for _, pod := range k.GetActivePods() {
		if pod.Namespace == namespace && pod.Name == name {
			return pod, true
		}
	}
	return nil, false
}

func (k *kubelet) UpdateAllocatedDevices() { k.manager.UpdateAllocatedDevices() }

func (k *kubelet) GetDevices(pod, container string) []*api.ContainerDevices {
	return containerDevices(k.manager.GetDevices(pod, container))
}

func (k *kubelet) GetAllocatableDevices() []*api.ContainerDevices {
	return containerDevices(k.manager.GetAllocatableDevices())
}

// A node whose processors and memory nobody has asked for exclusively.
func (k *kubelet) GetCPUs(string, string) []int64                                    { return nil }
func (k *kubelet) GetAllocatableCPUs() []int64                                       { return nil }
func (k *kubelet) GetMemory(string, string) []*api.ContainerMemory                   { return nil }
func (k *kubelet) GetAllocatableMemory() []*api.ContainerMemory                      { return nil }
func (k *kubelet) GetDynamicResources(*v1.Pod, *v1.Container) []*api.DynamicResource { return nil }

type command struct {
	Do, Namespace, Pod, Container, Resource string
	Count                                   int64
}

type answer struct {
	Error       string            `json:"error,omitempty"`
	Devices     []string          `json:"devices"`
	Environment map[string]string `json:"environment"`
	Files       []string          `json:"files"`
	Mounts      []string          `json:"mounts"`
	CDI         []string          `json:"cdi"`
	Annotations map[string]string `json:"annotations"`

	Capacity      int64 `json:"capacity"`
	Allocatable   int64 `json:"allocatable"`
	Registrations int64 `json:"registrations"`
}

// What the kubelet does when a pod comes: admit it, which allocates, and then prepare its container.
func (k *kubelet) run(c command) answer {
	name := v1.ResourceName(c.Resource)
	amount := v1.ResourceList{name: *resource.NewQuantity(c.Count, resource.DecimalSI)}
	container := v1.Container{Name: c.Container, Resources: v1.ResourceRequirements{Limits: amount, Requests: amount}}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Pod, UID: types.UID("uid-of-" + c.Pod)},
		Spec: v1.PodSpec{Containers: []v1.Container{container}}}
	k.mutex.Lock()
	k.pods = append(k.pods, pod)
	k.mutex.Unlock()
	if err := k.manager.Allocate(pod, &container); err != nil {
		k.end(c)
		return answer{Error: err.Error()}
	}
	options, err := k.manager.GetDeviceRunContainerOptions(context.Background(), pod, &container)
	if err != nil {
		k.end(c)
		return answer{Error: err.Error()}
	}
	a := answer{Environment: map[string]string{}, Annotations: map[string]string{}}
	for id := range k.manager.GetDevices(string(pod.UID), c.Container)[c.Resource] {
		a.Devices = append(a.Devices, id)
	}
	if options == nil {
		return a
	}
	for _, variable := range options.Envs {
		a.Environment[variable.Name] = variable.Value
	}
	for _, file := range options.Devices {
		a.Files = append(a.Files, file.PathInContainer+":"+file.PathOnHost+":"+file.Permissions)
	}
	for _, mount := range options.Mounts {
		a.Mounts = append(a.Mounts, mount.ContainerPath+":"+mount.HostPath)
	}
	for _, device := range options.CDIDevices {
		a.CDI = append(a.CDI, device.Name)
	}
	for _, annotation := range options.Annotations {
		a.Annotations[annotation.Name] = annotation.Value
	}
	return a
}

func (k *kubelet) end(c command) answer {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for i, pod := range k.pods {
		if pod.Namespace == c.Namespace && pod.Name == c.Pod {
			k.pods = append(k.pods[:i:i], k.pods[i+1:]...)
			return answer{}
		}
	}
	return answer{Error: "no such pod"}
}

func (k *kubelet) resource(name string) answer {
	capacity, allocatable, _ := k.manager.GetCapacity()
	all, usable := capacity[v1.ResourceName(name)], allocatable[v1.ResourceName(name)]
	return answer{Capacity: all.Value(), Allocatable: usable.Value(), Registrations: registrations(name)}
}

func registrations(name string) int64 {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "kubelet_"+metrics.DevicePluginRegistrationCountKey {
			continue
		}
		for _, metric := range family.Metric {
			if metric.Label[0].GetValue() == name {
				return int64(metric.Counter.GetValue())
			}
		}
	}
	return 0
}

func (k *kubelet) do(c command) answer {
	switch c.Do {
	case "run":
		return k.run(c)
	case "end":
		return k.end(c)
	case "resource":
		return k.resource(c.Resource)
	case "drop":
		k.manager.GetWatcherHandler().DeRegisterPlugin(c.Resource, "")
		return answer{}
	}
	return answer{Error: fmt.Sprintf("no such command: %q", c.Do)}
}

func (k *kubelet) servePodResources(directory string) error {
	if err := os.MkdirAll(directory, 0o750); err != nil {
		return err
	}
	socket := filepath.Join(directory, "kubelet.sock")
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	api.RegisterPodResourcesListerServer(server, podresources.NewV1PodResourcesServer(context.Background(),
		podresources.PodResourcesProviders{Pods: k, Devices: k, Cpus: k, Memory: k, DynamicResources: k}))
	go server.Serve(listener)
	return nil
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: kubelet-devices DIR")
	}
	directory := filepath.Join(os.Args[1], "device-plugins")
	if err := os.MkdirAll(directory, 0o750); err != nil {
		log.Fatal(err)
	}
	metrics.Register()
	k := &kubelet{}
	topology := []cadvisor.Node{{Id: 0}, {Id: 1}}
	var err error
	if k.manager, err = newManager(klog.Background(), filepath.Join(directory, "kubelet.sock"), topology, topologymanager.NewFakeManager()); err != nil {
		log.Fatal(err)
	}
	if err = k.servePodResources(filepath.Join(os.Args[1], "pod-resources")); err != nil {
		log.Fatal(err)
	}
	if err = k.manager.Start(klog.Background(), k.GetActivePods, allReady{}, containermap.NewContainerMap(), sets.New[string]()); err != nil {
		log.Fatal(err)
	}
	out := json.NewEncoder(os.Stdout)
	out.Encode(answer{})
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var c command
		a := answer{}
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			a.Error = err.Error()
		} else {
			a = k.do(c)
		}
		if err := out.Encode(a); err != nil {
			log.Fatal(err)
		}
	}
}
