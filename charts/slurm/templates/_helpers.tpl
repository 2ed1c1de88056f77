{{- define "slurm.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "slurm.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "slurm.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "slurm.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{- define "slurm.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{ include "slurm.labels.lasting" . }}
{{- end -}}

{{/* Those that are the same in every release of the chart. */}}
{{- define "slurm.labels.lasting" -}}
app.kubernetes.io/part-of: slurm
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* The head of an object. Call with (dict "root" $ "name" "..." "metadata" <map or nil>). */}}
{{- define "slurm.metadata" -}}
name: {{ .name }}
namespace: {{ include "slurm.namespace" .root }}
labels:
  {{- merge (dict) ((.metadata).labels | default dict) (include "slurm.labels" .root | fromYaml) | toYaml | nindent 2 }}
{{- with (.metadata).annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* A container as the objects want it. Call with (dict "root" $ "name" "slurmd" "container" <map>); "name" is that of the image. */}}
{{- define "slurm.container" -}}
{{- $image := include "slurm.image" (dict "name" .name "image" .container.image) -}}
{{- $pull := .container.imagePullPolicy | default .root.Values.imagePullPolicy -}}
{{- $rest := omit .container "image" "imagePullPolicy" -}}
{{- if $image -}}
{{- $rest = merge (dict "image" $image) $rest -}}
{{- end -}}
{{- if $pull -}}
{{- $rest = merge (dict "imagePullPolicy" $pull) $rest -}}
{{- end -}}
{{- toYaml $rest -}}
{{- end -}}

{{/* A pod template. Labels with the chart's version stay out of it: an upgrade of the chart alone must not restart a single pod.
Call with (dict "root" $ "metadata" <map> "podSpec" <map> "hostname" "..."). */}}
{{- define "slurm.template" -}}
{{- $spec := .podSpec | default dict -}}
{{- if .hostname -}}
{{- $spec = merge (dict "hostname" .hostname) $spec -}}
{{- end -}}
{{- with concat ($spec.imagePullSecrets | default list) (.root.Values.imagePullSecrets | default list) | uniq -}}
{{- $spec = merge (dict "imagePullSecrets" .) $spec -}}
{{- end -}}
{{- if .root.Values.priorityClass.enabled -}}
{{- $spec = merge (dict) $spec (dict "priorityClassName" .root.Values.priorityClass.name) -}}
{{- end -}}
metadata:
  {{- $labels := merge (dict) ((.metadata).labels | default dict) (include "slurm.labels.lasting" .root | fromYaml) }}
  {{- toYaml (merge (dict "labels" $labels) (.metadata | default dict)) | nindent 2 }}
spec:
  {{- toYaml $spec | nindent 2 }}
{{- end -}}

{{/*
"Key=value" pairs of a map in key order; a list becomes "a,b", and an empty value leaves its key out.
Call with (dict "map" <map> "separator" "...").
*/}}
{{- define "slurm.pairs" -}}
{{- $pairs := list -}}
{{- range $key, $value := .map -}}
{{- $text := "" -}}
{{- if kindIs "slice" $value -}}
{{- $text = join "," $value -}}
{{- else if not (kindIs "invalid" $value) -}}
{{- $text = toString $value -}}
{{- end -}}
{{- if $text -}}
{{- $pairs = append $pairs (printf "%s=%s" $key $text) -}}
{{- end -}}
{{- end -}}
{{- join .separator $pairs -}}
{{- end -}}

{{- define "slurm.slurmKeyRef" -}}
{{- $ref := .Values.slurmKey.secretRef | default dict -}}
name: {{ $ref.name | default (printf "%s-auth-slurm" (include "slurm.fullname" .)) }}
key: {{ $ref.key | default "slurm.key" }}
{{- end -}}

{{- define "slurm.jwtKeyRef" -}}
{{- $ref := .Values.jwtKey.secretRef | default dict -}}
name: {{ $ref.name | default (printf "%s-auth-jwt" (include "slurm.fullname" .)) }}
key: {{ $ref.key | default "jwt.key" }}
{{- end -}}

{{- define "slurm.jwksKeyRef" -}}
{{- $ref := .Values.jwksKeys.configMapRef | default dict -}}
name: {{ $ref.name | default (printf "%s-auth-jwks" (include "slurm.fullname" .)) }}
key: {{ $ref.key | default "jwks.json" }}
{{- end -}}

{{- define "slurm.sssdConfRef" -}}
{{- $ref := .Values.sssd.secretRef | default dict -}}
name: {{ $ref.name | default (printf "%s-sssd-conf" (include "slurm.fullname" .)) }}
key: {{ $ref.key | default "sssd.conf" }}
{{- end -}}

{{/* The Controller's metadata, which says which keys the operator must not make. */}}
{{- define "slurm.controllerMetadata" -}}
{{- include "slurm.sections" . -}}
{{- $marks := dict -}}
{{- if eq (toString .Values.slurmKey.create) "false" -}}
{{- $_ := set $marks "kubeslurm.dev/make-slurm-key" "false" -}}
{{- end -}}
{{- if eq (toString .Values.jwtKey.create) "false" -}}
{{- $_ := set $marks "kubeslurm.dev/make-jwt-key" "false" -}}
{{- end -}}
{{- $metadata := deepCopy (.Values.controller.metadata | default dict) -}}
{{- if $marks -}}
{{- $_ := set $metadata "annotations" (merge ($metadata.annotations | default dict) $marks) -}}
{{- end -}}
{{- toYaml $metadata -}}
{{- end -}}

{{/* All NodeSets with their defaults, as JSON: YAML there and back would eat the last line's end. */}}
{{- define "slurm.nodesets" -}}
{{- $all := dict -}}
{{- $sections := list "slurmd" "logfile" "partition" "ssh" "updateStrategy" "podSpec" -}}
{{- range $key, $own := .Values.nodesets -}}
{{- $nodeset := include "slurm.withDefaults" (dict "own" $own "defaults" $.Values.nodesetDefaults "sections" $sections) | fromJson -}}
{{- if ne (toString $nodeset.enabled) "false" -}}
{{- $_ := set $all $key $nodeset -}}
{{- end -}}
{{- end -}}
{{- toJson $all -}}
{{- end -}}

{{/* All LoginSets with their defaults, as JSON. */}}
{{- define "slurm.loginsets" -}}
{{- $all := dict -}}
{{- range $key, $own := .Values.loginsets -}}
{{- $loginset := include "slurm.withDefaults" (dict "own" $own "defaults" $.Values.loginsetDefaults "sections" (list "login" "initconf" "service")) | fromJson -}}
{{- if ne (toString $loginset.enabled) "false" -}}
{{- $_ := set $all $key $loginset -}}
{{- end -}}
{{- end -}}
{{- toJson $all -}}
{{- end -}}

{{/* slurm.conf lines of the partitions that are enabled. */}}
{{- define "slurm.partitions" -}}
{{- $known := include "slurm.nodesets" . | fromJson -}}
{{- $lines := list -}}
{{- range $name, $partition := .Values.partitions -}}
{{- if ($partition).enabled -}}
{{- if not $partition.nodesets -}}
{{- fail (printf "partition %q names no nodesets: list some, or ALL" $name) -}}
{{- end -}}
{{- range $partition.nodesets -}}
{{- if and (ne . "ALL") (not (hasKey $known .)) -}}
{{- fail (printf "partition %q names the nodeset %q, which does not exist or is disabled" $name .) -}}
{{- end -}}
{{- end -}}
{{- $config := $partition.config | default (include "slurm.pairs" (dict "map" ($partition.configMap | default dict) "separator" " ")) -}}
{{- $lines = append $lines (printf "PartitionName=%s Nodes=%s %s" $name (join "," $partition.nodesets) $config | trim) -}}
{{- end -}}
{{- end -}}
{{- join "\n" $lines -}}
{{- end -}}

{{/* References to script ConfigMaps. Call with (dict "root" $ "made" <bool> "name" "..." "refs" <list>). */}}
{{- define "slurm.refs" -}}
{{- $refs := list -}}
{{- if .made -}}
{{- $refs = append $refs (dict "name" (printf "%s-%s" (include "slurm.fullname" .root) .name)) -}}
{{- end -}}
{{- with .more -}}
{{- $refs = append $refs (dict "name" (printf "%s-%s" (include "slurm.fullname" $.root) .)) -}}
{{- end -}}
{{- toYaml (concat $refs (.refs | default list)) -}}
{{- end -}}

{{/* "true" when the slurmd of a NodeSet, or its pod as a whole, asks for NVIDIA GPUs. */}}
{{- define "slurm.usesGpu" -}}
{{- $asked := dict -}}
{{- range list .slurmd.resources .podSpec.resources -}}
{{- $asked = merge $asked ((.).limits | default dict) ((.).requests | default dict) -}}
{{- end -}}
{{- if hasKey $asked "nvidia.com/gpu" -}}true{{- end -}}
{{- end -}}

{{- define "slurm.dcgm.directory" -}}
{{- .Values.vendor.nvidia.dcgm.jobMappingDir | default "/var/lib/dcgm-exporter/job-mapping" -}}
{{- end -}}

{{/* A NodeSet with the directory that the DCGM exporter reads mounted from the host. */}}
{{- define "slurm.withDcgm" -}}
{{- $dir := include "slurm.dcgm.directory" .root -}}
{{- $nodeset := deepCopy .nodeset -}}
{{- $_ := set $nodeset.slurmd "volumeMounts" (append ($nodeset.slurmd.volumeMounts | default list) (dict "name" "dcgm-job-mapping" "mountPath" $dir)) -}}
{{- $_ := set $nodeset.podSpec "volumes" (append ($nodeset.podSpec.volumes | default list) (dict "name" "dcgm-job-mapping" "hostPath" (dict "path" $dir "type" "DirectoryOrCreate"))) -}}
{{- toJson $nodeset -}}
{{- end -}}

{{/* slurm.conf lines that the chart adds by default, without those whose key the user sets. */}}
{{- define "slurm.defaults" -}}
{{- $wanted := list -}}
{{- if .Values.jwtClientIds -}}
{{- $wanted = append $wanted "AuthAltParameters=use_jwt_client_ids" -}}
{{- end -}}
{{- if .Values.isolation.enabled -}}
{{- $wanted = concat $wanted (list "JobAcctGatherType=jobacct_gather/cgroup" "ProctrackType=proctrack/cgroup" "TaskPlugin=task/cgroup,task/affinity") -}}
{{- end -}}
{{- $doors := list -}}
{{- range $name, $nodeset := include "slurm.nodesets" . | fromJson -}}
{{- if $nodeset.ssh.enabled -}}
{{- $doors = append $doors $name -}}
{{- end -}}
{{- end -}}
{{- if $doors -}}
{{- /* ssh onto a worker joins the job's own step, which only this makes. */ -}}
{{- $wanted = append $wanted "PrologFlags=Contain" -}}
{{- end -}}
{{- if not (kindIs "invalid" .Values.requeueDelay) -}}
{{- $wanted = append $wanted (printf "SchedulerParameters=requeue_delay=%d" (int .Values.requeueDelay)) -}}
{{- end -}}
{{- if include "slurm.usesGoogle" . -}}
{{- $wanted = append $wanted "GresTypes=gpu" -}}
{{- end -}}
{{- $own := printf "%s\n%s" (.Values.controller.extraConf | default "") (include "slurm.pairs" (dict "map" (.Values.controller.extraConfMap | default dict) "separator" "\n")) -}}
{{- $lines := list -}}
{{- range $wanted -}}
{{- if not (regexMatch (printf "(?im)^\\s*%s\\s*=" (splitList "=" . | first)) $own) -}}
{{- $lines = append $lines . -}}
{{- end -}}
{{- end -}}
{{- join "\n" $lines -}}
{{- end -}}

{{/* All files for /etc/slurm by name, as JSON. */}}
{{- define "slurm.files" -}}
{{- $files := deepCopy (.Values.configFiles | default dict) -}}
{{- if and .Values.isolation.enabled (not .Values.controller.external) (not (hasKey $files "cgroup.conf")) -}}
{{- $_ := set $files "cgroup.conf" (printf "CgroupPlugin=cgroup/%s\nIgnoreSystemd=yes\nConstrainCores=yes\nConstrainRAMSpace=yes\nConstrainDevices=yes\n" (.Values.isolation.cgroup | default "v2")) -}}
{{- end -}}
{{- if and (include "slurm.usesGoogle" .) (not (hasKey $files "gres.conf")) -}}
{{- $_ := set $files "gres.conf" "AutoDetect=nvidia\n" -}}
{{- end -}}
{{- toJson $files -}}
{{- end -}}
