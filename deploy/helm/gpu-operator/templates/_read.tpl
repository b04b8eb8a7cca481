{{/* Brings values into the one form that the templates read (penstock.readPaths). Every template begins with it. */}}
{{- define "penstock.readValues" -}}
{{- $switches := list
    "platform.openshift" "psa.enabled" "cdi.enabled" "cdi.nriPluginEnabled" "cdi.default" "clusterPolicy.deployCR" "gpuCluster.deployCR"
    "driver.enabled" "driver.nvidiaDriverCRD.enabled" "driver.nvidiaDriverCRD.deployDefaultCR" "operator.cleanupCRD" "operator.upgradeCRD"
    "operator.logging.develMode" "devicePlugin.config.create" "migManager.config.create" "dcgmExporter.config.create" "toolkit.enabled"
    "dcgmExporter.enablePodLabels" "dcgmExporter.enablePodUID" "dcgmExporter.hostNetwork" "devicePlugin.hostNetwork" "driver.hostNetwork" "networkPolicy.enabled" "networkPolicy.egress.enabled" "penstock.metrics.console.enabled"
    "operator.metrics.serviceMonitor.enabled" "operator.metrics.serviceMonitor.honorLabels"
    "operator.networkPolicy.enabled" "dcgmExporter.networkPolicy.enabled" "nodeStatusExporter.networkPolicy.enabled" "gds.enabled" "gdrcopy.enabled"
    "penstock.admissionPolicy" "penstock.serviceAccount.create" "penstock.rbac.create" "penstock.rbac.podLabels" "penstock.openshift.enabled" "penstock.cleanup.enabled"
    "penstock.cleanup.host" "penstock.metrics.dashboards.enabled" "penstock.metrics.rules.enabled" "penstock.metrics.rules.openshift"
-}}
{{- $lists := list "operator.imagePullSecrets" -}}
{{- $numbers := list "penstock.replicas" -}}
{{- $texts := list
    "operator.annotations" "operator.labels" "operator.nodeSelector" "daemonsets.labels" "daemonsets.annotations" "networkPolicy.labels"
    "networkPolicy.annotations" "operator.metrics.serviceMonitor.additionalLabels" "driver.nvidiaDriverCRD.nodeSelector" "penstock.serviceAccount.annotations" "penstock.metrics.dashboards.labels"
    "penstock.metrics.dashboards.annotations" "penstock.metrics.rules.labels"
-}}
{{- range concat (include "gpu-operator.sections" . | fromJsonArray) (list "draDriver" "nfd" "penstock") -}}
{{- if not (index $.Values .) -}}{{- $_ := set $.Values . dict -}}{{- end -}}
{{- end -}}
{{- include "penstock.readPaths" (dict "values" .Values "switch" $switches "list" $lists "number" $numbers "texts" $texts) -}}
{{- range concat (.Values.operator.tolerations | default list) (.Values.daemonsets.tolerations | default list) (.Values.operator.env | default list) -}}
{{- if hasKey . "value" -}}{{- $_ := set . "value" (include "penstock.text" .value) -}}{{- end -}}
{{- end -}}
{{- $own := .Values.penstock -}}
{{- if and .Values.platform.openshift (not (kindIs "bool" $own.openshift.enabled)) -}}{{- $_ := set $own.openshift "enabled" true -}}{{- end -}}
{{- if not $own.image -}}{{- $_ := set $own "image" (dict "repository" "localhost/penstock") -}}{{- end -}}
{{- /* What the chart penstock has as values, and the operator decides here: it uses these folders. */ -}}
{{- $_ := set $own "nodeState" (dict "enabled" true "crd" false) -}}
{{- $_ := set $own "nodeStatus" true -}}
{{- $_ := set $own "events" true -}}
{{- $_ := set $own "labels" (dict "node" "auto" "nodeFeature" "off" "featuresFile" "") -}}
{{- $_ := set $own "runDir" "/run/penstock" -}}
{{- $_ := set $own "stateDir" "/var/lib/penstock" -}}
{{- /* As the operator reads penstock.spec over the ClusterPolicy. */ -}}
{{- $spec := $own.spec | default dict -}}
{{- $hostPaths := $spec.hostPaths | default dict -}}
{{- $toolkit := ne (toString .Values.toolkit.enabled) "false" -}}
{{- $programs := ternary (printf "%s/toolkit" (.Values.toolkit.installDir | default "" | trimSuffix "/")) "" (and $toolkit (not (empty .Values.toolkit.installDir))) -}}
{{- $programs = ternary $hostPaths.installDir $programs (hasKey $hostPaths "installDir") -}}
{{- $_ := set $own "cdi" (dict "enabled" true "dir" "/var/run/cdi" "installDir" ($programs | default "")) -}}
{{- $validation := ($spec.node | default dict).validation | default dict -}}
{{- $_ := set $own "validation" (dict "directory" (ternary $validation.directory "/run/nvidia/validations" (hasKey $validation "directory"))) -}}
{{- $_ := set $own "readyCondition" true -}}
{{- $engine := (($spec.node | default dict).containers | default dict).configureEngine -}}
{{- $_ := set $own "containerEngine" (dict "configure" ($engine | default (ternary "runtime" "off" $toolkit))) -}}
{{- /* A policy that a user has written may have had the engines configured, whatever the values say. */ -}}
{{- $_ := set $own "cleanup" (merge (dict "privileged" true) ($own.cleanup | default dict)) -}}
{{- end -}}
