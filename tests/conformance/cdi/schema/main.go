// cdi-schema FILE...: what the published JSON schema of the format says of specifications, as JSON: file to problem, empty where there is
// none. The last release whose module has the schema within; it knows nothing of 1.1.0.
package main

import (
	"encoding/json"
	"os"

	"sigs.k8s.io/yaml"
	"tags.cncf.io/container-device-interface/schema"
)

func judge(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	if text, err = yaml.YAMLToJSONStrict(text); err != nil {
		return err.Error()
	}
	if err := schema.BuiltinSchema().ValidateData(text); err != nil {
		return err.Error()
	}
	return ""
}

func main() {
	problems := map[string]string{}
	for _, file := range os.Args[1:] {
		problems[file] = judge(file)
	}
	if err := json.NewEncoder(os.Stdout).Encode(problems); err != nil {
		panic(err)
	}
}
