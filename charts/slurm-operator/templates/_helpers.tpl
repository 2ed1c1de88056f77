{{- define "slurm-operator.name" -}}
{{- default "slurm-operator" .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- define "slurm-operator.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains (include "slurm-operator.name" .) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- include "slurm-operator.name" . -}}
{{- end -}}
{{- end }}

{{- define "slurm-operator.webhook.fullname" -}}
{{- printf "%s-webhook" (include "slurm-operator.fullname" . | trunc 55 | trimSuffix "-") -}}
{{- end }}

{{- define "slurm-operator.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end }}

{{/* Selector labels: dict "root" $ "name" NAME */}}
{{- define "slurm-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{/* All labels: dict "root" $ "name" NAME */}}
{{- define "slurm-operator.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "slurm-operator.selectorLabels" . }}
app.kubernetes.io/part-of: slurm-operator
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}

{{- define "slurm-operator.serviceAccountName" -}}
{{- if .Values.operator.serviceAccount.create -}}
{{- default (include "slurm-operator.fullname" .) .Values.operator.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.operator.serviceAccount.name -}}
{{- end -}}
{{- end }}

{{- define "slurm-operator.webhook.serviceAccountName" -}}
{{- if .Values.webhook.serviceAccount.create -}}
{{- default (include "slurm-operator.webhook.fullname" .) .Values.webhook.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.webhook.serviceAccount.name -}}
{{- end -}}
{{- end }}

{{/* An image given as one string or as its parts: dict "root" $ "component" "operator" "name" NAME "image" IMAGE */}}
{{- define "slurm-operator.image" -}}
{{- $image := "" -}}
{{- if kindIs "string" .image -}}
{{- $image = .image -}}
{{- else -}}
{{- $repository := (.image).repository | default (printf "ghcr.io/kubeslurm/%s" .name) -}}
{{- if (.image).digest -}}
{{- $image = printf "%s@%s" $repository .image.digest -}}
{{- else -}}
{{- $image = printf "%s:%s" $repository ((.image).tag | default .root.Chart.AppVersion | toString) -}}
{{- end -}}
{{- end -}}
{{- if contains "slinkyproject/" $image -}}
{{- fail (printf "%s.image is %s, which is Slinky's and does not understand this chart: remove %s.image from your values" .component $image .component) -}}
{{- end -}}
{{- $image -}}
{{- end }}

{{/* What both pods share: dict "root" $ "values" VALUES-OF-THE-COMPONENT */}}
{{- define "slurm-operator.scheduling" -}}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ if kindIs "string" . }}{{ . }}{{ else }}{{ .name }}{{ end }}
  {{- end }}
{{- end }}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* A comma-separated list, or a YAML list, as a JSON list */}}
{{- define "slurm-operator.list" -}}
{{- $items := list -}}
{{- if kindIs "slice" . -}}
{{- $items = . -}}
{{- else -}}
{{- range splitList "," (. | default "" | toString) -}}
{{- with trim . }}{{ $items = append $items . }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $items | toJson -}}
{{- end }}

{{/* How many pods of a component: one unless the values say otherwise. */}}
{{- define "slurm-operator.replicas" -}}
{{- ternary 1 .replicas (kindIs "invalid" .replicas) -}}
{{- end }}

{{/* The metrics port, checked: dict "name" NAME "values" VALUES-OF-THE-COMPONENT */}}
{{- define "slurm-operator.metricsPort" -}}
{{- $port := int .values.metricsPort -}}
{{- if or (lt $port 0) (gt $port 65535) -}}
{{- fail (printf "%s.metricsPort is %d: choose a port from 1 to 65535, or 0 to switch metrics off" .name $port) -}}
{{- end -}}
{{- if and .values.metricsSecure (eq $port 0) -}}
{{- fail (printf "%s.metricsSecure needs metrics: set %s.metricsPort to a port" .name .name) -}}
{{- end -}}
{{- $port -}}
{{- end }}

{{/* Where the webhook's certificate comes from: certManager, existing or self */}}
{{- define "slurm-operator.certificates" -}}
{{- if .Values.certManager.enabled -}}
certManager
{{- else if .Values.webhook.existingCertSecret -}}
existing
{{- else -}}
self
{{- end -}}
{{- end }}

{{- define "slurm-operator.certificates.secret" -}}
{{- $source := include "slurm-operator.certificates" . -}}
{{- if eq $source "certManager" -}}
{{- .Values.certManager.secretName | default "slurm-operator-webhook-ca" -}}
{{- else if eq $source "existing" -}}
{{- .Values.webhook.existingCertSecret -}}
{{- else -}}
{{- printf "%s-certificates" (include "slurm-operator.webhook.fullname" .) -}}
{{- end -}}
{{- end }}
