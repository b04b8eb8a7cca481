// cdi-peer: what the library that container engines link makes of specifications, as JSON. Nobody here wrote that library.
//
//	cdi-peer verdicts FILE...   whether each can be read, and the version that its content takes
//	cdi-peer devices FOLDER...  the devices that the folders give together
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"tags.cncf.io/container-device-interface/pkg/cdi"
	specs "tags.cncf.io/container-device-interface/specs-go"
)

type verdict struct {
	OK      bool     `json:"ok"`
	Error   string   `json:"error"`
	Minimum string   `json:"minimum"`
	Devices []string `json:"devices"`
}

// judge takes a panic of the library for a refusal: an engine does not survive it either.
func judge(file string) (given verdict) {
	defer func() {
		if reason := recover(); reason != nil {
			given = verdict{Error: fmt.Sprintf("panic: %v", reason)}
		}
	}()
	spec, err := cdi.ReadSpec(file, 0)
	if err != nil {
		return verdict{Error: err.Error()}
	}
	given.OK = true
	given.Minimum, _ = specs.MinimumRequiredVersion(spec.Spec)
	for _, device := range spec.Devices {
		given.Devices = append(given.Devices, device.Name)
	}
	return given
}

func main() {
	var answer any
	switch os.Args[1] {
	case "verdicts":
		verdicts := map[string]verdict{}
		for _, file := range os.Args[2:] {
			verdicts[file] = judge(file)
		}
		answer = verdicts
	case "devices":
		cache, err := cdi.NewCache(cdi.WithAutoRefresh(false), cdi.WithSpecDirs(os.Args[2:]...))
		if err != nil {
			panic(err)
		}
		answer = cache.ListDevices()
	}
	if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
		panic(err)
	}
}
