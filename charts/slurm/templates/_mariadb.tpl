{{- define "slurm.mariadb.name" -}}
{{ include "slurm.fullname" . }}-mariadb
{{- end -}}

{{- define "slurm.mariadb.enabled" -}}
{{- if and .Values.accounting.enabled .Values.accounting.mariadb.enabled (not .Values.accounting.external) -}}true{{- end -}}
{{- end -}}

{{- define "slurm.mariadb.labels" -}}
app.kubernetes.io/instance: {{ include "slurm.fullname" . }}
app.kubernetes.io/name: mariadb
{{- end -}}

{{/* The database of slurmdbd: the one of this chart, or the one that the values name. */}}
{{- define "slurm.storageConfig" -}}
{{- $storage := deepCopy .Values.accounting.storageConfig -}}
{{- if include "slurm.mariadb.enabled" . -}}
{{- $name := include "slurm.mariadb.name" . -}}
{{- $storage = mergeOverwrite (dict "database" "slurm_acct_db" "username" "slurm") $storage (dict "host" $name "port" 3306 "passwordKeyRef" (dict "name" $name "key" "password")) -}}
{{- end -}}
{{- toYaml $storage -}}
{{- end -}}
