// An older Kubernetes as one program: runs the component that argv[0] names.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var components = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand() },
}

func main() {
	name := filepath.Base(os.Args[0])
	command, known := components[name]
	if !known {
		fmt.Fprintf(os.Stderr, "%s: not a component; call me by one of the names kube-apiserver, kube-controller-manager, kube-scheduler, kubelet\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(command()))
}
