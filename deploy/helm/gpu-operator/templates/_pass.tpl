{{/*
A section of the values as a part of a custom resource, as YAML. NVIDIA's chart leaves out what is empty, and so does this. Numbers and switches
that come as texts, as from Terraform, become what the field is, by its name; in what is free (labels, resources) nothing is left out. value, the
section; without, names that only the chart knows.
*/}}
{{- define "gpu-operator.pass" -}}
{{- $switches := list "enabled" "enable" "force" "deleteEmptyDir" "autoUpgrade" "usePrecompiled" "useOpenKernelModules" "useNvidiaDriverCRD" "useHostMofed" "nlsEnabled" "honorLabels" "hostNetwork" "hostPID" "enablePodLabels" "enablePodUID" "nriPluginEnabled" "use_ocp_driver_toolkit" -}}
{{- $numbers := list "maxParallelUpgrades" "timeoutSeconds" "initialDelaySeconds" "periodSeconds" "failureThreshold" "successThreshold" "hostPort" "port" -}}
{{- $texts := list "labels" "annotations" "additionalLabels" "nodeSelector" -}}
{{- $free := list "resources" "featureGates" "podSecurityContext" -}}
{{- $passed := dict -}}
{{- range $key, $value := .value -}}
{{- $skip := has $key ($.without | default list) -}}
{{- if or $skip (kindIs "invalid" $value) -}}
{{- else if kindIs "map" $value -}}
{{- if has $key $texts -}}
{{- $map := dict -}}
{{- range $name, $one := $value -}}{{- $_ := set $map $name (include "penstock.text" $one) -}}{{- end -}}
{{- with $map -}}{{- $_ := set $passed $key . -}}{{- end -}}
{{- else if has $key $free -}}
{{- with $value -}}{{- $_ := set $passed $key . -}}{{- end -}}
{{- else -}}
{{- with include "gpu-operator.pass" (dict "value" $value) | fromYaml -}}{{- $_ := set $passed $key . -}}{{- end -}}
{{- end -}}
{{- else if kindIs "slice" $value -}}
{{- $list := list -}}
{{- range $value -}}
{{- if and (kindIs "map" .) (eq $key "imagePullSecrets") -}}
{{- $list = append $list .name -}}
{{- else if and (kindIs "map" .) (hasKey . "value") -}}
{{- $list = append $list (merge (dict "value" (include "penstock.text" .value)) .) -}}
{{- else -}}
{{- $list = append $list . -}}
{{- end -}}
{{- end -}}
{{- with $list -}}{{- $_ := set $passed $key . -}}{{- end -}}
{{- else if has $key $switches -}}
{{- if ne (toString $value) "" -}}{{- $_ := set $passed $key (eq (toString $value) "true") -}}{{- end -}}
{{- else if has $key $numbers -}}
{{- if ne (toString $value) "" -}}{{- $_ := set $passed $key (int64 $value) -}}{{- end -}}
{{- else if eq $key "maxUnavailable" -}}
{{- if ne (toString $value) "" -}}{{- $_ := set $passed $key $value -}}{{- end -}}
{{- else -}}
{{- with include "penstock.text" $value -}}{{- $_ := set $passed $key . -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $passed -}}
{{- end -}}

{{/* What only the chart knows of an operand: NVIDIA's charts of old placed each operand's pods by themselves. */}}
{{- define "gpu-operator.chartOnly" -}}
{{- list "nodeSelector" "affinity" "tolerations" "priorityClassName" "securityContext" "podSecurityContext" "networkPolicy" "nvidiaDriverCRD" | toJson -}}
{{- end -}}

{{/* The ClusterPolicy's spec. */}}
{{- define "gpu-operator.clusterPolicy" -}}
{{- $spec := dict -}}
{{- $required := list "operator" "daemonsets" "driver" "toolkit" "devicePlugin" "dcgm" "dcgmExporter" "gfd" "nodeStatusExporter" -}}
{{- range include "gpu-operator.sections" . | fromJsonArray -}}
{{- $values := deepCopy (index $.Values . | default dict) -}}
{{- if eq . "operator" -}}
{{- $values = pick $values "runtimeClass" "defaultRuntime" "initContainer" "use_ocp_driver_toolkit" -}}
{{- end -}}
{{- $chartOnly := include "gpu-operator.chartOnly" $ | fromJsonArray -}}
{{- if eq . "daemonsets" -}}{{- $chartOnly = list -}}{{- end -}}
{{- if and $values.config (kindIs "map" $values.config) (ne . "kataManager") -}}{{- $_ := set $values "config" (omit $values.config "create" "data") -}}{{- end -}}
{{- if eq . "driver" -}}
{{- $_ := set $values "useNvidiaDriverCRD" ($values.nvidiaDriverCRD.enabled | default false) -}}
{{- $policy := $values.upgradePolicy | default dict -}}
{{- with $policy.gpuPodDeletion -}}{{- $_ := set $policy "podDeletion" (merge (dict) . ($policy.podDeletion | default dict)) -}}{{- end -}}
{{- $_ := unset $policy "gpuPodDeletion" -}}
{{- end -}}
{{- if and (eq . "daemonsets") $values.rollingUpdate -}}{{- $_ := set $values.rollingUpdate "maxUnavailable" (include "penstock.text" $values.rollingUpdate.maxUnavailable) -}}{{- end -}}
{{- $passed := include "gpu-operator.pass" (dict "value" $values "without" $chartOnly) | fromYaml -}}
{{- if eq . "cdi" -}}{{- with $values -}}{{- if kindIs "bool" .default -}}{{- $_ := set $passed "default" .default -}}{{- end -}}{{- end -}}{{- end -}}
{{- if and (eq . "migManager") (kindIs "string" ($values.config | default dict).default) -}}
{{- $_ := set $passed "config" (merge (dict "default" $values.config.default) ($passed.config | default dict)) -}}
{{- end -}}
{{- if or $passed (has . $required) -}}{{- $_ := set $spec . $passed -}}{{- end -}}
{{- end -}}
{{- toYaml $spec -}}
{{- end -}}
