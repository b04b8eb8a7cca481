{{/*
Brings values into the one form that the templates know: "true" and "false", which come from Terraform and --set-string, become true and
false, and the list of deviceListStrategy becomes a text with commas. Every template begins with it, since helm renders them in no order
that one could count on. Changes .Values, prints nothing.
*/}}
{{- define "penstock.readValues" -}}
{{- $switches := list
    "legacyDaemonsetAPI" "compatWithCPUManager" "failOnInitError" "gdrcopyEnabled" "gdsEnabled" "mofedEnabled"
    "componentSelectorLabels.enabled" "allowDefaultNamespace" "devicePlugin.enabled" "devicePlugin.enableHostNetwork"
    "gfd.enabled" "gfd.noTimestamp" "gfd.enableHostNetwork" "mps.enableHostPID" "mps.enableHostNetwork"
    "penstock.onlyLabelledNodes" "penstock.privileged" "penstock.labels.node" "penstock.labels.nodeFeature"
    "penstock.labels.hostFeatures" "penstock.nodeState.enabled" "penstock.nodeState.crd" "penstock.nodeStatus" "penstock.events"
    "penstock.admissionPolicy" "penstock.networkPolicy.enabled" "penstock.cleanup.enabled" "penstock.cleanup.host"
    "penstock.serviceAccount.create" "penstock.rbac.create" "penstock.cdi.enabled" "penstock.runtimeClass.create"
    "penstock.mps.enabled" "penstock.telemetry.podUid" "penstock.telemetry.virtualGpus" "penstock.usage.records"
    "penstock.metrics.service.enabled" "penstock.metrics.serviceMonitor.enabled" "penstock.metrics.serviceMonitor.honorLabels"
    "penstock.metrics.podMonitor.enabled" "penstock.metrics.podMonitor.honorLabels" "penstock.metrics.dashboards.enabled"
    "penstock.metrics.rules.enabled" "penstock.metrics.rules.openshift" "penstock.metrics.webConfig.tls"
-}}
{{- range $switches -}}
{{- $words := splitList "." . -}}
{{- $map := $.Values -}}
{{- range initial $words -}}{{- $map = index $map . | default dict -}}{{- end -}}
{{- $value := index $map (last $words) -}}
{{- if has $value (list "true" "false") -}}{{- $_ := set $map (last $words) (eq $value "true") -}}{{- end -}}
{{- end -}}
{{- if kindIs "slice" .Values.deviceListStrategy -}}
{{- $_ := set .Values "deviceListStrategy" (join "," .Values.deviceListStrategy) -}}
{{- end -}}
{{- end -}}
