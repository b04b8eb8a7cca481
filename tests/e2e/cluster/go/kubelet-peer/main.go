// A peer of the kubelet that shares no code with Penstock: what somebody else's device plugin does, and what the kubelet itself
// answers about devices. Used by the end-to-end tests as the other side.
//
//	kubelet-peer serve RESOURCE COUNT   be a device plugin for RESOURCE until killed, registering again whenever the kubelet restarts
//	kubelet-peer allocatable            print pod-resources GetAllocatableResources as JSON
//	kubelet-peer list                   print pod-resources List as JSON
//	kubelet-peer answer SOCKET          for each line of standard input, "allocatable" or "list", print a line of JSON: {"answer": what the
//	                                    kubelet behind that pod-resources socket says} or {"error": why it says nothing}
//	kubelet-peer changes RESOURCE       ask GetAllocatableResources every 20 ms until killed; at each change print the seconds since 1970
//	                                    and the count (-1: the kubelet does not answer)
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
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	resources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

const podResources = "unix:///var/lib/kubelet/pod-resources/kubelet.sock"

type server struct {
	plugin.UnimplementedDevicePluginServer
	devices []*plugin.Device
}

func (s *server) GetDevicePluginOptions(context.Context, *plugin.Empty) (*plugin.DevicePluginOptions, error) {
	return &plugin.DevicePluginOptions{}, nil
}

func (s *server) ListAndWatch(_ *plugin.Empty, stream grpc.ServerStreamingServer[plugin.ListAndWatchResponse]) error {
	if err := stream.Send(&plugin.ListAndWatchResponse{Devices: s.devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (s *server) Allocate(_ context.Context, request *plugin.AllocateRequest) (*plugin.AllocateResponse, error) {
	response := &plugin.AllocateResponse{}
	for range request.ContainerRequests {
		response.ContainerResponses = append(response.ContainerResponses, &plugin.ContainerAllocateResponse{})
	}
	return response, nil
}

func dial(target string) *grpc.ClientConn {
	connection, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	return connection
}

func register(resource, endpoint string) error {
	connection := dial("unix://" + plugin.KubeletSocket)
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, err := plugin.NewRegistrationClient(connection).Register(ctx,
		&plugin.RegisterRequest{Version: plugin.Version, Endpoint: endpoint, ResourceName: resource})
	return err
}

func serve(resource string, count int) {
	endpoint := fmt.Sprintf("someone-else-%d.sock", os.Getpid())
	path := filepath.Join(plugin.DevicePluginPath, endpoint)
	s := &server{}
	for i := range count {
		s.devices = append(s.devices, &plugin.Device{ID: fmt.Sprintf("someone-elses-%d", i), Health: plugin.Healthy})
	}
	for { // a kubelet that starts removes every socket in its folder: serve and register again
		os.Remove(path)
		listener, err := net.Listen("unix", path)
		if err != nil {
			log.Fatal(err)
		}
		g := grpc.NewServer()
		plugin.RegisterDevicePluginServer(g, s)
		go g.Serve(listener)
		for register(resource, endpoint) != nil {
			time.Sleep(100 * time.Millisecond)
		}
		log.Printf("serving %d of %s on %s", count, resource, endpoint)
		for exists(path) {
			time.Sleep(100 * time.Millisecond)
		}
		g.Stop()
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// The two questions, by the words of the command line.
func ask(socket, question string) (any, error) {
	connection := dial(socket)
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client := resources.NewPodResourcesListerClient(connection)
	switch question {
	case "allocatable":
		return unlimited(func() (any, error) {
			return client.GetAllocatableResources(ctx, &resources.AllocatableResourcesRequest{})
		})
	case "list":
		return unlimited(func() (any, error) { return client.List(ctx, &resources.ListPodResourcesRequest{}) })
	}
	return nil, fmt.Errorf("no such question: %q", question)
}

// A kubelet answers 100 questions a second, whoever asks: one that it refused for that is asked again.
func unlimited(ask func() (any, error)) (any, error) {
	for {
		answer, err := ask()
		if status.Code(err) != codes.ResourceExhausted {
			return answer, err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func printAnswer(question string) {
	answer, err := ask(podResources, question)
	if err != nil {
		log.Fatal(err)
	}
	json.NewEncoder(os.Stdout).Encode(answer)
}

func answerLines(socket string) {
	out := json.NewEncoder(os.Stdout)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if answer, err := ask("unix://"+socket, lines.Text()); err != nil {
			out.Encode(map[string]any{"error": err.Error()})
		} else {
			out.Encode(map[string]any{"answer": answer})
		}
	}
}

func changes(resource string) {
	for last := -2; ; time.Sleep(20 * time.Millisecond) {
		if count := count(resource); count != last {
			fmt.Printf("%.3f %d\n", float64(time.Now().UnixMilli())/1000, count)
			last = count
		}
	}
}

func count(resource string) int {
	answer, err := ask(podResources, "allocatable")
	if err != nil {
		return -1
	}
	found := 0
	for _, devices := range answer.(*resources.AllocatableResourcesResponse).Devices {
		if devices.ResourceName == resource {
			found += len(devices.DeviceIds)
		}
	}
	return found
}

func main() {
	switch {
	case len(os.Args) == 3 && os.Args[1] == "changes":
		changes(os.Args[2])
	case len(os.Args) == 4 && os.Args[1] == "serve":
		count, err := strconv.Atoi(os.Args[3])
		if err != nil {
			log.Fatal(err)
		}
		serve(os.Args[2], count)
	case len(os.Args) == 3 && os.Args[1] == "answer":
		answerLines(os.Args[2])
	case len(os.Args) == 2 && (os.Args[1] == "allocatable" || os.Args[1] == "list"):
		printAnswer(os.Args[1])
	default:
		fmt.Fprintln(os.Stderr, "usage: kubelet-peer serve RESOURCE COUNT | allocatable | list | answer SOCKET | changes RESOURCE")
		os.Exit(2)
	}
}
