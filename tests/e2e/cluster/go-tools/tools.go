//go:build tools

// Package tools keeps the programs that the tests build among this module's requirements: the same Kubernetes libraries as go/ has, so
// that they are compiled once.
package tools

import (
	_ "helm.sh/helm/v3/cmd/helm"
	_ "k8s.io/kubernetes/pkg/features"
	_ "sigs.k8s.io/node-feature-discovery/cmd/nfd-master"
	_ "sigs.k8s.io/node-feature-discovery/cmd/nfd-worker"
)
