{{- define "penstock.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "penstock.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "penstock.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace -}}
{{- end -}}

{{- define "penstock.serviceAccount" -}}
{{- .Values.penstock.serviceAccount.name | default (include "penstock.fullname" .) -}}
{{- end -}}

{{- define "penstock.image" -}}
{{- include "penstock.imageOf" (dict "root" . "image" .Values.image) -}}
{{- end -}}

{{- define "penstock.pullPolicy" -}}
{{- .Values.image.pullPolicy -}}
{{- end -}}

{{/* "true" where agents write labels to their Nodes. */}}
{{- define "penstock.writesLabels" -}}
{{- and .Values.gfd.enabled (ne (include "penstock.onOff" .Values.penstock.labels.node) "off") -}}
{{- end -}}

{{/* What agents may do with NFD's NodeFeature objects. */}}
{{- define "penstock.featureVerbs" -}}
{{- ternary "get, create, patch" "get, delete" (and .Values.gfd.enabled (ne (include "penstock.onOff" .Values.penstock.labels.nodeFeature) "off")) -}}
{{- end -}}

{{/* What a selector may hold, without selectorLabelsOverride. */}}
{{- define "penstock.ownLabels" -}}
app.kubernetes.io/name: {{ include "penstock.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- if .Values.componentSelectorLabels.enabled }}
app.kubernetes.io/component: agent
{{- end }}
{{- end -}}

{{- define "penstock.selectorLabels" -}}
{{- if .Values.selectorLabelsOverride -}}
{{- toYaml .Values.selectorLabelsOverride -}}
{{- else -}}
{{- include "penstock.ownLabels" . -}}
{{- end -}}
{{- end -}}

{{- define "penstock.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "penstock.podLabels" . }}
{{- end -}}

{{- define "penstock.podLabels" -}}
{{ include "penstock.ownLabels" . }}
{{- with .Values.selectorLabelsOverride }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The ConfigMap with configurations for nodes; empty: there is none. */}}
{{- define "penstock.configMap" -}}
{{- if .Values.config.name -}}
{{- .Values.config.name -}}
{{- else if .Values.config.map -}}
{{- include "penstock.fullname" . }}-configs
{{- end -}}
{{- end -}}

{{/* "true" where the container is privileged. */}}
{{- define "penstock.privileged" -}}
{{- if .Values.securityContext -}}
{{- .Values.securityContext.privileged | default false -}}
{{- else if kindIs "bool" .Values.penstock.privileged -}}
{{- .Values.penstock.privileged -}}
{{- else -}}
{{- empty .Values.runtimeClassName -}}
{{- end -}}
{{- end -}}

{{/* "true" where the runtime brings driver and devices into the container. */}}
{{- define "penstock.injected" -}}
{{- not (empty .Values.runtimeClassName) -}}
{{- end -}}

{{/*
"true" where the agent writes CDI specifications. Without privileges it sees the driver's files where the runtime put them, and only those that it put there: the host may
have them elsewhere.
*/}}
{{- define "penstock.cdi" -}}
{{- and .Values.penstock.cdi.enabled (or (eq (include "penstock.injected" .) "false") (eq (include "penstock.privileged" .) "true")) -}}
{{- end -}}

{{/* How to make an unprivileged container privileged. */}}
{{- define "penstock.privilegedRemedy" -}}
{{- if .Values.securityContext -}}
remove securityContext, which replaces the agent's own, or add privileged: true to it
{{- else if kindIs "bool" .Values.penstock.privileged -}}
set penstock.privileged=true
{{- else -}}
remove runtimeClassName, or set penstock.privileged=true
{{- end -}}
{{- end -}}

{{/* "true" where the folder for MPS is mounted: what a ConfigMap says later then needs no other value. */}}
{{- define "penstock.mps" -}}
{{- if kindIs "bool" .Values.penstock.mps.enabled -}}
{{- .Values.penstock.mps.enabled -}}
{{- else -}}
{{- include "penstock.privileged" . -}}
{{- end -}}
{{- end -}}

{{/* Which of the configurations that the values hold share by MPS, with commas. What an existing ConfigMap says is not known here. */}}
{{- define "penstock.sharedByMps" -}}
{{- $found := list -}}
{{- $texts := dict "penstock.config" .Values.penstock.config -}}
{{- range $key, $text := .Values.config.map -}}
{{- $_ := set $texts (printf "config.map.%s" $key) (fromYaml $text) -}}
{{- end -}}
{{- range $name, $config := $texts -}}
{{- $sharing := ternary $config.sharing dict (kindIs "map" $config.sharing) -}}
{{- $mps := ternary $sharing.mps dict (kindIs "map" $sharing.mps) -}}
{{- $rules := ternary $sharing.rules list (kindIs "slice" $sharing.rules) -}}
{{- $here := not (empty $mps.resources) -}}
{{- range $rules -}}
{{- if kindIs "map" . -}}{{- $here = or $here (eq (toString .strategy) "mps") -}}{{- end -}}
{{- end -}}
{{- if $here -}}{{- $found = append $found $name -}}{{- end -}}
{{- end -}}
{{- join ", " $found -}}
{{- end -}}

{{/* The same in the pod as on the host. */}}
{{- define "penstock.mpsRoot" -}}
{{- .Values.mps.root | default "/run/nvidia/mps" -}}
{{- end -}}

{{/* Where the host finds the programs that container engines execute. */}}
{{- define "penstock.installDir" -}}
{{- .Values.penstock.cdi.installDir | default .Values.penstock.stateDir -}}
{{- end -}}

{{- define "penstock.securityContext" -}}
{{- if .Values.securityContext -}}
{{- toYaml .Values.securityContext -}}
{{- else if eq (include "penstock.privileged" .) "true" -}}
privileged: true
readOnlyRootFilesystem: true
{{- else -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end -}}
{{- end -}}

{{- define "penstock.updateStrategy" -}}
{{- $strategy := deepCopy (.Values.updateStrategy | default (dict "type" "RollingUpdate")) -}}
{{- if and (eq ($strategy.type | default "RollingUpdate") "RollingUpdate") (not $strategy.rollingUpdate) -}}
{{- $surge := dict "maxSurge" 1 "maxUnavailable" 0 -}}
{{- $replace := dict "maxSurge" 0 "maxUnavailable" 1 -}}
{{- $_ := set $strategy "rollingUpdate" (ternary $replace $surge (or (not (empty .Values.devicePlugin.enableHostNetwork)) (semverCompare "<1.22.0-0" .Capabilities.KubeVersion.Version))) -}}
{{- end -}}
{{- toYaml $strategy -}}
{{- end -}}

{{/*
NVIDIA's default, and its like for AMD: nodes that NFD or an administrator has labelled. NFD names vendors with their classes by default: display
controllers (0380) and processing accelerators (1200) of AMD; feature.node.kubernetes.io/amd-gpu is of the rule in AMD's charts.
*/}}
{{- define "penstock.affinity" -}}
{{- if .Values.affinity -}}
{{- toYaml .Values.affinity -}}
{{- else if .Values.penstock.onlyLabelledNodes -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
    {{- $labels := dict "feature.node.kubernetes.io/cpu-model.vendor_id" "NVIDIA" }}
    {{- range list "feature.node.kubernetes.io/pci-10de.present" "nvidia.com/gpu.present" "feature.node.kubernetes.io/pci-1002.present" "feature.node.kubernetes.io/pci-0380_1002.present" "feature.node.kubernetes.io/pci-1200_1002.present" "feature.node.kubernetes.io/amd-gpu" }}
    {{- $_ := set $labels . "true" }}
    {{- end }}
    {{- range $key, $value := $labels }}
    - matchExpressions:
      - {key: {{ $key }}, operator: In, values: [{{ $value | quote }}]}
    {{- end }}
{{- end -}}
{{- end -}}

{{/* The affinity above, on nodes for which the image is built. Terms are alternatives, so it goes into each; one that is empty matches nothing. */}}
{{- define "penstock.affinityOfArchitectures" -}}
{{- $affinity := include "penstock.affinity" . | fromYaml -}}
{{- if and .Values.penstock.architectures (not (hasKey (.Values.nodeSelector | default dict) "kubernetes.io/arch")) -}}
{{- $rule := dict "key" "kubernetes.io/arch" "operator" "In" "values" .Values.penstock.architectures -}}
{{- $nodes := $affinity.nodeAffinity | default dict -}}
{{- $required := $nodes.requiredDuringSchedulingIgnoredDuringExecution | default dict -}}
{{- $terms := list -}}
{{- range $term := $required.nodeSelectorTerms | default (list (dict "matchExpressions" list)) -}}
{{- if $term -}}{{- $term = merge (dict "matchExpressions" (append ($term.matchExpressions | default list) $rule)) $term -}}{{- end -}}
{{- $terms = append $terms $term -}}
{{- end -}}
{{- $required = merge (dict "nodeSelectorTerms" $terms) $required -}}
{{- $nodes = merge (dict "requiredDuringSchedulingIgnoredDuringExecution" $required) $nodes -}}
{{- $affinity = merge (dict "nodeAffinity" $nodes) $affinity -}}
{{- end -}}
{{- with $affinity -}}{{- toYaml . -}}{{- end -}}
{{- end -}}

{{/* Where pods of this release may run: of the agent's and of the clean-up's. */}}
{{- define "penstock.placement" -}}
nodeSelector:
  {{- toYaml (merge (dict) (.Values.nodeSelector | default dict) (dict "kubernetes.io/os" "linux")) | nindent 2 }}
{{- with include "penstock.affinityOfArchitectures" . }}
affinity:
  {{- . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* All that are to be made, as a list in YAML. */}}
{{- define "penstock.runtimeClasses" -}}
{{- $classes := .Values.penstock.runtimeClasses | default list -}}
{{- with .Values.penstock.runtimeClass -}}
{{- if .create -}}{{- $classes = prepend $classes (dict "name" .name "handler" .name) -}}{{- end -}}
{{- end -}}
{{- toYaml $classes -}}
{{- end -}}

{{/* "true" where the Prometheus operator is to scrape the Service. */}}
{{- define "penstock.serviceMonitor" -}}
{{- $metrics := .Values.penstock.metrics -}}
{{- if kindIs "bool" $metrics.serviceMonitor.enabled -}}
{{- $metrics.serviceMonitor.enabled -}}
{{- else -}}
{{- and (not $metrics.podMonitor.enabled) (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1/ServiceMonitor") -}}
{{- end -}}
{{- end -}}

{{- define "penstock.metricsService" -}}
{{- or .Values.penstock.metrics.service.enabled (eq (include "penstock.serviceMonitor" .) "true") -}}
{{- end -}}

{{/* The ConfigMap with a file of counters, which is mounted; empty: there is none. */}}
{{- define "penstock.counters" -}}
{{- if .Values.penstock.telemetry.countersConfigMap -}}
{{- .Values.penstock.telemetry.countersConfigMap -}}
{{- else if .Values.penstock.telemetry.counters -}}
{{- include "penstock.fullname" . }}-counters
{{- end -}}
{{- end -}}

{{- define "penstock.countersKey" -}}
{{- ternary .Values.penstock.telemetry.countersKey "metrics" (not (empty .Values.penstock.telemetry.countersConfigMap)) -}}
{{- end -}}

{{/* The folder on the host in which a workload manager lists the jobs of devices, which is mounted; empty: there is none. */}}
{{- define "penstock.jobDirectory" -}}
{{- $telemetry := ternary .Values.penstock.config.telemetry dict (kindIs "map" .Values.penstock.config.telemetry) -}}
{{- ternary $telemetry.jobDirectory .Values.penstock.telemetry.jobDirectory (hasKey $telemetry "jobDirectory") | default "" -}}
{{- end -}}

{{/* The ConfigMap with layouts of GPUs, which is mounted; empty: there is none. */}}
{{- define "penstock.layouts" -}}
{{- ((.Values.migManager | default dict).config | default dict).name | default "" -}}
{{- end -}}

{{/* The ConfigMaps with AMD's profiles of modes, and with the configuration of its exporter, which are mounted; empty: there is none. */}}
{{- define "penstock.modeProfiles" -}}
{{- (.Values.penstock.parts | default dict).modeProfilesConfigMap | default "" -}}
{{- end -}}

{{- define "penstock.exporterFile" -}}
{{- .Values.penstock.telemetry.exporterConfigMap | default "" -}}
{{- end -}}

{{/* The agent's NodeConfig, from the values; penstock.config counts most. */}}
{{- define "penstock.nodeConfig" -}}
{{- $own := .Values.penstock -}}
{{- $driver := .Values.nvidiaDriverRoot | default "/" -}}
{{- $dev := .Values.nvidiaDevRoot | default $driver -}}
{{- $paths := dict "hostDriverRoot" $driver "hostDevRoot" $dev "kubeletDir" "/var/lib/kubelet" "runDir" $own.runDir "stateDir" $own.stateDir -}}
{{- if eq (include "penstock.injected" .) "false" -}}
{{- $_ := set $paths "driverRoot" "/driver-root" -}}
{{- if not .Values.nvidiaDriverRoot -}}{{- $_ := set $paths "driverContainerRoot" "/run/nvidia/driver" -}}{{- end -}}
{{- $_ := set $paths "devRoot" (ternary "/" (ternary "/driver-root" "/dev-root" (eq $dev $driver)) (eq $dev "/")) -}}
{{- end -}}
{{- $labels := dict "node" (ternary (include "penstock.onOff" $own.labels.node) "off" .Values.gfd.enabled) -}}
{{- $_ := set $labels "nodeFeature" (ternary (include "penstock.onOff" $own.labels.nodeFeature) "off" .Values.gfd.enabled) -}}
{{- $_ := set $labels "hostFeatures" (include "penstock.onOff" $own.labels.hostFeatures) -}}
{{- if and $own.labels.featuresFile .Values.gfd.enabled -}}
{{- $_ := set $labels "featuresFile" $own.labels.featuresFile -}}
{{- end -}}
{{- if kindIs "bool" .Values.gfd.noTimestamp -}}
{{- $_ := set $labels "timestamp" (not .Values.gfd.noTimestamp) -}}
{{- end -}}
{{- $cluster := dict "enabled" "on" "namespace" (include "penstock.namespace" .) "events" $own.events "nodeStatus" $own.nodeStatus "readyCondition" (ternary true $own.readyCondition (kindIs "invalid" $own.readyCondition)) -}}
{{- $_ := set $cluster "nodeState" (ternary "auto" "off" $own.nodeState.enabled) -}}
{{- with include "penstock.configMap" . -}}
{{- $map := dict "configMap" . "namespace" (include "penstock.namespace" $) "fallback" ($.Values.config.fallbackStrategies | default list) -}}
{{- with $.Values.config.default -}}{{- $_ := set $map "default" . -}}{{- end -}}
{{- $_ := set $cluster "config" $map -}}
{{- end -}}
{{- $allocators := dict "kubelet" (dict "enabled" (ternary "on" "off" .Values.devicePlugin.enabled)) "local" (dict "enabled" "off") -}}
{{- $config := dict "apiVersion" "penstock.io/v1alpha1" "kind" "NodeConfig" "paths" $paths "labels" $labels "cluster" $cluster (ternary "doors" "allocators" (hasKey $own.config "doors")) $allocators -}}{{- /* doors: the name in 0.1.0 */ -}}
{{- if .Values.mps.root -}}
{{- $former := hasKey ($own.config.sharing | default dict) "mps" -}}{{- /* the name in 0.1.0 */ -}}
{{- $_ := set $config "sharing" (ternary (dict "mps" (dict "root" .Values.mps.root)) (dict "serverRoots" (dict "nvidia" .Values.mps.root)) $former) -}}
{{- end -}}
{{- if eq (include "penstock.cdi" .) "true" -}}
{{- $_ := set $paths "cdiRoot" $own.cdi.dir -}}
{{- $_ := set $config "cdi" (dict "enabled" "on" "install" (include "penstock.installDir" .)) -}}
{{- else -}}
{{- $_ := set $config "cdi" (dict "enabled" "off") -}}
{{- end -}}
{{- if ne $own.containerEngine.configure "off" -}}
{{- $_ := set $config "containers" (dict "configureEngine" $own.containerEngine.configure) -}}
{{- end -}}
{{- $telemetry := dict -}}
{{- range $key := list "interval" "names" "exclude" "include" "holderLabels" "podUid" "hostLabel" "virtualGpus" "jobDirectory" -}}
{{- $value := index $own.telemetry $key -}}
{{- if or $value (kindIs "bool" $value) -}}{{- $_ := set $telemetry $key $value -}}{{- end -}}
{{- end -}}
{{- if include "penstock.counters" . -}}
{{- $_ := set $telemetry "countersFile" (printf "/etc/penstock-counters/%s" (include "penstock.countersKey" .)) -}}
{{- end -}}
{{- if include "penstock.exporterFile" . -}}{{- $_ := set $telemetry "exporterFile" "/etc/penstock-exporter/config.json" -}}{{- end -}}
{{- with $telemetry -}}{{- $_ := set $config "telemetry" . -}}{{- end -}}
{{- $parts := dict -}}
{{- if include "penstock.layouts" . -}}{{- $_ := set $parts "layouts" "/etc/penstock-layouts/config.yaml" -}}{{- end -}}
{{- with ((.Values.migManager | default dict).config | default dict).default -}}{{- $_ := set $parts "defaultLayout" . -}}{{- end -}}
{{- if include "penstock.modeProfiles" . -}}{{- $_ := set $parts "modeProfiles" "/etc/penstock-modes/config.json" -}}{{- end -}}
{{- if include "penstock.clientServices" . -}}{{- $_ := set $parts "clientServices" "/etc/penstock-clients/clients.yaml" -}}{{- end -}}
{{- with $parts -}}{{- $_ := set $config "parts" . -}}{{- end -}}
{{- $usage := dict -}}
{{- range $key, $value := $own.usage -}}
{{- if not (kindIs "invalid" $value) -}}{{- $_ := set $usage $key $value -}}{{- end -}}
{{- end -}}
{{- with $usage -}}{{- $_ := set $config "usage" . -}}{{- end -}}
{{- $validation := dict -}}
{{- if or $own.validation.directory $own.validation.exporterNames -}}
{{- $validation = dict "directory" ($own.validation.directory | default "") "exporterNames" ($own.validation.exporterNames | default false) -}}
{{- end -}}
{{- if eq (toString $own.validation.container) "false" -}}{{- $_ := set $validation "container" false -}}{{- end -}}
{{- with $validation -}}{{- $_ := set $config "validation" . -}}{{- end -}}
{{- if $own.metrics.webConfig.secret -}}
{{- $_ := set $config "http" (dict "webConfigFile" (printf "/etc/penstock-web/%s" $own.metrics.webConfig.key)) -}}
{{- end -}}
{{- toYaml (mergeOverwrite $config (deepCopy $own.config)) -}}
{{- end -}}

{{/* What files/without-effect.yaml says about the given values, one per line: shown after an install. */}}
{{- define "penstock.withoutEffect" -}}
{{- $own := .Values.penstock -}}
{{- $metrics := $own.metrics -}}
{{- $privileged := eq (include "penstock.privileged" .) "true" -}}
{{- $cases := dict
    "always" true
    "no configurations" (empty (include "penstock.configMap" .))
    "no device plugin" (not .Values.devicePlugin.enabled)
    "no labels" (not .Values.gfd.enabled)
    "resources of the plugin" (not (empty .Values.devicePlugin.resources))
    "no injected driver" (eq (include "penstock.injected" .) "false")
    "a digest" (not (empty .Values.image.digest))
    "a global registry" (not (empty (.Values.global | default dict).imageRegistry))
    "an affinity" (not (empty .Values.affinity))
    "selected architecture" (hasKey (.Values.nodeSelector | default dict) "kubernetes.io/arch")
    "a security context" (not (empty .Values.securityContext))
    "MPS disabled" (and (kindIs "bool" $own.mps.enabled) (not $own.mps.enabled))
    "no privileges for MPS" (and (not $privileged) (kindIs "invalid" $own.mps.enabled))
    "no NodeState" (not $own.nodeState.enabled)
    "no clean-up" (not $own.cleanup.enabled)
    "no network policy" (not $own.networkPolicy.enabled)
    "a service account of your own" (not $own.serviceAccount.create)
    "no CDI" (not $own.cdi.enabled)
    "no RuntimeClass" (not $own.runtimeClass.create)
    "no ConfigMap of counters" (empty $own.telemetry.countersConfigMap)
    "no Service" (ne (include "penstock.metricsService" .) "true")
    "no ServiceMonitor" (ne (include "penstock.serviceMonitor" .) "true")
    "no PodMonitor" (not $metrics.podMonitor.enabled)
    "no dashboards" (not $metrics.dashboards.enabled)
    "no rules" (not (or $metrics.rules.enabled $metrics.rules.openshift))
    "no web configuration" (empty $metrics.webConfig.secret)
-}}
{{- include "penstock.rowsWithoutEffect" (dict "root" . "cases" $cases) -}}
{{- end -}}

{{/* Possibly unexpected consequences of the values, with the remedy, one per line: shown after an install. */}}
{{- define "penstock.warnings" -}}
{{- $said := list -}}
{{- $privileged := eq (include "penstock.privileged" .) "true" -}}
{{- if and .Values.securityContext (not $privileged) (eq (include "penstock.injected" .) "false") -}}
{{- $said = append $said "securityContext replaces the agent's own and is not privileged, so the agent cannot open any GPU. Remove it (--set securityContext=null): privileged, the agent has what NVIDIA's chart uses it for (SYS_ADMIN for MIG); or add privileged: true to it." -}}
{{- end -}}
{{- if and .Values.runtimeClassName (not $privileged) -}}
{{- $said = append $said (printf "runtimeClassName: %s makes the agent's container unprivileged. It then does not query the container engine for CDI support (containers get device files and NVIDIA_VISIBLE_DEVICES), reads no kernel log, writes no CDI specifications, does not detect a driver that is loaded later, starts no MPS server; and it does not start once that runtime is uninstalled. Remove runtimeClassName unless the container must be unprivileged." .Values.runtimeClassName) -}}
{{- end -}}
{{- with include "penstock.sharedByMps" . -}}
{{- if ne (include "penstock.mps" $) "true" -}}
{{- $said = append $said (printf "%s shares GPUs by MPS, and penstock.mps.enabled is false: these GPUs are not offered. Remove penstock.mps.enabled." .) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.config.name (not $privileged) (kindIs "invalid" .Values.penstock.mps.enabled) -}}
{{- $said = append $said (printf "GPUs that a configuration in the ConfigMap %s shares by MPS are not offered: MPS servers require a privileged container. For MPS, %s." .Values.config.name (include "penstock.privilegedRemedy" .)) -}}
{{- end -}}
{{- if and .Values.penstock.nodeState.enabled (not .Values.penstock.nodeState.crd) -}}
{{- if .Values.penstock.cleanup.enabled -}}
{{- $said = append $said "penstock.cleanup.enabled: with penstock.nodeState.crd=false this is one of several releases in the cluster, or the CRD is installed separately. The uninstall of this release removes the labels and NodeState objects of all nodes, also those of another release: set penstock.cleanup.enabled=false in each of several releases." -}}
{{- else -}}
{{- $said = append $said "The release that installed the CRD nodestates.penstock.io removes the labels and NodeState objects of all nodes, also those of this release, when it is uninstalled, unless penstock.cleanup.enabled=false is set there, too." -}}
{{- end -}}
{{- end -}}
{{- $telemetry := .Values.penstock.telemetry -}}
{{- $metrics := .Values.penstock.metrics -}}
{{- if and (or $telemetry.counters $telemetry.countersConfigMap) (empty $telemetry.names) (or $metrics.dashboards.enabled $metrics.rules.enabled) -}}
{{- $said = append $said "With a file of counters the metrics pages contain only dcgm-exporter's names, but Penstock's dashboards and rules read accelerator_*. Set penstock.telemetry.names={dcgm,accelerator}." -}}
{{- end -}}
{{- join "\n" $said -}}
{{- end -}}

{{/* What gpu-operator adds to the clean-up's arguments and rights. */}}
{{- define "penstock.cleanupArguments" -}}{{- end -}}
{{- define "penstock.cleanupRules" -}}{{- end -}}
{{- define "penstock.cleanupRulesOfNamespace" -}}{{- end -}}
