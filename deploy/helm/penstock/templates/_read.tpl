{{/*
Brings values into the one form that the templates read: "true" and "false", which Terraform and --set-string write, become true and false;
texts with commas become lists, and digits numbers; numbers and switches in labels, annotations, selectors and variables become texts;
a map that is missing, as after --reuse-values with the values of an older chart, becomes an empty one. Every template begins with it,
since helm renders them in no particular order. Changes .Values, prints nothing.
*/}}
{{- define "penstock.readValues" -}}
{{- $switches := list
    "legacyDaemonsetAPI" "compatWithCPUManager" "failOnInitError" "gdrcopyEnabled" "gdsEnabled" "mofedEnabled"
    "componentSelectorLabels.enabled" "allowDefaultNamespace" "devicePlugin.enabled" "devicePlugin.enableHostNetwork"
    "gfd.enabled" "gfd.noTimestamp" "gfd.enableHostNetwork" "mps.enableHostPID" "mps.enableHostNetwork"
    "penstock.onlyLabelledNodes" "penstock.privileged" "penstock.labels.node" "penstock.labels.nodeFeature"
    "penstock.labels.hostFeatures" "penstock.nodeState.enabled" "penstock.nodeState.crd" "penstock.nodeStatus" "penstock.readyCondition" "penstock.validation.container" "penstock.validation.exporterNames" "penstock.events"
    "penstock.admissionPolicy" "penstock.networkPolicy.enabled" "penstock.cleanup.enabled" "penstock.cleanup.host"
    "penstock.serviceAccount.create" "penstock.rbac.create" "penstock.openshift.enabled" "penstock.cdi.enabled"
    "penstock.runtimeClass.create" "penstock.mps.enabled" "penstock.telemetry.healthSocket" "penstock.telemetry.podUid" "penstock.telemetry.virtualGpus"
    "penstock.usage.records" "penstock.metrics.service.enabled" "penstock.metrics.serviceMonitor.enabled"
    "penstock.metrics.serviceMonitor.honorLabels" "penstock.metrics.podMonitor.enabled" "penstock.metrics.podMonitor.honorLabels"
    "penstock.metrics.dashboards.enabled" "penstock.metrics.rules.enabled" "penstock.metrics.rules.openshift"
    "penstock.metrics.webConfig.tls"
-}}
{{- $lists := list
    "config.fallbackStrategies" "deviceListStrategy" "imagePullSecrets" "cdi.featureFlags" "penstock.architectures"
    "penstock.telemetry.names" "penstock.telemetry.exclude" "penstock.telemetry.include" "penstock.telemetry.holderLabels"
-}}
{{- $numbers := list "penstock.port" "penstock.usage.idleBelow" "penstock.terminationGracePeriodSeconds" -}}
{{- $texts := list
    "selectorLabelsOverride" "podAnnotations" "nodeSelector" "penstock.serviceAccount.annotations"
    "penstock.metrics.service.labels" "penstock.metrics.service.annotations" "penstock.metrics.serviceMonitor.labels"
    "penstock.metrics.podMonitor.labels" "penstock.metrics.dashboards.labels" "penstock.metrics.dashboards.annotations"
    "penstock.metrics.rules.labels" "penstock.podLabels"
-}}
{{- include "penstock.readPaths" (dict "values" .Values "switch" $switches "list" $lists "number" $numbers "texts" $texts) -}}
{{- $secrets := list -}}
{{- range .Values.imagePullSecrets -}}{{- $secrets = append $secrets (ternary (dict "name" .) . (kindIs "string" .)) -}}{{- end -}}
{{- $_ := set .Values "imagePullSecrets" $secrets -}}
{{- range concat (.Values.tolerations | default list) (((.Values.devicePlugin.containers | default dict).main | default dict).env | default list) -}}
{{- if hasKey . "value" -}}{{- $_ := set . "value" (include "penstock.text" .value) -}}{{- end -}}
{{- end -}}
{{- end -}}
