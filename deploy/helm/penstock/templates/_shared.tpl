{{/*
What this chart and gpu-operator, which links to this file, both need. Each chart defines the names that these templates include.
*/}}

{{/*
The image: root, the chart; image, its values. A registry replaces the one that the repository names, if it names one: its first part is then
localhost, or has a dot or a port.
*/}}
{{- define "penstock.imageOf" -}}
{{- $repository := .image.repository -}}
{{- with (.root.Values.global | default dict).imageRegistry | default .image.registry -}}
{{- $repository = printf "%s/%s" . (regexReplaceAll "^(localhost|[^/]*[.:][^/]*)/" $repository "") -}}
{{- end -}}
{{- if .image.digest -}}
{{- printf "%s@%s" $repository .image.digest -}}
{{- else -}}
{{- printf "%s:%v" $repository (.image.tag | default .root.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "penstock.admissionPolicy" -}}
{{- if kindIs "bool" .Values.penstock.admissionPolicy -}}
{{- .Values.penstock.admissionPolicy -}}
{{- else -}}
{{- semverCompare ">=1.32.0-0" .Capabilities.KubeVersion.Version -}}
{{- end -}}
{{- end -}}

{{/* The ConfigMap with services of the host that are stopped while GPUs are divided, which is mounted; empty: there is none. */}}
{{- define "penstock.clientServices" -}}
{{- ((.Values.migManager | default dict).gpuClientsConfig | default dict).name | default "" -}}
{{- end -}}

{{/* "true" where the clean-up of a node changes files of its container engine, or asks its service manager: to restart the engine, or to start services that an
     agent has stopped. */}}
{{- define "penstock.cleanupPrivileged" -}}
{{- $own := .Values.penstock -}}
{{- $stops := or (include "penstock.clientServices" .) ($own.parts | default dict).modeProfilesConfigMap -}}
{{- or ($own.cleanup.privileged | default false) (ne $own.containerEngine.configure "off") (not (empty $stops)) -}}
{{- end -}}

{{/* "true" on OpenShift, where a pod needs SecurityContextConstraints that permit what it requests. */}}
{{- define "penstock.openshift" -}}
{{- if kindIs "bool" .Values.penstock.openshift.enabled -}}
{{- .Values.penstock.openshift.enabled -}}
{{- else -}}
{{- .Capabilities.APIVersions.Has "security.openshift.io/v1" -}}
{{- end -}}
{{- end -}}

{{/*
SecurityContextConstraints with the right to use them: root, the chart; name; account, the ServiceAccount that may; privileged, hostPID,
hostNetwork; context, the container's security context; volumes, the kinds; metadata, of all three objects.
*/}}
{{- define "penstock.scc" -}}
{{- $namespace := include "penstock.namespace" .root -}}
apiVersion: security.openshift.io/v1
kind: SecurityContextConstraints
metadata:
  name: {{ .name }}
  {{- .metadata | nindent 2 }}
allowPrivilegedContainer: {{ .privileged }}
allowHostPID: {{ .hostPID }}
allowHostNetwork: {{ .hostNetwork }}
allowHostPorts: {{ .hostNetwork }}
allowHostIPC: false
allowHostDirVolumePlugin: true
allowPrivilegeEscalation: {{ ne (toString .context.allowPrivilegeEscalation) "false" }}
allowedCapabilities: {{ (.context.capabilities | default dict).add | default list | toJson }}
defaultAddCapabilities: []
requiredDropCapabilities: []
readOnlyRootFilesystem: {{ .context.readOnlyRootFilesystem | default false }}
runAsUser: {type: RunAsAny}
seLinuxContext: {type: RunAsAny}
fsGroup: {type: RunAsAny}
supplementalGroups: {type: RunAsAny}
seccompProfiles: ["*"]
volumes: {{ .volumes | uniq | sortAlpha | toJson }}
priority: null
users: []
groups: []
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .name }}-scc
  namespace: {{ $namespace }}
  {{- .metadata | nindent 2 }}
rules:
  - apiGroups: [security.openshift.io]
    resources: [securitycontextconstraints]
    resourceNames: [{{ .name }}]
    verbs: [use]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .name }}-scc
  namespace: {{ $namespace }}
  {{- .metadata | nindent 2 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ .name }}-scc}
subjects: [{kind: ServiceAccount, name: {{ .account }}, namespace: {{ $namespace }}}]
{{- end -}}

{{- define "penstock.onOff" -}}
{{- if kindIs "bool" . -}}{{- if . -}}on{{- else -}}off{{- end -}}{{- else -}}{{- . -}}{{- end -}}
{{- end -}}

{{/*
Brings values into the form that the templates read: "true" and "false" become switches, texts with commas lists, digits numbers, and numbers and
switches in a map of texts become texts; a map that is missing becomes an empty one. values, and the paths of each kind: switch, list, number, texts.
Changes the values, prints nothing.
*/}}
{{- define "penstock.readPaths" -}}
{{- range $kind, $paths := omit . "values" -}}
{{- range $paths -}}
{{- $words := splitList "." . -}}
{{- $map := $.values -}}
{{- range initial $words -}}
{{- if not (index $map .) -}}{{- $_ := set $map . dict -}}{{- end -}}
{{- $map = index $map . -}}
{{- end -}}
{{- $key := last $words -}}
{{- $value := index $map $key -}}
{{- if and (eq $kind "switch") (has $value (list "true" "false")) -}}
{{- $_ := set $map $key (eq $value "true") -}}
{{- else if and (eq $kind "list") (kindIs "string" $value) -}}
{{- $_ := set $map $key (regexSplit " *, *" $value -1 | compact) -}}
{{- else if and (eq $kind "number") (kindIs "string" $value) -}}
{{- $_ := set $map $key (fromJsonArray (printf "[%s]" $value) | first) -}}
{{- else if eq $kind "texts" -}}
{{- range $name, $one := $value -}}{{- $_ := set $value $name (include "penstock.text" $one) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A text as it is; a number or a switch as YAML spells it. */}}
{{- define "penstock.text" -}}
{{- if kindIs "string" . -}}{{- . -}}{{- else if not (kindIs "invalid" .) -}}{{- toJson . -}}{{- end -}}
{{- end -}}

{{/* What files/without-effect.yaml says about the given values, one per line: root, the chart; cases, which of the table's cases apply. */}}
{{- define "penstock.rowsWithoutEffect" -}}
{{- $said := list -}}
{{- $file := .root.Files.Get "files/without-effect.yaml" | fromYaml -}}
{{- range $row := $file.rows -}}
{{- if index $.cases $row.when -}}
{{- range $path := $row.values -}}
{{- $value := $.root.Values -}}
{{- range splitList "." $path -}}{{- $value = index (ternary $value dict (kindIs "map" $value)) . -}}{{- end -}}
{{- $given := and (or (not (empty $value)) (kindIs "bool" $value)) (ne (toJson $value) (index $file.defaults $path | toJson)) -}}
{{- if and $given (or (not $row.matching) (regexMatch ($row.matching | default "") (toString $value))) -}}
{{- $said = append $said (printf "%s: %s" $path $row.because) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- join "\n" $said -}}
{{- end -}}
