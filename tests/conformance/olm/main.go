// olm-peer: what operator-framework says of an operator's bundle, as JSON.
//
//	olm-peer validate FOLDER  what the validators find in it: those that `operator-sdk bundle validate --select-optional
//	                          suite=operatorframework` runs, and the optional ones for all bundles
//	olm-peer definition       the definition of the kind ClusterServiceVersion, as OLM installs it
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/operator-framework/api/crds"
	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	interfaces "github.com/operator-framework/api/pkg/validation/interfaces"
)

type finding struct {
	Level  string `json:"level"`
	Kind   string `json:"kind"`
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

type answer struct {
	Name  string         `json:"name"`  // of the ClusterServiceVersion
	Kinds map[string]int `json:"kinds"` // of the objects that were read
	Found []finding      `json:"found"`
}

var optional = interfaces.Validators{
	validation.OperatorHubV2Validator, validation.StandardCapabilitiesValidator, validation.StandardCategoriesValidator,
	validation.ObjectValidator, validation.GoodPracticesValidator, validation.AlphaDeprecatedAPIsValidator,
}

func validate(folder string) (answer, error) {
	bundle, err := manifests.GetBundleFromDir(folder)
	if err != nil {
		return answer{}, err
	}
	given := answer{Name: bundle.CSV.GetName(), Kinds: map[string]int{}, Found: []finding{}}
	for _, object := range bundle.Objects {
		given.Kinds[object.GetKind()]++
	}
	objects := bundle.ObjectsToValidate()
	for _, result := range append(validation.DefaultBundleValidators.Validate(objects...), optional.Validate(objects...)...) {
		for _, problem := range append(result.Errors, result.Warnings...) {
			given.Found = append(given.Found, finding{string(problem.Level), string(problem.Type), problem.Field, problem.Detail})
		}
	}
	return given, nil
}

func main() {
	var given any
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "validate":
		given, err = validate(os.Args[2])
	case len(os.Args) == 2 && os.Args[1] == "definition":
		given = crds.ClusterServiceVersion()
	default:
		err = fmt.Errorf("usage: olm-peer validate FOLDER | definition")
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(given)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
