// The kubelet's side of the device plugin protocol, for NVIDIA's plugin and for ours alike, and NVIDIA's own judgement of links.
//
//	peer plugins FOLDER   take registrations at FOLDER/kubelet.sock; one command in JSON on each line of standard input, one
//	                      answer in JSON on each line of standard output; ends with its input
//	peer configs FILE...  whether NVIDIA's plugin reads each configuration file: {FILE: "" or the reason why not}
//	peer scores           for each line of standard input, a list of sets of UUIDs in JSON, print the list of the scores that
//	                      go-gpuallocator gives to them
//	peer profiles         for each line of standard input, a list of names of MIG profiles in JSON, print the list of what
//	                      go-nvlib finds wrong with them, "" where nothing
//
// Commands: {"do": "resources"} answers with the devices of each resource that was registered, as the plugin listed them last;
// {"do": "prefer", "resource", "available", "required", "size"}; {"do": "allocate", "resource", "ids"}.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"log"
	"net"
	"os"
	"path/filepath"
	"sync"
	_ "unsafe" // for go:linkname

	"github.com/NVIDIA/go-gpuallocator/gpuallocator"
	nvdev "github.com/NVIDIA/go-nvlib/pkg/nvlib/device"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
	config "github.com/NVIDIA/k8s-device-plugin/api/config/v1"
	"github.com/urfave/cli/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

//go:linkname setScore github.com/NVIDIA/go-gpuallocator/gpuallocator.calculateGPUSetScore
func setScore(set []*gpuallocator.Device) int

type device struct {
	ID     string  `json:"id"`
	Health string  `json:"health"`
	Nodes  []int64 `json:"nodes"`
}

type command struct {
	Do, Resource             string
	Available, Required, IDs []string
	Size                     int32
}

type answer struct {
	Error     string                                 `json:"error,omitempty"`
	Resources map[string][]device                    `json:"resources,omitempty"`
	IDs       []string                               `json:"ids,omitempty"`
	Container *plugin.ContainerAllocateResponse      `json:"container,omitempty"`
	Options   map[string]*plugin.DevicePluginOptions `json:"options,omitempty"`
}

type registry struct {
	plugin.UnimplementedRegistrationServer
	folder  string
	mutex   sync.Mutex
	clients map[string]plugin.DevicePluginClient
	options map[string]*plugin.DevicePluginOptions
	devices map[string][]device
}

func (r *registry) Register(_ context.Context, request *plugin.RegisterRequest) (*plugin.Empty, error) {
	target := "unix://" + filepath.Join(r.folder, request.Endpoint)
	connection, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	client := plugin.NewDevicePluginClient(connection)
	r.mutex.Lock()
	r.clients[request.ResourceName] = client
	r.options[request.ResourceName] = request.Options
	delete(r.devices, request.ResourceName)
	r.mutex.Unlock()
	go r.follow(request.ResourceName, client)
	return &plugin.Empty{}, nil
}

// follow keeps what the plugin lists until its stream ends.
func (r *registry) follow(resource string, client plugin.DevicePluginClient) {
	stream, err := client.ListAndWatch(context.Background(), &plugin.Empty{})
	for err == nil {
		var list *plugin.ListAndWatchResponse
		if list, err = stream.Recv(); err != nil {
			break
		}
		devices := []device{}
		for _, one := range list.Devices {
			nodes := []int64{}
			for _, node := range one.GetTopology().GetNodes() {
				nodes = append(nodes, node.ID)
			}
			devices = append(devices, device{one.ID, one.Health, nodes})
		}
		r.mutex.Lock()
		r.devices[resource] = devices
		r.mutex.Unlock()
	}
}

func (r *registry) do(c command) answer {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if c.Do == "resources" {
		return answer{Resources: r.devices, Options: r.options}
	}
	client := r.clients[c.Resource]
	if client == nil {
		return answer{Error: "no plugin for " + c.Resource}
	}
	if c.Do == "prefer" {
		request := &plugin.ContainerPreferredAllocationRequest{
			AvailableDeviceIDs: c.Available, MustIncludeDeviceIDs: c.Required, AllocationSize: c.Size}
		got, err := client.GetPreferredAllocation(context.Background(), &plugin.PreferredAllocationRequest{
			ContainerRequests: []*plugin.ContainerPreferredAllocationRequest{request}})
		if err != nil {
			return answer{Error: err.Error()}
		}
		return answer{IDs: got.ContainerResponses[0].DeviceIDs}
	}
	got, err := client.Allocate(context.Background(), &plugin.AllocateRequest{
		ContainerRequests: []*plugin.ContainerAllocateRequest{{DevicesIDs: c.IDs}}})
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Container: got.ContainerResponses[0]}
}

// lines calls a function with each line of standard input and prints its answer.
func lines[T any](each func(T) any) {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 16<<20)
	output := json.NewEncoder(os.Stdout)
	for input.Scan() {
		var line T
		if err := json.Unmarshal(input.Bytes(), &line); err != nil {
			log.Fatal(err)
		}
		if err := output.Encode(each(line)); err != nil {
			log.Fatal(err)
		}
	}
}

func plugins(folder string) {
	r := &registry{folder: folder, clients: map[string]plugin.DevicePluginClient{},
		options: map[string]*plugin.DevicePluginOptions{}, devices: map[string][]device{}}
	listener, err := net.Listen("unix", filepath.Join(folder, "kubelet.sock"))
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	plugin.RegisterRegistrationServer(server, r)
	go server.Serve(listener)
	lines(func(c command) any { return r.do(c) })
}

func scores() {
	devices, err := gpuallocator.NewDevices()
	if err != nil {
		log.Fatal(err)
	}
	lines(func(sets [][]string) any {
		found := []int{}
		for _, uuids := range sets {
			set, err := devices.Filter(uuids)
			if err != nil {
				log.Fatal(err)
			}
			found = append(found, setScore(set))
		}
		return found
	})
}

func configs(files []string) {
	verdicts := map[string]string{}
	flags := []cli.Flag{&cli.StringFlag{Name: "config-file"}}
	for _, file := range files {
		app := &cli.App{Flags: flags, Action: func(c *cli.Context) error { return read(c, flags) }}
		verdicts[file] = ""
		if err := app.Run([]string{"peer", "--config-file", file}); err != nil {
			verdicts[file] = err.Error()
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(verdicts); err != nil {
		log.Fatal(err)
	}
}

// read does with a file what the plugin does before it looks at the machine.
func read(c *cli.Context, flags []cli.Flag) error {
	read, err := config.NewConfig(c, flags)
	if err != nil {
		return err
	}
	return config.AssertChannelIDsValid(read.Imex.ChannelIDs)
}

func profiles() {
	library := nvdev.New(nvml.New())
	lines(func(names []string) any {
		wrong := []string{}
		for _, name := range names {
			if err := library.AssertValidMigProfileFormat(name); err != nil {
				wrong = append(wrong, err.Error())
			} else {
				wrong = append(wrong, "")
			}
		}
		return wrong
	})
}

func main() {
	switch {
	case len(os.Args) >= 2 && os.Args[1] == "configs":
		configs(os.Args[2:])
	case len(os.Args) == 3 && os.Args[1] == "plugins":
		plugins(os.Args[2])
	case len(os.Args) == 2 && os.Args[1] == "scores":
		scores()
	case len(os.Args) == 2 && os.Args[1] == "profiles":
		profiles()
	default:
		log.Fatal("usage: peer plugins FOLDER | configs FILE... | scores | profiles")
	}
}
