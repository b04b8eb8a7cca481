{{- define "gpu-operator.labels" -}}
{{ include "gpu-operator.commonLabels" . }}
app.kubernetes.io/component: gpu-operator
{{- end -}}

{{- define "gpu-operator.commonLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/name: gpu-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* The same as in NVIDIA's chart, whose Deployment has the same name: a selector cannot be changed. */}}
{{- define "gpu-operator.selector" -}}
app: gpu-operator
app.kubernetes.io/component: gpu-operator
{{- end -}}

{{/* Pull secrets of the operator, the agents and the clean-up, as objects with a name. */}}
{{- define "gpu-operator.pullSecrets" -}}
{{- $secrets := list -}}
{{- range .Values.operator.imagePullSecrets -}}{{- $secrets = append $secrets (ternary (dict "name" .) . (kindIs "string" .)) -}}{{- end -}}
{{- with $secrets -}}{{- toYaml . -}}{{- end -}}
{{- end -}}

{{/* Where the operator and the hooks' Jobs run. */}}
{{- define "gpu-operator.placement" -}}
nodeSelector:
  {{- toYaml (merge (dict) (.Values.operator.nodeSelector | default dict) (dict "kubernetes.io/os" "linux")) | nindent 2 }}
{{- with .Values.operator.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.operator.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with include "gpu-operator.pullSecrets" . }}
imagePullSecrets:
  {{- . | nindent 2 }}
{{- end }}
{{- with .Values.operator.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{- define "gpu-operator.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
{{- if ne (include "penstock.openshift" .) "true" }}
runAsUser: 65534
{{- end }}
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* "true" where the operator and the hooks print more. */}}
{{- define "gpu-operator.verbose" -}}
{{- $logging := .Values.operator.logging -}}
{{- or (eq (toString $logging.develMode) "true") (eq (toString $logging.level) "debug") (and (regexMatch "^[0-9]+$" (toString $logging.level)) (gt (int $logging.level) 0)) -}}
{{- end -}}

{{/* The ConfigMaps to create: name -> data, as JSON. */}}
{{- define "gpu-operator.configMaps" -}}
{{- $maps := dict -}}
{{- $plugin := .Values.devicePlugin.config -}}
{{- if and $plugin.create $plugin.name -}}{{- $_ := set $maps $plugin.name ($plugin.data | default dict) -}}{{- end -}}
{{- $mig := .Values.migManager.config -}}
{{- if and $mig.create $mig.name $mig.data -}}
{{- $_ := set $maps $mig.name (ternary (dict "config.yaml" (printf "version: v1\nmig-configs:\n%s" ($mig.data | toString | indent 2))) $mig.data (kindIs "string" $mig.data)) -}}
{{- end -}}
{{- $counters := .Values.dcgmExporter.config -}}
{{- if and $counters.create $counters.name -}}{{- $_ := set $maps $counters.name (dict "dcgm-metrics.csv" ($counters.data | default "")) -}}{{- end -}}
{{- toJson $maps -}}
{{- end -}}

{{/* The sections of the values that become fields of the ClusterPolicy. */}}
{{- define "gpu-operator.sections" -}}
{{- list "hostPaths" "operator" "daemonsets" "validator" "mig" "psa" "psp" "cdi" "driver" "toolkit" "devicePlugin" "gfd" "migManager" "dcgm" "dcgmExporter" "nodeStatusExporter" "gds" "gdrcopy" "sandboxWorkloads" "vgpuManager" "vgpuDeviceManager" "vfioManager" "sandboxDevicePlugin" "kataSandboxDevicePlugin" "kataManager" "ccManager" | toJson -}}
{{- end -}}

{{/* Those of them whose image is not the one that runs, and whose image the given values name. */}}
{{- define "gpu-operator.namedImages" -}}
{{- $named := list -}}
{{- range include "gpu-operator.sections" . | fromJsonArray -}}
{{- $section := index $.Values . | default dict -}}
{{- if and (not (has . (list "operator" "driver"))) (or $section.repository $section.image $section.version) -}}{{- $named = append $named . -}}{{- end -}}
{{- end -}}
{{- join ", " $named -}}
{{- end -}}

{{/* What files/without-effect.yaml says about the given values, one per line: shown after an install. */}}
{{- define "gpu-operator.withoutEffect" -}}
{{- $own := .Values.penstock -}}
{{- $cases := dict
    "always" true
    "no ConfigMap of the plugin" (not (and .Values.devicePlugin.config.create .Values.devicePlugin.config.name))
    "no ConfigMap of the plugin's name" (empty .Values.devicePlugin.config.name)
    "no ConfigMap of layouts" (not (and .Values.migManager.config.create .Values.migManager.config.name))
    "no ConfigMap of counters" (not (and .Values.dcgmExporter.config.create .Values.dcgmExporter.config.name))
    "no NVIDIADriver" (not .Values.driver.nvidiaDriverCRD.enabled)
    "no GPUCluster" (not .Values.gpuCluster.deployCR)
    "a digest" (not (empty $own.image.digest))
    "a global registry" (not (empty (.Values.global | default dict).imageRegistry))
    "no clean-up" (not $own.cleanup.enabled)
    "a service account of your own" (not $own.serviceAccount.create)
    "no dashboards" (not $own.metrics.dashboards.enabled)
    "no rules" (not (or $own.metrics.rules.enabled $own.metrics.rules.openshift))
-}}
{{- $said := include "penstock.rowsWithoutEffect" (dict "root" . "cases" $cases) | splitList "\n" -}}
{{- with include "gpu-operator.namedImages" . -}}
{{- $said = append $said (printf "repository, image and version of %s: all of these are parts of Penstock, whose image is penstock.image. Remove the values." .) -}}
{{- end -}}
{{- join "\n" (compact $said) -}}
{{- end -}}

{{/* --- the names that templates of the chart penstock include ---------------------------------------------------------------------------- */}}
{{- define "penstock.fullname" -}}penstock{{- end -}}

{{- define "penstock.namespace" -}}
{{- .Release.Namespace -}}
{{- end -}}

{{- define "penstock.serviceAccount" -}}
{{- .Values.penstock.serviceAccount.name | default "penstock" -}}
{{- end -}}

{{- define "penstock.labels" -}}
{{ include "gpu-operator.commonLabels" . }}
app.kubernetes.io/component: agent
{{- end -}}

{{- define "penstock.image" -}}
{{- include "penstock.imageOf" (dict "root" . "image" .Values.penstock.image) -}}
{{- end -}}

{{- define "penstock.pullPolicy" -}}
{{- .Values.penstock.image.pullPolicy | default "IfNotPresent" -}}
{{- end -}}

{{/* The ClusterPolicy may be changed later, so the agents' rights do not depend on its values. */}}
{{- define "penstock.writesLabels" -}}true{{- end -}}
{{- define "penstock.featureVerbs" -}}{{- end -}}
{{- define "penstock.configMap" -}}{{- end -}}

{{/* Of the clean-up's pods, which run wherever an agent may have run. */}}
{{- define "penstock.placement" -}}
nodeSelector: {kubernetes.io/os: linux}
tolerations:
  {{- toYaml (concat (.Values.daemonsets.tolerations | default list) (.Values.operator.tolerations | default list) | uniq) | nindent 2 }}
{{- with include "gpu-operator.pullSecrets" . }}
imagePullSecrets:
  {{- . | nindent 2 }}
{{- end }}
{{- with .Values.daemonsets.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* What the clean-up of a node needs to know of its agent's configuration, and the rights that follow from it. */}}
{{- define "penstock.nodeConfig" -}}
{{- $own := .Values.penstock -}}
{{- $paths := dict "runDir" $own.runDir "stateDir" $own.stateDir "cdiRoot" $own.cdi.dir -}}
{{- $config := dict "apiVersion" "penstock.io/v1alpha1" "kind" "NodeConfig" "paths" $paths "cdi" (dict "enabled" "on" "install" ($own.cdi.installDir | default $own.stateDir)) -}}
{{- with $own.validation.directory -}}
{{- $_ := set $config "validation" (dict "directory" .) -}}
{{- end -}}
{{- if ne $own.containerEngine.configure "off" -}}
{{- $_ := set $config "containers" (dict "configureEngine" $own.containerEngine.configure) -}}
{{- end -}}
{{- /* A ClusterPolicy can ask for the labels of pods tomorrow, and nobody but this chart gives the agents rights. */ -}}
{{- if ne (toString $own.rbac.podLabels) "false" -}}
{{- $_ := set $config "telemetry" (dict "holderLabels" (list "*")) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* The clean-up after an uninstall also removes what the operator wrote. */}}
{{- define "penstock.cleanupArguments" -}}
- --operator
{{- if .Values.operator.cleanupCRD }}
- --crds
{{- end }}
{{- end -}}

{{- define "penstock.cleanupRules" -}}
# What the operator could not take back, and objects of users that wait for it.
- apiGroups: [nvidia.com]
  resources: [clusterpolicies]
  verbs: [list, patch]
- apiGroups: [penstock.io]
  resources: [penstocks]
  verbs: [list, patch]
- apiGroups: [node.k8s.io]
  resources: [runtimeclasses]
  verbs: [list, delete]
{{- if .Values.operator.cleanupCRD }}
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  resourceNames: [clusterpolicies.nvidia.com, nvidiadrivers.nvidia.com, gpuclusters.nvidia.com, deviceconfigs.amd.com, penstocks.penstock.io, nodestates.penstock.io]
  verbs: [get, delete]
# Objects in other namespaces would be deleted with their CRD, which then stays.
- apiGroups: [amd.com]
  resources: [deviceconfigs]
  verbs: [list]
{{- end }}
{{- end -}}

{{- define "penstock.cleanupRulesOfNamespace" -}}
- apiGroups: [amd.com]
  resources: [deviceconfigs]
  verbs: [list, patch]
- apiGroups: [apps]
  resources: [daemonsets]
  verbs: [list, delete]
- apiGroups: [""]
  resources: [configmaps, services]
  verbs: [list, delete]
- apiGroups: [monitoring.coreos.com]
  resources: [servicemonitors]
  verbs: [list, delete]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [penstock-operator]
  verbs: [delete]
{{- end -}}
